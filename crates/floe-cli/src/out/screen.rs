//! The terminal that a stream is connected to: its width, and whether it shows colours.

use std::io::{self, IsTerminal};

use clap::builder::styling::{AnsiColor, Style};
use terminal_size::{Width, terminal_size_of};

/// The style of column names and of keys.
const NAME: Style = Style::new().bold();

/// The style of the program's name in front of a failure.
const FAILURE: Style = AnsiColor::Red.on_default().bold();

/// What the reader of a stream sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Screen {
    /// The width of the terminal in columns. `None` if the stream is not a terminal.
    pub(super) width: Option<usize>,
    /// Whether text may have styles.
    pub(super) is_styled: bool,
}

impl Screen {
    /// The screen of standard output.
    pub(super) fn stdout() -> Self {
        let stdout = io::stdout();
        let size = terminal_size_of(&stdout);
        Self {
            width: size.map(|(Width(columns), _)| usize::from(columns)),
            is_styled: stdout.is_terminal() && allows_styles(),
        }
    }

    /// The screen of standard error.
    pub(crate) fn stderr() -> Self {
        Self {
            width: None,
            is_styled: io::stderr().is_terminal() && allows_styles(),
        }
    }

    /// The name of a column, or a key.
    pub(super) fn name(self, text: &str) -> String {
        self.styled(NAME, text)
    }

    /// The program's name in front of a failure.
    pub(crate) fn failure(self, text: &str) -> String {
        self.styled(FAILURE, text)
    }

    fn styled(self, style: Style, text: &str) -> String {
        if self.is_styled && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

/// Whether the environment allows styles: `NO_COLOR` is empty or unset, and `TERM` names a terminal that has them.
fn allows_styles() -> bool {
    let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    value("NO_COLOR").is_none() && value("TERM").is_some_and(|terminal| terminal != "dumb")
}
