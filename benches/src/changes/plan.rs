//! The plan of the benchmark of the change router.

use std::time::Duration;

use clap::Args;

pub(super) const ABOUT: &str = "\
Measure how many changes per second a router delivers, compared with how many the engine commits.";

pub(super) const DETAILS: &str = "\
In each round, 64 writers put items into a directory, with every write synced before it is acknowledged. Then a consumer
delivers all changes of the round to a typed handler, with the images before and after the change, and stores its position.
The handler checks that the changes of each item arrive in order and once; otherwise the program fails.

Each line is key=value. `times` is the ratio of delivered to committed changes per second, the median over the rounds, and
`floor_times` is its minimum. The resident memory is printed at ten points. The caches and write buffers of the store have
8 MB each and fill in the first half; `ceiling_mib` is the maximum growth in the second half, and is `none` with fewer than
1,000,000 changes. The exit code is 1 if a limit is missed, 2 for a usage error.";

/// The flags of the benchmark.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Deliver 20,000 changes in short rounds, for a first look
    #[arg(long)]
    quick: bool,

    /// Number of changes to deliver [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    records: Option<u64>,

    /// Duration of the writes in a round, in milliseconds [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    round_ms: Option<u64>,
}

/// The plan of a run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) records: u64,
    pub(super) round: Duration,
}

impl Plan {
    /// Returns the plan for the flags.
    pub(super) fn of(flags: &Flags) -> Self {
        let (records, millis) = if flags.quick {
            (20_000, 100)
        } else {
            (1_000_000, 1_000)
        };
        Self {
            records: flags.records.unwrap_or(records),
            round: Duration::from_millis(flags.round_ms.unwrap_or(millis)),
        }
    }
}
