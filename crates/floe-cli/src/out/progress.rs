//! How far something is that takes long: a bar on a terminal, a line per step elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::note;

/// How far something is of which the end is known.
const BAR: &str = "{msg} {wide_bar} {percent}% {eta}";
/// How far something is of which it is not.
const COUNT: &str = "{spinner} {msg} {human_pos}";

/// What is being done, and how far it is.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Only on a terminal.
    bar: Option<ProgressBar>,
    is_for_people: bool,
    step: String,
}

impl Progress {
    /// Begins. A program is shown nothing.
    pub(crate) fn new(is_for_people: bool) -> Self {
        let is_seen = is_for_people && std::io::stderr().is_terminal();
        Self {
            bar: is_seen.then(|| ProgressBar::new_spinner().with_style(style(COUNT))),
            is_for_people,
            step: String::new(),
        }
    }

    /// Says what is being done, where that is one step: without a bar, the result is the line for it.
    pub(crate) fn only_step(&self, step: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(step.to_owned());
        }
    }

    /// Says what is being done now.
    pub(crate) fn step(&mut self, step: &str) {
        if self.step == step {
            return;
        }
        step.clone_into(&mut self.step);
        match &self.bar {
            Some(bar) => bar.set_message(step.to_owned()),
            None if self.is_for_people => note(step),
            None => {}
        }
    }

    /// Says how far that is, of how much if that is known.
    pub(crate) fn at(&self, done: u64, all: Option<u64>) {
        let Some(bar) = &self.bar else { return };
        match all.filter(|all| *all > 0) {
            Some(all) if bar.length() != Some(all) => {
                bar.set_length(all);
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

    /// Takes the bar away, before the result is printed.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
