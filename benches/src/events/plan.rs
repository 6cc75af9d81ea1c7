//! The plan of the events benchmark.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cases::Cases;

pub(super) const ABOUT: &str = "\
Compare appends to streams with the same updates as raw requests, long streams with short ones, and one stream with and
without coalescing, and measure the lag of a reader at the tail of the feed.";

pub(super) const DETAILS: &str = "\
Cases
  append_1             one task appends single events to its own stream
    append_16            16 tasks, each to its own stream
    append_64            64 tasks, each to its own stream
    load_snapshot        load a stream of 10,000 events with a snapshot, compared with one of 10 events
    load_snapshot_even   the same, with the Tips of both as full as possible (32 KiB)
    load_snapshot_full   the same, with a full Tip of the long stream only
    coalesced            64 tasks append to one stream, with concurrent appends coalesced
    tail                 5,000 events per second, an indexer, and a reader with data at the tail

  All cases use a directory and sync every write before it is acknowledged. Events have about 200 bytes. An append is one
  event through a decider whose state is cached, so that it is one request. The raw request (`hand`) is one UpdateItem,
  `SET e = list_append(e, :event), n = :next` if `n = :version`, on the same table, without encoding or folding. Items of both
  have the same size. Both start a new stream, or item, after 20 events.

  The Tips of both streams of load_snapshot hold 10 events, so that only the lengths differ; the Tip of load_snapshot_full
  holds 127, which must be read too, and so do both of load_snapshot_even. A load that takes more than one request fails.

  In coalesced, the 64 tasks share an Appender, compared with 64 tasks that append separately at any version, and
  (`alone_per_s`) with one task. In tail, everything is in one process: 50 tasks append 5 events at a time to 400 streams,
  and an indexer and a subscription poll at their default interval (`poll_ms`). The lag is measured from the response to the
  append to the event with its body at the reader, for as long as all rounds take together.

  Each case is one line of key=value. For appends, `times` is the ratio of the throughputs, measured in alternating rounds
  (of all rounds together), and `floor_times` is its minimum. For loads, `times` is the ratio of the load times of the long and
  the short stream, and `ceiling_times` is its maximum. For coalesced, `times` is the ratio to the tasks that append separately.
  For tail, `max_ms` is the longest lag. The exit code is 1 if a limit is missed, 2 for a usage error.";

/// One of the two sides of the append cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Side {
    Streams,
    RawRequests,
}

impl Side {
    pub(super) const ALL: [Self; 2] = [Self::Streams, Self::RawRequests];
}

/// The flags of the benchmark.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Run short rounds, for a first look
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    cases: Cases,

    /// Run only one side of the append cases, `streams` or `hand`, without floors, for a profiler
    #[arg(long, value_name = "SIDE")]
    side: Option<Side>,

    /// Number of rounds of each side [default: 21]; four times as many for appends
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,

    /// Length of a round, in milliseconds [default: 200]; half of it on average for appends
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    round_ms: Option<u64>,
}

/// The plan of a run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) cases: Cases,
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
            cases: flags.cases,
            only: flags.side,
            rounds: flags.rounds.unwrap_or(rounds),
            round: Duration::from_millis(flags.round_ms.unwrap_or(millis)),
        }
    }

    /// Whether a side runs.
    pub(super) fn takes(&self, side: Side) -> bool {
        self.only.is_none_or(|only| only == side)
    }
}
