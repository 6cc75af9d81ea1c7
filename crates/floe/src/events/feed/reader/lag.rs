//! Counts how far a reader is behind.
//!
//! The epochs alone say how many events there are and when they came to the feed. At the tail that is one read.

use floe_store::Timestamp;

use super::Reader;
use crate::error::Result;
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::epoch::EpochEvent;
use crate::events::feed::lag::Lag;
use crate::events::feed::log::{EpochPage, EpochSource};
use crate::events::feed::partition::Partition;
use crate::events::feed::span::Span;

impl<S: EpochSource> Reader<S> {
    /// How far it is behind the tail at this moment.
    ///
    /// # Errors
    ///
    /// As the source fails.
    pub async fn lag(&self, now: Timestamp) -> Result<Lag> {
        let count = |_, span: &Span| {
            let is_told = self.filter.lets_through(&span.stream);
            if is_told { span.types.len() as u64 } else { 0 }
        };
        behind(&self.source, self.partition, self.checkpoint, now, count).await
    }
}

/// What lies between a place and the tail. How many events of a span count is up to who asks; it is told which span of
/// the first batch it is, and for later batches nothing.
pub(in crate::events::feed) async fn behind<S: EpochSource>(
    source: &S,
    partition: Partition,
    from: Checkpoint,
    now: Timestamp,
    count: impl Fn(Option<u64>, &Span) -> u64,
) -> Result<Lag> {
    let (mut place, mut behind) = (from, Lag::default());
    loop {
        let page = source.read_epoch(partition, place.epoch(), place.offset());
        let EpochPage { events, is_end } = page.await?;
        if events.is_empty() && !is_end {
            return Ok(behind);
        }
        let mut has_ended = is_end;
        for (event, time) in &events {
            let EpochEvent::Ingested(ingested) = event else {
                has_ended = true;
                break;
            };
            let is_first = place == from;
            let spans = (0..).zip(ingested.spans());
            let counted = spans.map(|(number, span)| count(is_first.then_some(number), span));
            let counted: u64 = counted.sum();
            if counted > 0 && behind.events == 0 {
                behind.age = now.since(*time);
            }
            behind.events += counted;
            place = Checkpoint::of(place.epoch(), place.offset() + 1)?;
        }
        if has_ended {
            place = place.next_epoch();
        }
    }
}
