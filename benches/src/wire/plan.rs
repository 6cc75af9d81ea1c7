//! What the benchmark of the wire is asked to do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::Store;
use super::process::{self, Server, Side};
use crate::Fallible;
use crate::cases::Cases;

pub(super) const ABOUT: &str = "\
The server of DynamoDB's protocol beside dynoxide-rs serving HTTP.";

pub(super) const DETAILS: &str = "\
Cases
  start_ms          from the start of the process on an empty directory to the first answer
  idle_mb           resident memory two seconds after that
  STORE_OPERATION_N with STORE memory (nothing is kept) or durable (a directory, every write synced
                    before it is answered), N connections of 1, 16, 64, and OPERATION of
    get             GetItem
    put             PutItem
    update          UpdateItem with a condition, SET of two attributes and ADD, UPDATED_NEW
    query_20        Query of 20 consecutive items
    transact_3      TransactWriteItems of a put and two updates, each with a condition
    batch_get_25    BatchGetItem of 25 items of 25 partitions
  STORE_rss_mb      resident memory after all of that

Items have 1 KB and 13 attributes; there are 10,000 in partitions of 100. Both servers are processes of
their own. One client on one thread keeps its connections open and sends requests as an SDK does, each
the next one when the one before it is answered; transactions carry no token, because dynoxide-rs looks
through all tokens of ten minutes at each. Before the measuring, both servers answer the same calls,
and their answers must be equal. With --beside nothing is compared, and what the other refuses is told so.

Each case is one line of key=value. `times` is the ratio of the throughputs, measured in alternating
rounds (the median over the rounds). `…_cpu_us` is the time that the server was on a core for each
request, in the kernel too, and `cpu` their ratio. `floor_cpu` is the most that it may be, `goal_cpu` what
it should be, `floor_times` the least that `times` may be. The program exits with 1 when a floor is
missed, with 2 on a wrong argument.";

/// The flags of the benchmark.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Short rounds, under a minute in total: for a first look
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    cases: Cases,

    /// Only `floe` or only `dynoxide`, without floors: for a profiler
    #[arg(long, value_name = "SIDE", conflicts_with = "beside")]
    side: Option<Side>,

    /// This server instead of dynoxide-rs, in memory, without floors: for what you use today; {port} in the command is
    /// where it is to listen, as in `node node_modules/dynalite/cli.js --createTableMs 0 --port {port}`
    #[arg(long, value_name = "COMMAND", value_parser = parse_beside)]
    beside: Option<String>,

    /// Rounds of each side that count [default: 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,

    /// The length of a round [default: 400]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    round_ms: Option<u64>,

    /// The program `floe` [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    floe: Option<PathBuf>,
}

/// What to run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) cases: Cases,
    /// Only one of the two, for a profiler to look at.
    pub(super) only: Option<Side>,
    /// The command of the server that takes the place of dynoxide-rs.
    pub(super) beside: Option<String>,
    pub(super) rounds: u64,
    pub(super) round: Duration,
    /// How often servers are started on an empty directory.
    pub(super) starts: u64,
    /// The program `floe`.
    program: PathBuf,
}

impl Plan {
    /// The plan that the flags ask for.
    ///
    /// # Errors
    ///
    /// When no program is named and there is none beside this one.
    pub(super) fn of(flags: Flags) -> Result<Self, String> {
        let (rounds, millis, starts) = match flags.quick {
            true => (3, 90, 5),
            false => (7, 400, 11),
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

    /// Where the items are kept. What is durable differs too much from one to the next to be compared unseen.
    pub(super) fn stores(&self) -> impl Iterator<Item = Store> {
        let stores = [Store::Memory, Store::Durable].into_iter();
        let is_other = self.beside.is_some();
        stores.filter(move |store| !is_other || *store == Store::Memory)
    }

    /// Starts the server of a side.
    pub(super) async fn start(&self, side: Side, folder: Option<&Path>) -> Fallible<Server> {
        Server::start(side, &self.program, self.beside.as_deref(), folder).await
    }

    /// The sides that take part.
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

/// The command of a server, with a place for the port.
fn parse_beside(command: &str) -> Result<String, String> {
    match command.contains(process::PORT) {
        true => Ok(command.to_owned()),
        false => Err(format!("it needs {} where the port belongs", process::PORT)),
    }
}
