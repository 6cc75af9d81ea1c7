//! The program `floe`: one file per command, each with its flags, its help and what it does.

#[cfg(feature = "feed")]
mod feed;
#[cfg(feature = "feed")]
mod graph;
#[cfg(feature = "feed")]
mod indexer;
#[cfg(feature = "feed")]
mod lambda;
#[cfg(feature = "feed")]
mod place;
mod serve;
mod signals;

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The account that stands in resource names. One of zeros is what programs name that mean somebody else's.
const ACCOUNT: &str = "100000000001";

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
    #[cfg(feature = "feed")]
    Indexer(indexer::IndexerCommand),
    #[cfg(feature = "feed")]
    Feed(feed::FeedCommand),
    #[cfg(feature = "feed")]
    Graph(graph::GraphCommand),
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    let floe = match Floe::try_parse_from(arguments()) {
        Ok(floe) => floe,
        Err(error) => return refuse(&error),
    };
    let done = match floe.command {
        Command::Serve(serve) => serve.run(),
        #[cfg(feature = "feed")]
        Command::Indexer(indexer) => indexer.run(),
        #[cfg(feature = "feed")]
        Command::Feed(feed) => feed.run(),
        #[cfg(feature = "feed")]
        Command::Graph(graph) => graph.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            note(&failure.to_string());
            failure.code()
        }
    }
}

/// The arguments of this process. AWS Lambda starts a program without any, and it is the indexer there.
fn arguments() -> Vec<OsString> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    #[cfg(feature = "feed")]
    if arguments.len() == 1 && floe::changes::lambda::Runtime::is_here() {
        return arguments.into_iter().chain(["indexer".into()]).collect();
    }
    arguments
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
    let command = usage.map_or_else(called, command_of);
    note(&format!("{}; see {command} --help", told.join("; ")));
    ExitCode::from(2)
}

/// The command that was called, by the names at the beginning of the arguments.
fn called() -> String {
    let arguments = arguments().into_iter().skip(1);
    let names = arguments.map_while(|word| word.into_string().ok());
    let names = names.take_while(|word| !word.starts_with('-'));
    let names: Vec<String> = std::iter::once("floe".to_owned()).chain(names).collect();
    names.join(" ")
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
