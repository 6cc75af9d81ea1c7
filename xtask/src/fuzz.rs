//! Fuzzing of all parsers, on the stable toolchain.
//!
//! The targets are in the package `fuzz/`. They are built here with the compiler's own coverage pass instead of
//! `cargo-fuzz`, which would need another toolchain; libFuzzer comes with the crate `libfuzzer-sys` and needs a C++
//! compiler.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, value_parser};

use crate::{Failure, figures, note};

const TARGETS: &[(&str, &str)] = &[
    ("number", "numbers from text and bytes"),
    (
        "expression",
        "conditions, updates, projections and key conditions from text",
    ),
    (
        "item",
        "stored items, change records and catalog entries from bytes",
    ),
    ("key", "stored keys from bytes"),
    ("recovery", "opening a directory with damaged files"),
    ("wire", "calls of DynamoDB's protocol from JSON"),
];

/// The compiler flags for libFuzzer's coverage.
const COVERAGE: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// The name of the command.
pub(crate) const NAME: &str = "fuzz";

const TARGET: &str = "target";
const SECONDS: &str = "seconds";

/// The command with its flags.
pub(crate) fn command() -> clap::Command {
    let names = TARGETS.iter().map(|(name, _)| *name);
    clap::Command::new(NAME)
        .about("Fuzz the parsers with generated input, guided by coverage")
        .after_help(after_help())
        .arg(
            Arg::new(TARGET)
                .value_name("TARGET")
                .value_parser(PossibleValuesParser::new(names))
                .hide_possible_values(true)
                .help("Run only this target"),
        )
        .arg(
            Arg::new(SECONDS)
                .long(SECONDS)
                .value_name("N")
                .value_parser(value_parser!(u64))
                .default_value("60")
                .help("Duration of each target in seconds"),
        )
}

/// Runs the selected targets.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let only = matches.get_one::<String>(TARGET);
    let seconds = matches.get_one(SECONDS).copied().unwrap_or_default();
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("fuzz");
    let built = build(&folder)?;
    let mut ok = true;
    for (name, _) in TARGETS.iter().filter(|(name, _)| wanted(name)) {
        ok &= fuzz(&folder, &built, name, seconds)?;
    }
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn after_help() -> String {
    let mut text = String::from("Targets:\n");
    for (name, what) in TARGETS {
        text += &format!("  {name:<12} {what}\n");
    }
    text + "\nEach target prints one line of figures. An input that causes a failure is kept below fuzz/artifacts/;\n\
            the next run continues with the corpus below fuzz/corpus/."
}

/// Builds all targets and returns their folder.
fn build(folder: &Path) -> Result<PathBuf, Failure> {
    note("building the fuzz targets");
    let triple = host_triple()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // With an explicit target triple, the flags do not apply to build scripts.
    let status = Command::new(cargo)
        .current_dir(folder)
        .args([
            "build",
            "--quiet",
            "--release",
            "--bins",
            "--target",
            &triple,
        ])
        .env("RUSTFLAGS", COVERAGE)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .status()?;
    if !status.success() {
        return Err(Failure("cannot build the fuzz targets".to_owned()));
    }
    Ok(folder.join("target").join(triple).join("release"))
}

fn host_triple() -> Result<String, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| Failure("`rustc -vV` prints no host".to_owned()))
}

/// Runs one target. Returns whether it found nothing.
fn fuzz(folder: &Path, built: &Path, name: &str, seconds: u64) -> Result<bool, Failure> {
    note(&format!("fuzzing: target={name} seconds={seconds}"));
    let corpus = folder.join("corpus").join(name);
    let artifacts = folder.join("artifacts").join(name);
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&artifacts)?;
    let seeds = folder.join("seeds").join(name);
    let mut command = Command::new(built.join(name));
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args([
            "-print_final_stats=1",
            "-rss_limit_mb=2048",
            "-timeout=20",
            "-verbosity=1",
        ])
        .arg(&corpus)
        .stdin(Stdio::null());
    if seeds.is_dir() {
        command.arg(seeds);
    }
    let output = command.output()?;
    let log = String::from_utf8_lossy(&output.stderr);
    let found = !output.status.success();
    if found {
        let tail: Vec<_> = log.lines().rev().take(60).collect();
        for line in tail.iter().rev() {
            note(line);
        }
    }
    let runs = log
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    figures(&format!(
        "fuzz={name} seconds={seconds} runs={} findings={}",
        runs.map_or("unknown", str::trim),
        u8::from(found),
    ));
    Ok(!found)
}
