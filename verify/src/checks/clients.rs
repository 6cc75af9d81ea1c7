//! `verify clients`: unmodified DynamoDB clients work with `floe serve`.
//!
//! The programs are in `verify/clients`; they use the published client libraries, not our code.
//!
//! | file | contents |
//! |---|---|
//! | `drive` | a client and the servers it talks to |
//! | `install` | installs and caches boto3, the AWS CLI and the SDK for JavaScript |
//! | `server` | starts, kills and restarts `floe serve` |
//! | `program` | runs a client program and parses its output |
//! | `docs` | the commands of `docs/using-with-aws-sdks.md` |
//! | `proxy` | plants a bug between client and server |

mod docs;
mod drive;
mod install;
mod program;
mod proxy;
pub(super) mod server;

use std::path::PathBuf;
use std::time::Instant;

use clap::{ArgMatches, Args, FromArgMatches};

use super::figures::{Figures, Verdict};
use super::planted::Bug;
use super::{Check, CheckRun, Common, tool};
use crate::Failure;
use drive::{Client, drive_all};
use install::Installed;
use program::Outcome;

pub(super) const CHECK: Check = Check {
    name: "clients",
    proves: "boto3, the AWS CLI and the AWS SDK for JavaScript work with the server unchanged",
    how: "Programs for each of the three drive `floe serve`: tables, items, every form of expression, \
          pages, batches,\ntransactions, streams and expiry, and compare every response. During the run the server \
          is killed and\nrestarted. One run uses access keys, one does not; then every command of \
          docs/using-with-aws-sdks.md is run.\nNeeds python3, node, and access to PyPI and npm.",
    flags: Flags::augment_args,
    planted: &[Bug::ForgetfulServer, Bug::WrongAnswer, Bug::WrongChecksum],
    prepare,
};

/// Minimum number of scenarios of each client, over a round with keys and one without.
const SCENARIOS_MIN: usize = 30;
/// Minimum number of blocks of the document that are run.
const BLOCKS_MIN: usize = 8;

#[derive(Clone, Debug)]
struct Plan {
    planted: Option<Bug>,
    rounds: u64,
    floe: Option<PathBuf>,
    endpoint: Option<String>,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Rounds on the same data [default: 3; quick: 1]
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,

    /// Drive this binary instead of building it
    #[arg(long, value_name = "PATH")]
    floe: Option<PathBuf>,

    /// Drive another implementation, without killing it
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        planted: common.planted,
        rounds: flags.rounds.unwrap_or(common.pick(1, 3)),
        floe: flags.floe,
        endpoint: flags.endpoint,
    };
    if plan.planted.is_some() && plan.endpoint.is_some() {
        let message = "--planted: bugs can only be planted in our own server";
        return Err(Failure::usage(message));
    }
    Ok(Box::new(move || run(&plan)))
}

fn run(plan: &Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let floe = match (&plan.floe, &plan.endpoint) {
        (Some(floe), _) => std::path::absolute(floe)?,
        (None, Some(_)) => PathBuf::new(),
        (None, None) => tool::build_floe()?,
    };
    let installed = Installed::prepare()?;
    let clients = drive_all(plan, &floe, &installed)?;
    let is_documented = plan.planted.is_none() && plan.endpoint.is_none();
    let docs = if is_documented {
        docs::check(&floe, &installed)?
    } else {
        docs::Outcome::default()
    };
    let report = Report { clients, docs };
    let figures = report
        .figures(plan)
        .put("seconds", started.elapsed().as_secs());
    let planted = plan.planted.map(|_| report.is_found());
    Ok(Verdict::new(figures, report.is_clean(plan), planted))
}

/// The results of the whole check.
#[derive(Debug)]
struct Report {
    clients: Vec<(Client, Outcome)>,
    docs: docs::Outcome,
}

impl Report {
    fn figures(&self, plan: &Plan) -> Figures {
        let mut figures = Figures::new(CHECK.name);
        for (client, outcome) in &self.clients {
            figures = figures.put(client.name(), outcome.passed);
        }
        let total = |figure: fn(&Outcome) -> u64| {
            let figures = self.clients.iter().map(|(_, outcome)| figure(outcome));
            figures.sum::<u64>()
        };
        figures
            .put("docs", self.docs.run)
            .put("checks", total(|outcome| outcome.checks))
            .put("kills", total(|outcome| outcome.kills))
            .put("failed", self.failed())
            .put("rounds", plan.rounds)
    }

    fn failed(&self) -> usize {
        let clients = self.clients.iter();
        clients
            .map(|(_, outcome)| outcome.failed.len())
            .sum::<usize>()
            + self.docs.failed
    }

    /// Whether nothing failed and nothing was skipped.
    fn is_clean(&self, plan: &Plan) -> bool {
        self.failed() == 0 && (plan.endpoint.is_some() || self.is_whole(plan.rounds))
    }

    fn is_whole(&self, rounds: u64) -> bool {
        let is_whole =
            |outcome: &Outcome| outcome.passed >= SCENARIOS_MIN && outcome.kills >= rounds;
        let mut clients = self.clients.iter();
        self.docs.run >= BLOCKS_MIN && clients.all(|(_, outcome)| is_whole(outcome))
    }

    /// Whether every client affected by the planted bug has found it.
    fn is_found(&self) -> bool {
        let mut clients = self.clients.iter();
        !self.clients.is_empty() && clients.all(|(_, outcome)| !outcome.failed.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: usize, kills: u64, failed: &[&str]) -> Report {
        let outcome = || Outcome {
            planned: passed + failed.len(),
            passed,
            checks: 1,
            failed: failed.iter().map(|each| (*each).to_owned()).collect(),
            kills,
        };
        Report {
            clients: Client::ALL.map(|client| (client, outcome())).into(),
            docs: docs::Outcome {
                run: BLOCKS_MIN,
                failed: 0,
            },
        }
    }

    #[test]
    fn skipped_scenarios_fail_the_check() {
        let ours = Plan {
            planted: None,
            rounds: 1,
            floe: None,
            endpoint: None,
        };
        let mut other = ours.clone();
        other.endpoint = Some("http://127.0.0.1:8000".to_owned());
        let cases = [
            (report(SCENARIOS_MIN, 1, &[]), true, true),
            (report(SCENARIOS_MIN, 1, &["a: why"]), false, false),
            (report(SCENARIOS_MIN - 1, 1, &[]), false, true),
            (report(SCENARIOS_MIN, 0, &[]), false, true),
        ];
        for (report, is_clean, is_clean_elsewhere) in cases {
            assert_eq!(report.is_clean(&ours), is_clean, "{report:?}");
            assert_eq!(report.is_clean(&other), is_clean_elsewhere, "{report:?}");
        }
        assert!(report(0, 0, &["a: why"]).is_found());
        assert!(!report(1, 0, &[]).is_found());
    }
}
