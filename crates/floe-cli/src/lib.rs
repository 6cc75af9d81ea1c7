//! The program `floe`: one file per command, each with its flags, its help and what it does.

mod ask;
mod backup;
mod bench;
mod changes;
mod commands;
mod completions;
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
mod moment;
mod out;
mod pages;
mod place;
mod query;
mod registry;
mod scan;
mod secrets;
mod serve;
mod signals;
mod table;
mod tables;
mod telemetry;
mod umask;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use ask::confirm;
use commands::commands;
use duration::parse_duration;
use failure::Failure;
use input::{Form, Input, Placeholders, Resolved, with_forms};
use out::items::{print_item, print_items};
use out::json::{Each, Text, members, object, write_members};
use out::progress::Progress;
use out::table::escaped;
use out::value::{cell, item_cell};
use out::{Output, Table, bytes, grouped, print, print_json};
use place::{
    EVENT_INTERVAL, EventsArgs, IfMissing, Opened, Place, Store, StoreArgs, check_store, describe,
    events_table, missing_table, refuse_file, threads, wait_for,
};
use signals::Signals;

/// The account that stands in resource names. One of zeros is what programs name that mean somebody else's.
const ACCOUNT: &str = "100000000001";

/// What came of something that fails in words for people.
type Result<T = (), E = Failure> = std::result::Result<T, E>;

const AFTER_HELP: &str = "\
Begin with:
  # a shop to look at, filled and served
  floe demo
  # DynamoDB's protocol on a directory, for any AWS SDK
  floe serve --data ./shop
  # what is in a store
  floe table list --data ./shop

A store is a directory (--data), a server (--endpoint), or Amazon DynamoDB as the environment says (--region, --profile). \
Results go to the standard output: tables for people, JSON with --json. Notes and errors go to the standard error.

Exit codes: 0 done; 1 it could not be done; 2 called wrongly; 3 done, and what was asked for is not there or not so (no such \
item, a condition that does not hold, a stream at another version).";

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
        Err(error) => return refuse(&error),
    };
    match floe.command.run() {
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
    if arguments.len() == 1 && floe::changes::lambda::Runtime::is_here() {
        return arguments.into_iter().chain(["indexer".into()]).collect();
    }
    arguments
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
    let lines = paragraphs.iter().filter_map(|part| {
        let is_tip = part.starts_with("tip: ").then_some(part.as_str());
        part.strip_prefix("error: ").or(is_tip)
    });
    let lines: Vec<_> = lines.collect();
    let usage = paragraphs
        .iter()
        .find_map(|part| part.strip_prefix("Usage: "));
    let command = usage.map_or_else(called, command_of);
    note(&format!("{}; see {command} --help", lines.join("; ")));
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

/// The text of an argument, if it is fit. Says what it must be if not.
fn checked(text: &str, is_fit: bool, unfit: &str) -> Result<String, String> {
    is_fit
        .then(|| text.to_owned())
        .ok_or_else(|| unfit.to_owned())
}

/// What stands in an address behind the protocol of the web.
fn site(address: &str) -> Option<&str> {
    let plain = address.strip_prefix("http://");
    plain.or_else(|| address.strip_prefix("https://"))
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

/// Reports what opening a store has dropped, if it has.
fn note_recovery(recovery: floe_local::Recovery) {
    let dropped = recovery.dropped_bytes;
    if dropped > 0 {
        note(&format!(
            "the last process did not close the store: dropped the end of its journal, which was never acknowledged: \
             bytes={dropped}"
        ));
    }
}

/// Prints what is meant for people.
fn note(line: &str) {
    drop(writeln!(std::io::stderr().lock(), "floe: {line}"));
}
