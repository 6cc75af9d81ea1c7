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
use out::screen::Screen;
use out::table::escaped;
use out::value::{cell, item_cell};
use out::{Output, OutputStream, Table, bytes, grouped, print, print_json};
use signals::Signals;
use store::{
    EVENT_INTERVAL, EventTable, EventsArgs, IN_USE_HINT, IfMissing, NO_STORE_HINT, OpenStore,
    Store, StoreArgs, block_on, check_not_file, check_store, describe, events_table, missing_table,
    multi_thread_runtime, open_failure,
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

A store is a directory (--data), a server (--endpoint), or Amazon DynamoDB, which is used only if --aws, --region or \
--profile is given. Results are written to standard output: as text, or as JSON with --json. Notes and errors are written to \
standard error.

On a terminal, tables are fitted to its width: wide columns are truncated, and if it is too narrow, each row becomes a list. \
Elsewhere, tables are complete. NO_COLOR=1 disables colours and bold text.

--json prints items as plain JSON: {\"id\":\"a\",\"n\":5}. Sets, bytes, and numbers that a float does not hold exactly, have no \
plain form and are printed with their types: {\"SS\":[\"a\"]}, {\"B\":\"AQ==\"}, {\"N\":\"9007199254740993\"}. As input, such items are \
ambiguous and rejected. --json=dynamodb prints all items so that `floe item put` and `floe import` read the same items back.

Exit codes: 0 success; 1 failure, also if the output cannot be written; 2 usage error; 3 negative result: the item, the index or \
the stream does not exist, the condition is false, the stream is at another version. If the reader closes the pipe, the command \
ends with 0.";

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
        Err(failure) => report_failure(&failure),
    }
}

/// Prints a failure, unless the reader of standard output has read enough. Returns the exit code.
fn report_failure(failure: &Failure) -> ExitCode {
    if !failure.is_closed_pipe() {
        let name = Screen::stderr().failure("floe:");
        drop(writeln!(std::io::stderr().lock(), "{name} {failure}"));
    }
    failure.code()
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
        return match print(error.render().to_string().trim_end()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => report_failure(&failure),
        };
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
    let is_conflict = error.kind() == clap::error::ErrorKind::ArgumentConflict;
    let variable = if is_conflict && has_endpoint_in_environment() {
        format!("; {} is set in the environment", store::ENDPOINT_VARIABLE)
    } else {
        String::new()
    };
    report_failure(&Failure::Usage(format!(
        "{}{variable}; see {command} --help",
        lines.join("; ")
    )))
}

/// Whether the endpoint comes from the environment, where the user may have forgotten it.
fn has_endpoint_in_environment() -> bool {
    let is_argument = |word: OsString| word.to_string_lossy().starts_with("--endpoint");
    std::env::var_os(store::ENDPOINT_VARIABLE).is_some()
        && !arguments().into_iter().any(is_argument)
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
fn print_status(line: &str) -> Result {
    print(format!("floe: {line}"))
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
