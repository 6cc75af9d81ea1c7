//! Benchmarks that print ratios measured side by side in one run, one line per case.
//!
//! A figure on its own says more about the machine than about the program, so every case runs against
//! something else doing the same work at the same time: the raw key-value store, another emulator, or the
//! same work written by hand. The exit code is non-zero when a floor is missed.
//!
//! | benchmark | what stands beside what | where |
//! |---|---|---|
//! | `changes` | changes that a router delivers, changes that the engine commits | [`changes`] |
//! | `engine` | the embedded engine, the raw key-value store, another emulator | [`engine`] |
//! | `events` | appends to streams, the same updates made by hand; a long stream, a short one | [`events`] |
//! | `graph` | requests of an include and of a lookup; pages of a long list, of a short one | [`graph`] |
//! | `models` | transactions of models, the same requests made by hand | [`models`] |
//! | `wire` | the server of DynamoDB's protocol, another emulator serving it | [`wire`] |

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints figures"
)]

mod args;
mod changes;
mod engine;
mod events;
mod graph;
mod measure;
mod models;
mod wire;

use std::error::Error;
use std::process::ExitCode;

use args::Args;

pub(crate) type Fallible<T> = Result<T, Box<dyn Error>>;

/// One of the benchmarks.
struct Benchmark {
    name: &'static str,
    help: &'static str,
    /// Takes its flags and makes of them the work to do, or tells what is wrong with them.
    prepare: fn(&mut Args) -> Result<Work, String>,
}

/// What a benchmark does; true if every floor was reached.
type Work = Box<dyn FnOnce() -> Fallible<bool>>;

const BENCHMARKS: [&Benchmark; 6] = [
    &changes::BENCHMARK,
    &engine::BENCHMARK,
    &events::BENCHMARK,
    &graph::BENCHMARK,
    &models::BENCHMARK,
    &wire::BENCHMARK,
];

/// A role that a benchmark starts this program in, which is no benchmark and in no list.
const SERVE_DYNOXIDE: &Benchmark = &wire::dynoxide::ROLE;

fn main() -> ExitCode {
    match dispatch(Args::new(std::env::args().skip(1))) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(work)) => match work() {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("floe-bench: {error}");
                ExitCode::FAILURE
            }
        },
        Err(message) => {
            eprintln!("floe-bench: {message}; try --help");
            ExitCode::from(2)
        }
    }
}

/// The work that the arguments ask for; none if they ask for help, which is printed.
fn dispatch(mut args: Args) -> Result<Option<Work>, String> {
    let name = args.command();
    let is_help = args.flag("--help") | args.flag("-h");
    let Some(name) = name else {
        if is_help {
            println!("{}", help());
            return Ok(None);
        }
        return Err("which benchmark?".to_owned());
    };
    let known = BENCHMARKS.into_iter().chain([SERVE_DYNOXIDE]);
    let benchmark = known.into_iter().find(|known| known.name == name);
    let benchmark = benchmark.ok_or_else(|| format!("unknown benchmark: name={name}"))?;
    if is_help {
        println!("{}", benchmark.help);
        return Ok(None);
    }
    let work = (benchmark.prepare)(&mut args)?;
    args.finish()?;
    Ok(Some(work))
}

fn help() -> String {
    let mut text = String::from("Usage: floe-bench NAME [flags]\n\nBenchmarks\n");
    for benchmark in BENCHMARKS {
        let what = benchmark.help.lines().next().unwrap_or_default();
        text += &format!("  {:<10} {what}\n", benchmark.name);
    }
    text + "\nThe flags of a benchmark: floe-bench NAME --help"
}
