//! The program `floe`: one file per command, with its flags, its help and its implementation.

mod backup;
mod bench;
mod changes;
mod commands;
mod completions;
mod confirm;
mod demo;
mod doctor;
mod duration;
mod events;
mod export;
mod failure;
mod feed;
mod graph;
mod health;
mod import;
mod indexer;
mod input;
mod item;
mod out;
mod pages;
mod query;
mod registry;
mod scan;
mod secrets;
mod serve;
mod signals;
mod store;
mod table;
mod tables;
mod telemetry;
mod umask;
mod utc;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use commands::commands;
use confirm::confirm;
use duration::parse_duration;
use failure::Failure;
use input::{Input, JsonFormat, Placeholders, ResolvedPlaceholders, with_formats};
use out::items::{print_item, print_items};
use out::json::{AsArray, AsText, members, object, write_members};
use out::progress::Progress;
use out::table::escaped;
use out::value::{cell, item_cell};
use out::{Output, Table, bytes, grouped, print, print_json};
use signals::Signals;
use store::{
    EVENT_INTERVAL, EventTable, EventsArgs, IfMissing, OpenStore, Store, StoreArgs, block_on,
    check_not_file, check_store, describe, events_table, missing_table, multi_thread_runtime,
};

/// The account in resource names. Not all zeros: programs use 000000000000 as a placeholder for other accounts.
const ACCOUNT: &str = "100000000001";

/// A result whose error is a message for the user.
type Result<T = (), E = Failure> = std::result::Result<T, E>;

const AFTER_HELP: &str = "\
Get started:
  # fill and serve an example store
  floe demo
  # serve a directory over DynamoDB's protocol, for any AWS SDK
  floe serve --data ./shop
  # list the tables of a store
  floe table list --data ./shop

A store is a directory (--data), a server (--endpoint), or Amazon DynamoDB (--region, --profile, or the AWS environment \
variables). Results are written to standard output: as text, or as JSON with --json. Notes and errors are written to \
standard error.

Exit codes: 0 success; 1 failure; 2 usage error; 3 negative result: the item does not exist, the condition is false, the \
stream is at another version.";

/// The data layer for DynamoDB applications, from the command line.
#[derive(Debug, Parser)]
#[command(name = "floe", version, arg_required_else_help = true, after_help = AFTER_HELP)]
struct Floe {
    #[command(subcommand)]
    command: Command,
}

commands! {
    Demo(demo::Demo),
    Serve(serve::Serve),
    Table(table::TableCommand),
    Item(item::ItemCommand),
    Query(query::QueryCommand),
    Scan(scan::ScanCommand),
    Events(events::EventsCommand),
    Feed(feed::FeedCommand),
    Graph(graph::GraphCommand),
    Registry(registry::RegistryCommand),
    Changes(changes::ChangesCommand),
    Tables(tables::Tables),
    Export(export::Export),
    Import(import::Import),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Doctor(doctor::Doctor),
    Indexer(indexer::IndexerCommand),
    Bench(bench::Bench),
    Completions(completions::Completions),
    Man(completions::Man),
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    secrets::hide();
    umask::restrict();
    let floe = match Floe::try_parse_from(arguments()) {
        Ok(floe) => floe,
        Err(error) => return report_usage_error(&error),
    };
    match floe.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            note(&failure.to_string());
            failure.code()
        }
    }
}

/// The arguments of this process. AWS Lambda starts the program without arguments: there it runs the indexer.
fn arguments() -> Vec<OsString> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.len() == 1 && floe::changes::lambda::Runtime::is_lambda() {
        return arguments.into_iter().chain(["indexer".into()]).collect();
    }
    arguments
}

/// Prints a usage error in one line, or the help text if it was requested.
fn report_usage_error(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe is not an error: the reader has read enough.
        drop(error.print());
        return ExitCode::SUCCESS;
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        drop(error.print());
        return ExitCode::from(2);
    }
    let text = error.to_string();
    let paragraphs: Vec<_> = text.split("\n\n").map(single_line).collect();
    let lines = paragraphs.iter().filter_map(|part| {
        let is_tip = part.starts_with("tip: ").then_some(part.as_str());
        part.strip_prefix("error: ").or(is_tip)
    });
    let lines: Vec<_> = lines.collect();
    let usage = paragraphs
        .iter()
        .find_map(|part| part.strip_prefix("Usage: "));
    let command = usage.map_or_else(command_in_arguments, command_in_usage);
    note(&format!("{}; see {command} --help", lines.join("; ")));
    ExitCode::from(2)
}

/// The command named by the leading arguments.
fn command_in_arguments() -> String {
    let arguments = arguments().into_iter().skip(1);
    let names = arguments.map_while(|word| word.into_string().ok());
    let names = names.take_while(|word| !word.starts_with('-'));
    let names: Vec<String> = std::iter::once("floe".to_owned()).chain(names).collect();
    names.join(" ")
}

/// Returns the text of an argument if it is valid, the message otherwise.
fn validated(text: &str, is_valid: bool, message: &str) -> Result<String, String> {
    is_valid
        .then(|| text.to_owned())
        .ok_or_else(|| message.to_owned())
}

/// The part of a URL after `http://` or `https://`. `None` for other schemes.
fn without_scheme(address: &str) -> Option<&str> {
    let plain = address.strip_prefix("http://");
    plain.or_else(|| address.strip_prefix("https://"))
}

/// Joins the words of a text into one line.
fn single_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ")
}

/// The command named at the beginning of a usage line.
fn command_in_usage(usage: &str) -> String {
    let is_name = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_lowercase());
    let names: Vec<_> = usage.split(' ').take_while(is_name).collect();
    names.join(" ")
}

/// Prints a status line to standard output, for programs that wait for it.
fn print_status(line: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(writeln!(stdout, "floe: {line}").and_then(|()| stdout.flush()));
}

/// Reports the bytes that were dropped when the store was opened, if any.
fn note_recovery(recovery: floe_local::Recovery) {
    let dropped = recovery.dropped_bytes;
    if dropped > 0 {
        note(&format!(
            "the store was not closed cleanly: dropped the unacknowledged end of its journal: bytes={dropped}"
        ));
    }
}

/// Prints a note to standard error, for the user.
fn note(line: &str) {
    drop(writeln!(std::io::stderr().lock(), "floe: {line}"));
}
