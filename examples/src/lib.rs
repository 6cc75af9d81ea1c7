//! Common parts of the programs: the command line, and claims, which fail a program if they do not hold.
//!
//! The programs are the other files of this folder. Each is read from top to bottom, can be copied, and fails if one of
//! its claims does not hold: running them is a test.

#![forbid(unsafe_code)]

use std::ffi::OsString;

/// The result of a program and of transaction bodies. It holds any error, including those of Floe.
pub type Fallible<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Returns the arguments of the program; `None` if it printed its usage because of `--help`.
///
/// # Errors
///
/// If there are more than `max` arguments, or a flag.
pub fn arguments(usage: &str, max: usize) -> Fallible<Option<Vec<OsString>>> {
    checked(std::env::args_os().skip(1).collect(), usage, max)
}

#[expect(clippy::print_stdout, reason = "prints the usage on request")]
fn checked(args: Vec<OsString>, usage: &str, max: usize) -> Fallible<Option<Vec<OsString>>> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{usage}");
        return Ok(None);
    }
    let is_flag = |arg: &&OsString| arg.to_string_lossy().starts_with('-');
    match args.iter().find(is_flag).or_else(|| args.get(max)) {
        Some(unknown) => Err(format!(
            "unknown argument: {}: see --help",
            unknown.to_string_lossy()
        )
        .into()),
        None => Ok(Some(args)),
    }
}

/// Fails the program if a claim does not hold.
///
/// # Errors
///
/// If the claim does not hold.
pub fn claim(holds: bool, what: &str) -> Fallible {
    if holds {
        Ok(())
    } else {
        Err(format!("claim does not hold: {what}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &[&str], max: usize, expected: Result<Option<usize>, &str>) {
        let args = args.iter().map(OsString::from).collect();
        let actual = checked(args, "Usage: x", max).map(|args| args.map(|args| args.len()));
        let actual = actual.map_err(|error| error.to_string());
        assert_eq!(actual, expected.map_err(str::to_owned));
    }

    #[test]
    fn unknown_arguments_are_rejected() {
        check(&[], 0, Ok(Some(0)));
        check(&["dir"], 1, Ok(Some(1)));
        check(&["--help"], 0, Ok(None));
        check(&["dir", "-h"], 1, Ok(None));
        check(&["dir"], 0, Err("unknown argument: dir: see --help"));
        check(&["a", "b"], 1, Err("unknown argument: b: see --help"));
        check(&["--fast"], 1, Err("unknown argument: --fast: see --help"));
        check(
            &["dir", "--fast"],
            2,
            Err("unknown argument: --fast: see --help"),
        );
    }

    #[test]
    fn failed_claim_is_an_error() {
        assert!(claim(true, "it rains").is_ok());
        let error = claim(false, "it rains").unwrap_err();
        assert_eq!(error.to_string(), "claim does not hold: it rains");
    }
}
