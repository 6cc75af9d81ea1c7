//! What the benchmark of events is asked to do.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cases::Cases;

pub(super) const ABOUT: &str = "\
Appends to streams beside the same updates made by hand, long streams beside short ones, one stream with
and without coalescing, and the delay of a reader at the tail of the feed.";

pub(super) const DETAILS: &str = "\
Cases
  append_1             one task appends an event at a time to a stream of its own
  append_16            16 tasks do
  append_64            64 tasks do
  load_snapshot        load a stream of 10,000 events with a snapshot, beside one of 10 events
  load_snapshot_even   the same where the Tips of both are as full as they may be (32 KiB)
  load_snapshot_full   the same where that of the long stream alone is
  coalesced            64 tasks append to one stream, together what comes at the same time
  tail                 5,000 events a second, an indexer, and a reader with data at the tail

All on a directory, every write synced before it is answered. Events have some 200 bytes. An append is
one event through a decider whose state is kept in memory, so that it is one request. By hand it is one
UpdateItem too, `SET e = list_append(e, :event), n = :next` if `n = :version`, on the same table; nothing is
folded or encoded there. Items of both are of the same size. Both begin a new stream, or item, after 20 events.

The Tips of both streams of load_snapshot hold 10 events, so that only the lengths differ; that of
load_snapshot_full holds 127, which must be read too, and so do both of load_snapshot_even. A load that
takes more than one request fails.

Of coalesced, the 64 tasks share an Appender, beside 64 tasks that append each for itself whatever the version
is, and (`alone_per_s`) beside one task. Of tail, all is in one process: 50 tasks append 5 events at a time to
400 streams, an indexer and a subscription look as often as they do by default (`poll_ms`). The
delay is from the answer to the append to the event with its body at the reader, for as long as all rounds
take together.

Each case is one line of key=value. Of appends, `times` is the ratio of the throughputs, measured in
alternating rounds (of all rounds together), and `floor_times` the least that it may be. Of loads,
`times` tells how many times as long the long stream takes, and `ceiling_times` the most that it may be. Of
coalesced it is the ratio to the tasks that append each for itself. Of tail, `max_ms` is the longest delay.
The program exits with 1 when one is missed, with 2 on a wrong argument.";

/// One of the two that append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Side {
    Streams,
    Hand,
}

impl Side {
    pub(super) const ALL: [Self; 2] = [Self::Streams, Self::Hand];
}

/// The flags of the benchmark.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Short rounds: for a first look
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    cases: Cases,

    /// Of appends only `streams` or only `hand`, without floors: for a profiler
    #[arg(long, value_name = "SIDE")]
    side: Option<Side>,

    /// Rounds of each side that count [default: 21]; of appends four times as many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,

    /// The length of a round [default: 200]; of appends half of it, on average
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    round_ms: Option<u64>,
}

/// What to run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) cases: Cases,
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
            cases: flags.cases,
            only: flags.side,
            rounds: flags.rounds.unwrap_or(rounds),
            round: Duration::from_millis(flags.round_ms.unwrap_or(millis)),
        }
    }

    /// Whether a side takes part.
    pub(super) fn takes(&self, side: Side) -> bool {
        self.only.is_none_or(|only| only == side)
    }
}
