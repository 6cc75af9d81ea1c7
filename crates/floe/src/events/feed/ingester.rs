//! Writes spans into the epochs of a partition.
//!
//! Any number of ingesters may write to a partition, and each may fail at any time. The following holds nevertheless:
//!
//! - an epoch is written only after the previous one was closed, and never after it was closed itself;
//! - an append fails if the epoch changed after the decision; then it is loaded and decided again;
//! - nothing is written twice. An ingester loads all epochs that were active since the oldest change it was given:
//!   earlier epochs cannot contain it.
//!
//! The epochs therefore contain every event once and in the order of its stream, if each ingester receives the
//! changes of a stream in order and at least once.

use std::collections::VecDeque;
use std::time::Duration;

use floe_store::Timestamp;

use super::checkpoint::Checkpoint;
use super::epoch::{EpochDecision, EpochEvent, EpochState, Gap, ingest};
use super::limits::{CLOCK_SKEW_MAX, CONFLICTS_MAX, EpochLimits};
use super::log::{Appended, EpochLog, Loaded};
use super::partition::Partition;
use super::span::Span;
use crate::error::{Error, ErrorKind, Result};

/// Writes spans into the epochs of a partition.
#[derive(Debug)]
pub struct Ingester<L: EpochLog> {
    log: L,
    partition: Partition,
    limits: EpochLimits,
    clock_skew_max: Duration,
    /// The loaded epochs, in order. The last one is active.
    chain: VecDeque<ChainedEpoch<L::Position>>,
}

/// A loaded epoch.
#[derive(Debug)]
struct ChainedEpoch<P> {
    epoch: u32,
    loaded: Loaded<EpochState, P>,
}

/// The result of ingesting spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestOutcome {
    /// Number of new events.
    pub events: u64,
    /// The end of the feed afterwards: a reader at this position has read all ingested events.
    pub checkpoint: Checkpoint,
}

impl<L: EpochLog> Ingester<L> {
    /// Creates an ingester without loaded epochs.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if a limit is out of range.
    pub fn new(log: L, partition: Partition, limits: EpochLimits) -> Result<Self> {
        limits.check()?;
        Ok(Self {
            log,
            partition,
            limits,
            clock_skew_max: CLOCK_SKEW_MAX,
            chain: VecDeque::new(),
        })
    }

    setters! {
        /// Maximum difference between its clock and the clock that stamps change records. Larger values load more
        /// epochs. Default: 5 minutes.
        pub fn clock_skew_max(skew: Duration) => clock_skew_max = skew;
    }

    /// Writes what is new in these spans, none of which was appended to its stream before `since`.
    ///
    /// After a failure, or if the future is dropped, some spans may have been written. Ingest all of them again.
    ///
    /// # Errors
    ///
    /// [`MissingEvents`](ErrorKind::MissingEvents) if events would be skipped,
    /// [`MaxResyncsExhausted`](ErrorKind::MaxResyncsExhausted) after too many conflicts, and failures of the log.
    pub async fn ingest(&mut self, spans: Vec<Span>, since: Timestamp) -> Result<IngestOutcome> {
        Ok(self.try_ingest(spans, since).await??)
    }

    /// As [`ingest`](Self::ingest), but returns gaps separately.
    pub(super) async fn try_ingest(
        &mut self,
        spans: Vec<Span>,
        since: Timestamp,
    ) -> Result<Result<IngestOutcome, Gap>> {
        self.open().await?;
        self.adjust_chain(since).await?;
        let mut batch = PendingSpans {
            spans,
            events: 0,
            conflicts: 0,
            is_fresh: false,
        };
        while !batch.spans.is_empty() {
            if let Err(gap) = self.step(&mut batch).await? {
                return Ok(Err(gap));
            }
        }
        Ok(Ok(IngestOutcome {
            events: batch.events,
            checkpoint: self.end()?,
        }))
    }

    /// Advances a batch by one step: a write, a refresh after a conflict, or the next epoch.
    async fn step(&mut self, batch: &mut PendingSpans) -> Result<Result<(), Gap>> {
        let decision = match self.decide(batch.spans.clone())? {
            Ok(decision) => decision,
            Err(gap) if batch.is_fresh => return Ok(Err(gap)),
            // Another ingester may have written the missing events.
            Err(_) => {
                batch.is_fresh = true;
                return self.refresh().await.map(Ok);
            }
        };
        let events = decision.events();
        if !events.is_empty() {
            if !self.append(&events).await? {
                batch.conflicts += 1;
                if batch.conflicts >= CONFLICTS_MAX {
                    return Err(exhausted("$AppendsEpoch", self.partition));
                }
                batch.is_fresh = true;
                return self.refresh().await.map(Ok);
            }
            batch.is_fresh = true;
            batch.events += new_events(&events);
        }
        batch.spans = decision.residual;
        if self.last()?.loaded.state.is_closed() {
            self.advance().await?;
            batch.is_fresh = true;
        }
        Ok(Ok(()))
    }

    /// Finds the active epoch, and records it in the index if necessary.
    async fn open(&mut self) -> Result<()> {
        if !self.chain.is_empty() {
            return Ok(());
        }
        let active = self.log.load_index().await?.state.active(self.partition);
        self.record_active(active).await?;
        let link = self.load(active).await?;
        self.chain.push_back(link);
        Ok(())
    }

