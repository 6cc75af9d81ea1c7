//! What the programs share: the command line, and claims that fail a program when they do not hold.
//!
//! The programs themselves are the files beside this one. Each is read from top to bottom, can be copied,
//! and ends with a failure if something that it says is not so: running them is a test.

#![forbid(unsafe_code)]

use std::ffi::OsString;

/// What a program returns, and the body of a transaction too: it holds any error, also of Floe.
pub type Fallible<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The arguments of the program; `None` if it was asked for its usage, which has been printed then.
///
/// # Errors
///
/// When there are more than `max` arguments, or a flag that no program has.
pub fn arguments(usage: &str, max: usize) -> Fallible<Option<Vec<OsString>>> {
    taken(std::env::args_os().skip(1).collect(), usage, max)
}

#[expect(clippy::print_stdout, reason = "the usage is what was asked for")]
fn taken(args: Vec<OsString>, usage: &str, max: usize) -> Fallible<Option<Vec<OsString>>> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{usage}");
        return Ok(None);
    }
    let is_flag = |arg: &&OsString| arg.to_string_lossy().starts_with('-');
    match args.iter().find(is_flag).or_else(|| args.get(max)) {
        Some(unknown) => Err(format!(
            "unknown argument: {}; see --help",
            unknown.to_string_lossy()
        )
        .into()),
        None => Ok(Some(args)),
    }
}

/// Fails the program unless what it claims is so.
///
/// # Errors
///
/// When it is not.
pub fn claim(is_so: bool, what: &str) -> Fallible {
    match is_so {
        true => Ok(()),
        false => Err(format!("this does not hold: {what}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &[&str], max: usize, expected: Result<Option<usize>, &str>) {
        let args = args.iter().map(OsString::from).collect();
        let actual = taken(args, "Usage: x", max).map(|args| args.map(|args| args.len()));
        let actual = actual.map_err(|error| error.to_string());
        assert_eq!(actual, expected.map_err(str::to_owned));
    }

    #[test]
    fn what_a_program_does_not_take_is_refused() {
        check(&[], 0, Ok(Some(0)));
        check(&["dir"], 1, Ok(Some(1)));
        check(&["--help"], 0, Ok(None));
        check(&["dir", "-h"], 1, Ok(None));
        check(&["dir"], 0, Err("unknown argument: dir; see --help"));
        check(&["a", "b"], 1, Err("unknown argument: b; see --help"));
        check(&["--fast"], 1, Err("unknown argument: --fast; see --help"));
        check(
            &["dir", "--fast"],
            2,
            Err("unknown argument: --fast; see --help"),
        );
    }

    #[test]
    fn a_claim_that_does_not_hold_is_told() {
        assert!(claim(true, "it rains").is_ok());
        let error = claim(false, "it rains").unwrap_err();
        assert_eq!(error.to_string(), "this does not hold: it rains");
    }
}
