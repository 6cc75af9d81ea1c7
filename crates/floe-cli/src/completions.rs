//! `floe completions` and `floe man`: shell completions and man pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{Failure, Floe, Result, print};

/// Print a shell completion script
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe completions bash > ~/.local/share/bash-completion/completions/floe
  floe completions zsh > ~/.zfunc/_floe
  floe completions fish > ~/.config/fish/completions/floe.fish")]
pub(super) struct Completions {
    /// Shell to complete for
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Write the man pages of all commands
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe man ~/.local/share/man/man1
  man floe-serve")]
pub(super) struct Man {
    /// Existing directory to write to
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Completions {
    pub(super) fn run(&self) -> Result {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Floe::command(), "floe", &mut text);
        print(text.trim_ascii_end())
    }
}

impl Man {
    pub(super) fn run(&self) -> Result {
        let shown = self.folder.display();
        if !self.folder.is_dir() {
            return Err(Failure::failed(format!(
                "there is no such directory: path={shown}; create it first"
            )));
        }
        clap_mangen::generate_to(Floe::command(), &self.folder).map_err(|error| {
            Failure::failed(format!(
                "the man pages could not be written, {error}: path={shown}"
            ))
        })?;
        print(format!("written: man pages in {shown}"))
    }
}
