//! Progress of long commands: a bar on a terminal, otherwise a line per step.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::note;

/// The template if the total is known.
const BAR: &str = "{msg} {wide_bar} {percent}% {eta}";
/// The template if the total is unknown.
const COUNT: &str = "{spinner} {msg} {human_pos}";

/// The progress of a command.
#[derive(Debug)]
pub(crate) struct Progress {
    /// `None` unless standard error is a terminal.
    bar: Option<ProgressBar>,
    is_visible: bool,
    step: String,
}

impl Progress {
    /// Starts. Nothing is shown unless `is_visible`.
    pub(crate) fn new(is_visible: bool) -> Self {
        let has_bar = is_visible && std::io::stderr().is_terminal();
        Self {
            bar: has_bar.then(|| ProgressBar::new_spinner().with_style(style(COUNT))),
            is_visible,
            step: String::new(),
        }
    }

    /// Sets the message of the bar. Prints no line without a bar: for commands of one step, the result is printed instead.
    pub(crate) fn only_step(&self, step: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(step.to_owned());
        }
    }

    /// Begins a step: sets the message of the bar, or prints a line.
    pub(crate) fn step(&mut self, step: &str) {
        if self.step == step {
            return;
        }
        step.clone_into(&mut self.step);
        match &self.bar {
            Some(bar) => bar.set_message(step.to_owned()),
            None if self.is_visible => note(step),
            None => {}
        }
    }

    /// Sets the position, and the total if it is known.
    pub(crate) fn at(&self, done: u64, total: Option<u64>) {
        let Some(bar) = &self.bar else { return };
        match total.filter(|total| *total > 0) {
            Some(total) if bar.length() != Some(total) => {
                bar.set_length(total);
                bar.set_style(style(BAR));
            }
            None if bar.length().is_some() => {
                bar.unset_length();
                bar.set_style(style(COUNT));
            }
            _ => {}
        }
        bar.set_position(done);
    }

    /// Removes the bar, before the result is printed.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
