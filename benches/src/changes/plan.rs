//! What the benchmark of the change router is asked to do.

use std::time::Duration;

use clap::Args;

pub(super) const ABOUT: &str = "\
How many changes a router delivers in a second, beside how many the engine commits.";

pub(super) const DETAILS: &str = "\
In each round 64 writers put items into a directory, every write synced before it is answered; then a consumer gives
all changes of the round to a typed handler, with the image before and after, and stores how far it has come. The
handler sees that the changes of each item come in their order and once: if not, the program fails.

Each line is key=value. `times` is the ratio of the changes delivered in a second to those committed in a second, the
median over the rounds, and `floor_times` the least that it may be. The resident memory is printed at ten points on the
way. The caches and write buffers of the store have 8 MB each and fill in the first half; `ceiling_mib` is the most that it may grow in the second, and none
with fewer than 1,000,000 changes. The program exits with 1 when one is missed, with 2 on a wrong argument.";

/// The flags of the benchmark.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// 20,000 changes in short rounds: for a first look
    #[arg(long)]
    quick: bool,

    /// How many changes are delivered in all [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    records: Option<u64>,

    /// For how long writers write in a round [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    round_ms: Option<u64>,
}

/// What to run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) records: u64,
    pub(super) round: Duration,
}

impl Plan {
    /// The plan that the flags ask for.
    pub(super) fn of(flags: &Flags) -> Self {
        let (records, millis) = match flags.quick {
            true => (20_000, 100),
            false => (1_000_000, 1_000),
        };
        Self {
            records: flags.records.unwrap_or(records),
            round: Duration::from_millis(flags.round_ms.unwrap_or(millis)),
        }
    }
}
