//! What the benchmark of models is asked to do.

use std::time::Duration;

use crate::args::Args;

pub(super) const HELP: &str = "\
Transactions of models beside the same requests made by hand, on the same engine.

Usage: cargo xtask bench models [--quick] [--case NAME] [--side SIDE] [--rounds N] [--round-ms N]

Options
  --quick           short rounds: for a first look
  --case NAME       only the cases whose name begins so
  --side SIDE       only `model` or only `hand`, without floors: for a profiler
  --rounds N        rounds of each side that count (default 21)
  --round-ms N      the length of a round (default 200)

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Model,
    Hand,
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
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub(super) fn take(flags: &mut Args) -> Result<Self, String> {
        let (rounds, millis) = match flags.flag("--quick") {
            true => (5, 100),
            // Many short ones: what disturbs the machine for a moment spoils few of them.
            false => (21, 200),
        };
        let only = match flags.value("--side")?.as_deref() {
            None => None,
            Some("model") => Some(Side::Model),
            Some("hand") => Some(Side::Hand),
            Some(other) => return Err(format!("--side is model or hand: value={other}")),
        };
        Ok(Self {
            case: flags.value("--case")?,
            only,
            rounds: flags.number("--rounds", 1)?.unwrap_or(rounds),
            round: Duration::from_millis(flags.number("--round-ms", 1)?.unwrap_or(millis)),
        })
    }

    pub(super) fn wants(&self, case: &str) -> bool {
        self.case
            .as_deref()
            .is_none_or(|wanted| case.starts_with(wanted))
    }
}
