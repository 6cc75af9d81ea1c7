//! The plan of the engine benchmark.

use std::time::Duration;

use clap::Args;

pub(super) const ABOUT: &str = "\
Compare the embedded engine with raw fjall and dynoxide-rs, all durable.";

pub(super) const DETAILS: &str = "\
Each case is one line of key=value. `vs_raw` and `vs_dynoxide` are ratios of throughput, measured in alternating rounds (the
median over the rounds); `floor_…` is the minimum of the ratio. The exit code is 1 if a floor is missed, 2 for a usage error.";

/// Minimum number of items in a table.
const ITEMS_MIN: u64 = 1000;

/// The flags of the benchmark.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Run short rounds with 10,000 items and growth to 100,000, for a first look
    #[arg(long)]
    quick: bool,

    /// Run only the cases whose name begins with NAME (get, query, put, transact, growth)
    #[arg(long, value_name = "NAME")]
    case: Option<String>,

    /// Run only the engine, without floors, for a profiler
    #[arg(long)]
    alone: bool,

    /// Number of items in the table [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(ITEMS_MIN..))]
    items: Option<u64>,

    /// Size of the largest table of the growth case, a power of ten [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(ITEMS_MIN..))]
    growth_to: Option<u64>,
}

/// The plan of a run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) items: u64,
    pub(super) growth_to: u64,
    case: Option<String>,
    /// Whether only the engine runs, for a profiler.
    pub(super) alone: bool,
    pub(super) rounds: usize,
    pub(super) round: Duration,
}

impl Plan {
    /// Returns the plan for the flags.
    pub(super) fn of(flags: Flags) -> Self {
        let quick = flags.quick;
        let pick = |quick_is: u64, full: u64| if quick { quick_is } else { full };
        Self {
            items: flags.items.unwrap_or(pick(10_000, 100_000)),
            growth_to: flags.growth_to.unwrap_or(pick(100_000, 1_000_000)),
            case: flags.case,
            alone: flags.alone,
            rounds: if quick { 3 } else { 7 },
            round: Duration::from_millis(pick(300, 700)),
        }
    }

    pub(super) fn wants(&self, case: &str) -> bool {
        self.case
            .as_deref()
            .is_none_or(|wanted| case.starts_with(wanted))
    }
}