    /// Loads the epochs that may contain changes made since then, and drops earlier ones.
    async fn adjust_chain(&mut self, since: Timestamp) -> Result<()> {
        let skew = u64::try_from(self.clock_skew_max.as_millis()).unwrap_or(u64::MAX);
        let horizon = Timestamp::from_millis(since.as_millis().saturating_sub(skew));
        let is_before = |link: &ChainedEpoch<L::Position>| {
            let started = link.loaded.state.started();
            started.is_some_and(|started| started < horizon)
        };
        // An epoch was written completely before the next one started.
        while self.chain.get(1).is_some_and(is_before) {
            self.chain.pop_front();
        }
        while let Some(first) = self.chain.front()
            && !is_before(first)
            && let Some(before) = first.epoch.checked_sub(1)
        {
            let link = self.load(before).await?;
            self.chain.push_front(link);
        }
        Ok(())
    }

    async fn load(&self, epoch: u32) -> Result<ChainedEpoch<L::Position>> {
        let loaded = self.log.load_epoch(self.partition, epoch).await?;
        Ok(ChainedEpoch { epoch, loaded })
    }

    /// Decides which spans the last epoch accepts.
    fn decide(&self, spans: Vec<Span>) -> Result<Result<EpochDecision, Gap>> {
        let earlier = |stream: &_| {
            let mut newest_first = self.chain.iter().rev().skip(1);
            newest_first.find_map(|link| link.loaded.state.next_index(stream))
        };
        let state = &self.last()?.loaded.state;
        Ok(ingest(state, earlier, spans, &self.limits))
    }

    /// Appends to the last epoch. Returns `false` after a conflict.
    async fn append(&mut self, events: &[EpochEvent]) -> Result<bool> {
        let (log, partition) = (&self.log, self.partition);
        let Some(link) = self.chain.back_mut() else {
            return Ok(false);
        };
        let expected = &link.loaded.position;
        let appended = log
            .append_epoch(partition, link.epoch, events, expected)
            .await?;
        match appended {
            Appended::Conflict => Ok(false),
            Appended::Written { position, time } => {
                for event in events {
                    link.loaded.state.apply(event, time)?;
                }
                link.loaded.position = position;
                Ok(true)
            }
        }
    }

    /// Loads what other ingesters wrote to the last epoch.
    async fn refresh(&mut self) -> Result<()> {
        // If this future is dropped, the epoch is found again as the successor of the then last one.
        if let Some(ChainedEpoch { epoch, loaded }) = self.chain.pop_back() {
            let refreshed = self.log.refresh_epoch(self.partition, epoch, loaded);
            let loaded = refreshed.await?;
            self.chain.push_back(ChainedEpoch { epoch, loaded });
        }
        Ok(())
    }

    /// Moves to the epoch after the closed last one.
    async fn advance(&mut self) -> Result<()> {
        let closed = self.last()?.epoch;
        let next = closed.checked_add(1).ok_or_else(|| {
            let message = format!(
                "a partition has no more epochs: partition={}",
                self.partition
            );
            Error::new(ErrorKind::TooLarge, message)
        })?;
        self.record_active(next).await?;
        let link = self.load(next).await?;
        self.chain.push_back(link);
        Ok(())
    }

    /// Records in the index that an epoch is active.
    async fn record_active(&self, epoch: u32) -> Result<()> {
        for _ in 0..CONFLICTS_MAX {
            let Loaded { state, position } = self.log.load_index().await?;
            let Some(event) = state.start(self.partition, epoch) else {
                return Ok(());
            };
            let mut after = state;
            after.apply(event.clone());
            let appended = self.log.append_index(&event, &after, &position).await?;
            if matches!(appended, Appended::Written { .. }) {
                return Ok(());
            }
        }
        Err(exhausted("$AppendsIndex", self.partition))
    }

    /// The end of the feed, as far as known.
    fn end(&self) -> Result<Checkpoint> {
        let ChainedEpoch { epoch, loaded } = self.last()?;
        Checkpoint::of(*epoch, loaded.state.version())
    }

    /// The active epoch. Exists after the first step.
    fn last(&self) -> Result<&ChainedEpoch<L::Position>> {
        self.chain.back().ok_or_else(|| {
            let message = format!("no epoch is open: partition={}", self.partition);
            Error::new(ErrorKind::InvalidUse, message)
        })
    }
}

/// Spans that are being ingested.
struct PendingSpans {
    /// The remaining spans.
    spans: Vec<Span>,
    /// Number of events written.
    events: u64,
    conflicts: u32,
    /// Whether the last epoch was loaded or written since the batch started.
    is_fresh: bool,
}

fn new_events(events: &[EpochEvent]) -> u64 {
    let count = |event: &EpochEvent| match event {
        EpochEvent::Ingested(ingested) => {
            let types = ingested.spans().map(|span| span.types.len() as u64);
            types.sum()
        }
        EpochEvent::Closed => 0,
    };
    events.iter().map(count).sum()
}

fn exhausted(category: &str, partition: Partition) -> Error {
    let message = format!(
        "gave up after conflicts in the feed: category={category} partition={partition} conflicts={CONFLICTS_MAX}"
    );
    Error::new(ErrorKind::MaxResyncsExhausted, message)
}

#[cfg(test)]
mod tests;
