//! What the benchmark of models is asked to do.

use std::time::Duration;

use clap::{Args, ValueEnum};

pub(super) const ABOUT: &str = "\
Transactions of models beside the same requests made by hand, on the same engine.";

pub(super) const DETAILS: &str = "\
Cases
  memory_1          get an item, raise one field, commit; in memory, one task
  memory_64         the same of 64 tasks, each on an item of its own
  memory_two_1      two items read at one moment and raised in one commit, one task
  memory_get_20     20 items read at one moment, one task
  durable_64        as memory_64 on a directory, every write synced before it is answered
  durable_two_64    as memory_two_1 on a directory, 64 tasks, each on items of its own

By hand, an item is got by a consistent GetItem and raised by UpdateItem, `SET level = :new` if
`level = :old`; several by TransactGetItems and TransactWriteItems. Nothing is validated, stamped or
named by a token there, and nothing is tried again. Items have 8 fields and about 300 bytes.

Each case is one line of key=value. `times` tells how many times as long a model takes as the hand,
measured in alternating rounds (the median over the rounds); `floor_times` is the most that it may be.
`times_cpu` is the same of the time on a core, which does not hide behind waking threads and disks.
The program exits with 1 when a floor is missed, with 2 on a wrong argument.";

/// One of the two that stand side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Side {
    Model,
    Hand,
}

/// The flags of the benchmark.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Short rounds: for a first look
    #[arg(long)]
    quick: bool,

    /// Only the cases whose name begins so
    #[arg(long, value_name = "NAME")]
    case: Option<String>,

    /// Only `model` or only `hand`, without floors: for a profiler
    #[arg(long, value_name = "SIDE")]
    side: Option<Side>,

    /// Rounds of each side that count [default: 21]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,

    /// The length of a round [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    round_ms: Option<u64>,
}

/// What to run.
#[derive(Debug)]
pub(super) struct Plan {
    case: Option<String>,
    /// Only one of the two, for a profiler to look at.
    pub(super) only: Option<Side>,
    pub(super) rounds: u64,
    pub(super) round: Duration,
}

impl Plan {
    /// The plan that the flags ask for.
    pub(super) fn of(flags: Flags) -> Self {
        let (rounds, millis) = match flags.quick {
            true => (5, 100),
            // Many short ones: what disturbs the machine for a moment spoils few of them.
            false => (21, 200),
        };
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
