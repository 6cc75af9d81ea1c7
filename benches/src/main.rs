//! Benchmarks that print ratios measured side by side in one run, one line per case.
//!
//! A figure on its own says more about the machine than about the program, so every case runs against
//! something else doing the same work at the same time: the raw key-value store, or another emulator.
//! The exit code is non-zero when a floor is missed.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints figures"
)]

mod engine;
mod measure;

use std::process::ExitCode;

const HELP: &str = "\
Usage: floe-bench engine [--quick] [--case NAME] [--alone] [--items N] [--growth-to N]

  engine            the embedded engine beside raw fjall and dynoxide-rs, all durable

Options
  --quick           short rounds, 10,000 items, growth to 100,000: for a first look
  --case NAME       only the cases whose name begins so (get, query, put, transact, growth)
  --alone           only the engine, without floors: for a profiler
  --items N         items in the table (default 100000)
  --growth-to N     the largest table of the growth case, a power of ten (default 1000000)

Each case is one line of key=value. `vs_raw` and `vs_dynoxide` are ratios of throughput, measured in
alternating rounds (the median over the rounds); `floor_…` is what the ratio must reach. The program
exits with 1 when a floor is missed, with 2 on a wrong argument.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|a| a == "--help" || a == "-h") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let plan = match parse(&args) {
        Ok(plan) => plan,
        Err(message) => {
            eprintln!("floe-bench: {message}; try --help");
            return ExitCode::from(2);
        }
    };
    match engine::run(&plan) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("floe-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: &[String]) -> Result<engine::Plan, String> {
    let mut args = args.iter();
    match args.next().map(String::as_str) {
        Some("engine") => {}
        Some(other) => return Err(format!("unknown benchmark: name={other}")),
        None => return Err("which benchmark?".to_owned()),
    }
    let mut plan = engine::Plan::default();
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--quick" => plan.make_quick(),
            "--case" => plan.case = Some(value()?.clone()),
            "--alone" => plan.alone = true,
            "--items" => plan.items = number(flag, value()?)?,
            "--growth-to" => plan.growth_to = number(flag, value()?)?,
            _ => return Err(format!("unknown flag: flag={flag}")),
        }
    }
    Ok(plan)
}

fn number(flag: &str, text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(n) if n >= 1000 => Ok(n),
        _ => Err(format!(
            "{flag} needs a number of at least 1000: value={text}"
        )),
    }
}
