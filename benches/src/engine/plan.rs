//! What the benchmark of the engine is asked to do.

use std::time::Duration;

use crate::args::Args;

pub(super) const HELP: &str = "\
The embedded engine beside raw fjall and dynoxide-rs, all durable.

Usage: cargo xtask bench engine [--quick] [--case NAME] [--alone] [--items N] [--growth-to N]

Options
  --quick           short rounds, 10,000 items, growth to 100,000: for a first look
  --case NAME       only the cases whose name begins so (get, query, put, transact, growth)
  --alone           only the engine, without floors: for a profiler
  --items N         items in the table (default 100000)
  --growth-to N     the largest table of the growth case, a power of ten (default 1000000)

Each case is one line of key=value. `vs_raw` and `vs_dynoxide` are ratios of throughput, measured in
alternating rounds (the median over the rounds); `floor_…` is what the ratio must reach. The program
exits with 1 when a floor is missed, with 2 on a wrong argument.";

/// What to run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) items: u64,
    pub(super) growth_to: u64,
    case: Option<String>,
    /// Only the engine itself, for a profiler to look at.
    pub(super) alone: bool,
    pub(super) rounds: usize,
    pub(super) round: Duration,
}

impl Plan {
    /// The fewest items that make a table.
    const ITEMS_MIN: u64 = 1000;

    /// The plan that the flags ask for.
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub(super) fn take(flags: &mut Args) -> Result<Self, String> {
        let quick = flags.flag("--quick");
        let pick = |quick_is: u64, full: u64| if quick { quick_is } else { full };
        let items = flags.number("--items", Self::ITEMS_MIN)?;
        let growth_to = flags.number("--growth-to", Self::ITEMS_MIN)?;
        Ok(Self {
            items: items.unwrap_or(pick(10_000, 100_000)),
            growth_to: growth_to.unwrap_or(pick(100_000, 1_000_000)),
            case: flags.value("--case")?,
            alone: flags.flag("--alone"),
            rounds: if quick { 3 } else { 7 },
            round: Duration::from_millis(pick(300, 700)),
        })
    }

    pub(super) fn wants(&self, case: &str) -> bool {
        self.case
            .as_deref()
            .is_none_or(|wanted| case.starts_with(wanted))
    }
}
