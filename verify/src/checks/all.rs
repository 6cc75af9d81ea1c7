//! The command `verify all`: runs all checks, several in parallel.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::{CHECKS, Check, Common, CommonFlags, hostile, kill, soak};
use crate::{Failure, out};

/// The name of the command.
pub(super) const NAME: &str = "all";

/// Checks with a time limit as their floor. They run alone, because other load on the machine would distort them.
const TIMED: [&str; 3] = [kill::CHECK.name, hostile::CHECK.name, soak::CHECK.name];

/// The flags of this command besides the common ones.
#[derive(Debug, Args)]
struct Flags {
    /// Checks to run in parallel. Checks with a time limit run alone
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
}

/// The command that runs all checks.
pub(super) fn command() -> Command {
    let common = CommonFlags::augment_args(Command::new(NAME));
    Flags::augment_args(common).about("Run all checks")
}

/// Runs all checks.
pub(super) fn run(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let common = Common::of(flags, &[])?;
    let Flags { jobs } = Flags::from_arg_matches(flags)?;
    let (timed, others): (Vec<&Check>, Vec<_>) = CHECKS
        .into_iter()
        .partition(|check| TIMED.contains(&check.name));
    let mut missed = run_each(&common, &timed, 1);
    missed.extend(run_each(&common, &others, jobs));
    if missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    out::note(&format!(
        "checks that missed their floor: {}",
        missed.join(" ")
    ));
    Ok(ExitCode::FAILURE)
}

/// Runs checks, up to `jobs` in parallel. Returns the names of those that missed their floor.
fn run_each(common: &Common, checks: &[&Check], jobs: usize) -> Vec<&'static str> {
    let next = AtomicUsize::new(0);
    let missed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(check) = checks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let is_met = check.run_by_default(common).unwrap_or_else(|failure| {
                        out::note(&format!("{}: {failure}", check.name));
                        false
                    });
                    let mut missed = missed.lock().unwrap_or_else(PoisonError::into_inner);
                    missed.extend((!is_met).then_some(check.name));
                }
            });
        }
    });
    missed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Figures, Verdict};
    use super::super::no_flags;
    use super::*;

    const fn check(name: &'static str, prepare: super::super::Prepare) -> Check {
        Check {
            name,
            proves: "",
            how: "",
            planted: &[],
            flags: no_flags,
            prepare,
        }
    }

    #[test]
    fn all_checks_run_and_failures_are_listed() {
        let met = check("met", |_, _| {
            Ok(Box::new(|| {
                Ok(Verdict::new(Figures::new("met"), true, None))
            }))
        });
        let missed = check("missed", |_, _| {
            Ok(Box::new(|| {
                Ok(Verdict::new(Figures::new("missed"), false, None))
            }))
        });
        let broken = check("broken", |_, _| Err(Failure::broken("no disk")));
        let common = Common {
            quick: true,
            seed: 1,
            planted: None,
        };
        let checks = [&met, &missed, &met, &broken];
        for jobs in [0, 1, 2, 9] {
            let mut named = run_each(&common, &checks, jobs);
            named.sort_unstable();
            assert_eq!(named, ["broken", "missed"], "jobs={jobs}");
        }
    }

    #[test]
    fn timed_checks_exist() {
        let is_check = |name| CHECKS.iter().any(|check| check.name == name);
        assert!(TIMED.into_iter().all(is_check));
    }
}
