//! Writing spans into the epochs of a partition.
//!
//! Any number of ingesters may write to one partition, and each may die at any moment. What holds all the same:
//!
//! - an epoch is written to only after the one before it was closed, and never after it was closed itself;
//! - an append fails if the epoch is not as it was when it was decided on; then it is loaded and decided on again;
//! - what is known is not written again. What an ingester knows reaches back to the epochs that were written to when
//!   the oldest change that it is brought was made: none before can have it.
//!
//! So the epochs hold every event once and in the order of its stream, if each ingester is brought the changes of a
//! stream in their order, each at least once.

use std::collections::VecDeque;
use std::time::Duration;

use floe_store::Timestamp;

use super::checkpoint::Checkpoint;
use super::epoch::{Decided, EpochEvent, EpochState, Gap, ingest};
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
    /// The epochs that it knows, side by side. It writes to the last.
    chain: VecDeque<Link<L::Position>>,
}

/// An epoch that an ingester knows.
#[derive(Debug)]
struct Link<P> {
    epoch: u32,
    loaded: Loaded<EpochState, P>,
}

/// What an ingester has done with what it was brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken {
    /// How many events were new.
    pub events: u64,
    /// Where the feed ended then: who has read up to here has read all that was brought.
    pub checkpoint: Checkpoint,
}

impl<L: EpochLog> Ingester<L> {
    /// An ingester that knows nothing yet.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the limits are beyond what there can be.
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
        /// Says by how much its clock may differ from the one that stamps change records; 5 minutes if nothing is said.
        /// The more, the more it remembers.
        pub fn clock_skew_max(skew: Duration) => clock_skew_max = skew;
    }

    /// Writes what is new in these spans. None of them was appended to its stream before `since`.
    ///
    /// When this fails, or its future is dropped, some spans may have been written. Bring all of them again.
    ///
    /// # Errors
    ///
    /// [`MissingEvents`](ErrorKind::MissingEvents) when events would be skipped,
    /// [`MaxResyncsExhausted`](ErrorKind::MaxResyncsExhausted) when others are faster all the time, and as the log
    /// fails.
    pub async fn ingest(&mut self, spans: Vec<Span>, since: Timestamp) -> Result<Taken> {
        Ok(self.try_ingest(spans, since).await??)
    }

    /// As [`ingest`](Self::ingest), but tells apart that events would be skipped.
    pub(super) async fn try_ingest(
        &mut self,
        spans: Vec<Span>,
        since: Timestamp,
    ) -> Result<Result<Taken, Gap>> {
        self.open().await?;
        self.learn(since).await?;
        let mut batch = Batch {
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
        Ok(Ok(Taken {
            events: batch.events,
            checkpoint: self.end()?,
        }))
    }

    /// Brings a batch one step on: a write, a look at what others wrote, or the way to the next epoch.
    async fn step(&mut self, batch: &mut Batch) -> Result<Result<(), Gap>> {
        let decided = match self.decide(batch.spans.clone())? {
            Ok(decided) => decided,
            Err(gap) if batch.is_fresh => return Ok(Err(gap)),
            // Others may have written what seems to be missing.
            Err(_) => {
                batch.is_fresh = true;
                return self.refresh().await.map(Ok);
            }
        };
        let events = decided.events();
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
        batch.spans = decided.residual;
        if self.last()?.loaded.state.is_closed() {
            self.move_on().await?;
            batch.is_fresh = true;
        }
        Ok(Ok(()))
    }

    /// Finds the epoch that is written to, and says so where nobody has.
    async fn open(&mut self) -> Result<()> {
        if !self.chain.is_empty() {
            return Ok(());
        }
        let active = self.log.load_index().await?.state.active(self.partition);
        self.announce(active).await?;
        let link = self.load(active).await?;
        self.chain.push_back(link);
        Ok(())
    }

    /// Gets to know the epochs that may have changes made since then, and forgets the others.
    async fn learn(&mut self, since: Timestamp) -> Result<()> {
        let skew = u64::try_from(self.clock_skew_max.as_millis()).unwrap_or(u64::MAX);
        let horizon = Timestamp::from_millis(since.as_millis().saturating_sub(skew));
        let is_before = |link: &Link<L::Position>| {
            let started = link.loaded.state.started();
            started.is_some_and(|started| started < horizon)
        };
        // All of an epoch was written before the next one was begun.
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

    async fn load(&self, epoch: u32) -> Result<Link<L::Position>> {
        let loaded = self.log.load_epoch(self.partition, epoch).await?;
        Ok(Link { epoch, loaded })
    }

    /// What the last epoch takes of these spans.
    fn decide(&self, spans: Vec<Span>) -> Result<Result<Decided, Gap>> {
        let earlier = |stream: &_| {
            let mut newest_first = self.chain.iter().rev().skip(1);
            newest_first.find_map(|link| link.loaded.state.mark(stream))
        };
        let state = &self.last()?.loaded.state;
        Ok(ingest(state, earlier, spans, &self.limits))
    }

    /// Appends to the last epoch; `false` if somebody else was faster.
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

    /// Loads what others have written to the last epoch.
    async fn refresh(&mut self) -> Result<()> {
        // If this is dropped on the way, the epoch is found again: it follows the one that is the last then.
        if let Some(Link { epoch, loaded }) = self.chain.pop_back() {
            let refreshed = self.log.refresh_epoch(self.partition, epoch, loaded);
            let loaded = refreshed.await?;
            self.chain.push_back(Link { epoch, loaded });
        }
        Ok(())
    }

    /// Goes on to the epoch after the last, which is closed.
    async fn move_on(&mut self) -> Result<()> {
        let closed = self.last()?.epoch;
        let next = closed.checked_add(1).ok_or_else(|| {
            let message = format!(
                "a partition has no more epochs: partition={}",
                self.partition
            );
            Error::new(ErrorKind::TooLarge, message)
        })?;
        self.announce(next).await?;
        let link = self.load(next).await?;
        self.chain.push_back(link);
        Ok(())
    }

    /// Says in the index that an epoch is written to.
    async fn announce(&self, epoch: u32) -> Result<()> {
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

    /// Where the feed ends, as far as is known.
    fn end(&self) -> Result<Checkpoint> {
        let Link { epoch, loaded } = self.last()?;
        Checkpoint::of(*epoch, loaded.state.version())
    }

    /// The epoch that is written to. There is one from the first step on.
    fn last(&self) -> Result<&Link<L::Position>> {
        self.chain.back().ok_or_else(|| {
            let message = format!("no epoch is open: partition={}", self.partition);
            Error::new(ErrorKind::InvalidUse, message)
        })
    }
}

/// Spans on their way into epochs.
struct Batch {
    /// What is not written yet.
    spans: Vec<Span>,
    /// How many events were.
    events: u64,
    conflicts: u32,
    /// Whether the last epoch is known as it was at a moment since the batch was brought.
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
        "others wrote to the feed again and again: category={category} partition={partition} conflicts={CONFLICTS_MAX}"
    );
    Error::new(ErrorKind::MaxResyncsExhausted, message)
}

#[cfg(test)]
mod tests;
