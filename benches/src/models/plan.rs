//! The plan of the models benchmark.

use std::time::Duration;

use clap::{Args, ValueEnum};

pub(super) const ABOUT: &str = "\
Compare transactions of models with the same requests made directly, on the same engine.";

pub(super) const DETAILS: &str = "\
Cases
  memory_1          get an item, raise one field, commit; in memory, one task
    memory_64         the same with 64 tasks, each on its own item
    memory_two_1      read two items together and raise both in one commit, one task
    memory_get_20     read 20 items together, one task
    durable_64        like memory_64, in a directory, with every write synced before it is acknowledged
    durable_two_64    like memory_two_1, in a directory, 64 tasks, each on its own items

  The raw requests (`hand`) read an item with a consistent GetItem and raise it with UpdateItem, `SET level = :new` if
  `level = :old`; several items with TransactGetItems and TransactWriteItems. They do not validate, stamp or retry, and have no
  idempotency token. Items have 8 fields and about 300 bytes.

  Each case is one line of key=value. `times` is the time of a model relative to raw requests, measured in alternating rounds
  (the median over the rounds); `floor_times` is its maximum. `times_cpu` is the same for CPU time, which does not include
  waiting for threads and disks. The exit code is 1 if a floor is missed, 2 for a usage error.";

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Side {
    Model,
    Hand,
}

/// The flags of the benchmark.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Run short rounds, for a first look
    #[arg(long)]
    quick: bool,

    /// Run only the cases whose name begins with NAME
    #[arg(long, value_name = "NAME")]
    case: Option<String>,

    /// Run only one side, `model` or `hand`, without floors, for a profiler
    #[arg(long, value_name = "SIDE")]
    side: Option<Side>,

    /// Number of rounds of each side [default: 21]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,

    /// Length of a round, in milliseconds [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    round_ms: Option<u64>,
}

/// The plan of a run.
#[derive(Debug)]
pub(super) struct Plan {
    case: Option<String>,
    /// The only side to run, for a profiler.
    pub(super) only: Option<Side>,
    pub(super) rounds: u64,
    pub(super) round: Duration,
}

impl Plan {
    /// Returns the plan for the flags.
    pub(super) fn of(flags: Flags) -> Self {
        // Many short rounds: a momentary disturbance of the machine affects few of them.
        let (rounds, millis) = if flags.quick { (5, 100) } else { (21, 200) };
        Self {
            case: flags.case,
            only: flags.side,
            rounds: flags.rounds.unwrap_or(rounds),
            round: Duration::from_millis(flags.round_ms.unwrap_or(millis)),
        }
    }

    pub(super) fn wants(&self, case: &str) -> bool {
        self.case
            .as_deref()
            .is_none_or(|wanted| case.starts_with(wanted))
    }
}
