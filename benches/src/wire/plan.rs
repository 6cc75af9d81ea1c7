//! The plan of the wire benchmark.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::Store;
use super::process::{self, Server, Side};
use crate::Fallible;
use crate::cases::Cases;

pub(super) const ABOUT: &str = "\
Compare the server of DynamoDB's protocol with dynoxide-rs serving HTTP.";

pub(super) const DETAILS: &str = "\
Cases
  start_ms          time from the start of the process on an empty directory to the first response
    idle_mb           resident memory two seconds later
    STORE_OPERATION_N with STORE memory (nothing is stored on disk) or durable (a directory, with every write synced
                      before it is acknowledged), N of 1, 16 or 64 connections, and OPERATION of
      get             GetItem
      put             PutItem
      update          UpdateItem with a condition, SET of two attributes and ADD, UPDATED_NEW
      query_20        Query of 20 consecutive items
      transact_3      TransactWriteItems of a put and two updates, each with a condition
      batch_get_25    BatchGetItem of 25 items of 25 partitions
    STORE_rss_mb      resident memory after all of these

  Items have 1 KB and 13 attributes; there are 10,000 in partitions of 100. Each server is a separate process. One client on
  one thread keeps its connections open and sends requests like an SDK, each after the response to the previous one.
  Transactions carry no idempotency token, because dynoxide-rs scans all tokens of ten minutes for each. Before the measurement,
  both servers receive the same calls, and their responses must be equal. With --beside the responses are not compared, and
  rejected requests are reported.

  Each case is one line of key=value. `times` is the ratio of the throughputs, measured in alternating rounds (the median over
  the rounds). `…_cpu_us` is the CPU time of the server per request, including the kernel, and `cpu` is the ratio. `floor_cpu`
  is its maximum, `goal_cpu` its goal, and `floor_times` the minimum of `times`. The exit code is 1 if a floor is missed, 2 for a
  usage error.";

/// The flags of the benchmark.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Run short rounds, under a minute in total, for a first look
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    cases: Cases,

    /// Run only one side, `floe` or `dynoxide`, without floors, for a profiler
    #[arg(long, value_name = "SIDE", conflicts_with = "beside")]
    side: Option<Side>,

    /// Compare with this server instead of dynoxide-rs, in memory, without floors. {port} in the command is replaced by
    /// the port to listen on, as in `node node_modules/dynalite/cli.js --createTableMs 0 --port {port}`
    #[arg(long, value_name = "COMMAND", value_parser = parse_beside)]
    beside: Option<String>,

    /// Number of rounds of each side [default: 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,

    /// Length of a round, in milliseconds [default: 400]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    round_ms: Option<u64>,

    /// The program `floe` [default: the one next to this program]
    #[arg(long, value_name = "PATH")]
    floe: Option<PathBuf>,
}

/// The plan of a run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) cases: Cases,
    /// The only side to run, for a profiler.
    pub(super) only: Option<Side>,
    /// The command of the server that replaces dynoxide-rs.
    pub(super) beside: Option<String>,
    pub(super) rounds: u64,
    pub(super) round: Duration,
    /// Number of starts on an empty directory.
    pub(super) starts: u64,
    /// The program `floe`.
    program: PathBuf,
}

impl Plan {
    /// Returns the plan for the flags.
    ///
    /// # Errors
    ///
    /// If no program is given and none is next to this one.
    pub(super) fn of(flags: Flags) -> Result<Self, String> {
        let (rounds, millis, starts) = if flags.quick {
            (3, 90, 5)
        } else {
            (7, 400, 11)
        };
        let program = match flags.floe {
            Some(path) => path,
            None => process::program().map_err(|error| error.to_string())?,
        };
        Ok(Self {
            cases: flags.cases,
            only: flags.side,
            beside: flags.beside,
            rounds: flags.rounds.unwrap_or(rounds),
            round: Duration::from_millis(flags.round_ms.unwrap_or(millis)),
            starts,
            program,
        })
    }

    /// The stores to measure. Another server is measured in memory only, because durability differs too much between
    /// servers.
    pub(super) fn stores(&self) -> impl Iterator<Item = Store> {
        let stores = [Store::Memory, Store::Durable].into_iter();
        let is_other = self.beside.is_some();
        stores.filter(move |store| !is_other || *store == Store::Memory)
    }

    /// Starts the server of a side.
    pub(super) async fn start(&self, side: Side, folder: Option<&Path>) -> Fallible<Server> {
        Server::start(side, &self.program, self.beside.as_deref(), folder).await
    }

    /// The sides to measure.
    pub(super) fn sides(&self) -> Vec<Side> {
        if self.beside.is_some() {
            return vec![Side::Floe, Side::Other];
        }
        let sides = Side::ALL.into_iter();
        sides
            .filter(|side| self.only.is_none_or(|only| only == *side))
            .collect()
    }
}

/// Validates the command of a server, which must contain a placeholder for the port.
fn parse_beside(command: &str) -> Result<String, String> {
    if command.contains(process::PORT) {
        Ok(command.to_owned())
    } else {
        Err(format!(
            "the command has no placeholder for the port: placeholder={}",
            process::PORT
        ))
    }
}
