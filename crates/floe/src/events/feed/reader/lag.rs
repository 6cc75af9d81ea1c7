//! Computes the lag of a reader.
//!
//! Only epochs are read: they contain the number of events and their times. At the tail this is one read.

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
    /// Returns how far it is behind the current tail.
    ///
    /// # Errors
    ///
    /// Failures of the source.
    pub async fn lag(&self, now: Timestamp) -> Result<Lag> {
        let count = |_, span: &Span| {
            if self.filter.matches(&span.stream) {
                span.types.len() as u64
            } else {
                0
            }
        };
        lag_from(&self.source, self.partition, self.checkpoint, now, count).await
    }
}

/// Computes the lag from a checkpoint to the tail. `count` returns how many events of a span count. Its first argument
/// is the number of the span if it is in the first batch, and `None` in later batches.
pub(in crate::events::feed) async fn lag_from<S: EpochSource>(
    source: &S,
    partition: Partition,
    from: Checkpoint,
    now: Timestamp,
    count: impl Fn(Option<u64>, &Span) -> u64,
) -> Result<Lag> {
    let (mut position, mut lag) = (from, Lag::default());
    loop {
        let page = source.read_epoch(partition, position.epoch(), position.offset());
        let EpochPage { events, is_end } = page.await?;
        if events.is_empty() && !is_end {
            return Ok(lag);
        }
        let mut has_ended = is_end;
        for (event, time) in &events {
            let EpochEvent::Ingested(ingested) = event else {
                has_ended = true;
                break;
            };
            let is_first = position == from;
            let spans = (0..).zip(ingested.spans());
            let counted = spans.map(|(number, span)| count(is_first.then_some(number), span));
            let counted: u64 = counted.sum();
            if counted > 0 && lag.events == 0 {
                lag.age = now.since(*time);
            }
            lag.events += counted;
            position = Checkpoint::of(position.epoch(), position.offset() + 1)?;
        }
        if has_ended {
            position = position.next_epoch();
        }
    }
}
