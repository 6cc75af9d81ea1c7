//! The program `floe`: one file per command, each with its flags, its help and what it does.

mod serve;

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The data layer for DynamoDB applications, from the command line.
#[derive(Debug, Parser)]
#[command(name = "floe", version, arg_required_else_help = true)]
struct Floe {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let floe = match Floe::try_parse() {
        Ok(floe) => floe,
        Err(error) => return refuse(&error),
    };
    let done = match floe.command {
        Command::Serve(serve) => serve.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            note(&failure.to_string());
            failure.code()
        }
    }
}

/// Why a command did not do what it was asked to.
#[derive(Debug)]
enum Failure {
    /// It was called wrongly: exit code 2.
    Usage(String),
    /// It could not be carried out: exit code 1.
    Broken(String),
}

impl Failure {
    fn usage(message: impl fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    fn broken(message: impl fmt::Display) -> Self {
        Self::Broken(message.to_string())
    }

    fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Broken(_) => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(message) | Self::Broken(message)) = self;
        f.write_str(message)
    }
}

/// Answers arguments that are not understood, in one line, and those that ask for help, at length.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A reader that has gone away has read enough.
        drop(error.print());
        return ExitCode::SUCCESS;
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        drop(error.print());
        return ExitCode::from(2);
    }
    let text = error.to_string();
    let paragraphs: Vec<_> = text.split("\n\n").map(joined).collect();
    let told = paragraphs.iter().filter_map(|part| {
        let is_tip = part.starts_with("tip: ").then_some(part.as_str());
        part.strip_prefix("error: ").or(is_tip)
    });
    let told: Vec<_> = told.collect();
    let usage = paragraphs
        .iter()
        .find_map(|part| part.strip_prefix("Usage: "));
    let command = usage.map_or("floe".to_owned(), command_of);
    note(&format!("{}; see {command} --help", told.join("; ")));
    ExitCode::from(2)
}

/// Text in one line.
fn joined(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ")
}

/// The names of commands at the beginning of a line of usage.
fn command_of(usage: &str) -> String {
    let is_name = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_lowercase());
    let names: Vec<_> = usage.split(' ').take_while(is_name).collect();
    names.join(" ")
}

/// Prints what a program may read.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(writeln!(stdout, "floe: {line}").and_then(|()| stdout.flush()));
}

/// Prints what is meant for people.
fn note(line: &str) {
    drop(writeln!(std::io::stderr().lock(), "floe: {line}"));
}
