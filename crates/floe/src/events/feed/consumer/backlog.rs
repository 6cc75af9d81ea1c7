//! What was read of a feed and is not done with yet: which events wait, and how far everything is done.
//!
//! Each stream has a queue, and one handler at a time takes from it. A batch is done when the spans that it brought are;
//! the feed is done up to the first batch that is not. So a slow stream holds the checkpoint, not the other streams.
//!
//! Nothing here reads, writes or waits.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::events::StreamName;
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::span::Span;

/// What was read and is not done with yet.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    batches: VecDeque<Batch>,
    /// The number of the first of the batches: they are counted from 0 as they are read.
    first: u64,
    streams: HashMap<StreamName, Queue>,
    /// The streams that wait for a handler, the one that has waited longest first.
    ready: VecDeque<StreamName>,
    events: u64,
}

/// A batch, and how many of its spans are not done.
#[derive(Debug)]
struct Batch {
    checkpoint: Checkpoint,
    spans: usize,
}

/// What waits of a stream.
#[derive(Debug, Default)]
struct Queue {
    /// The events of each span that are not done, and the number of its batch.
    spans: VecDeque<(Range<u64>, u64)>,
    is_handled: bool,
}

impl Backlog {
    /// Takes a batch, with those of its spans that are to be handled.
    pub(super) fn push(&mut self, checkpoint: Checkpoint, spans: Vec<Span>) {
        let number = self.first + self.batches.len() as u64;
        let spans = spans.into_iter().filter(|span| !span.types.is_empty());
        let mut batch = Batch {
            checkpoint,
            spans: 0,
        };
        for span in spans {
            batch.spans += 1;
            self.events += span.types.len() as u64;
            let range = span.start..span.end();
            let queue = self.streams.entry(span.stream.clone()).or_default();
            queue.spans.push_back((range, number));
            if queue.spans.len() == 1 && !queue.is_handled {
                self.ready.push_back(span.stream);
            }
        }
        self.batches.push_back(batch);
    }

    /// How many batches and events are not done.
    pub(super) fn len(&self) -> (usize, u64) {
        (self.batches.len(), self.events)
    }

    /// Takes the stream that has waited longest, and its next events: at most so many, side by side.
    pub(super) fn begin(&mut self, events_max: usize) -> Option<(StreamName, Range<u64>)> {
        let stream = self.ready.pop_front()?;
        let queue = self.streams.get_mut(&stream)?;
        let mut spans = queue.spans.iter();
        let (first, _) = spans.next()?;
        let mut range = first.clone();
        for (span, _) in spans {
            if span.start != range.end {
                break;
            }
            range.end = span.end;
        }
        let most = range.start.saturating_add(events_max.max(1) as u64);
        range.end = range.end.min(most);
        queue.is_handled = true;
        Some((stream, range))
    }

    /// A handler has come back: what it was given is done up to this index.
    pub(super) fn end(&mut self, stream: StreamName, index: u64) {
        let Some(queue) = self.streams.get_mut(&stream) else {
            return;
        };
        queue.is_handled = false;
        while let Some((range, number)) = queue.spans.front_mut() {
            let start = index.clamp(range.start, range.end);
            self.events -= start - range.start;
            range.start = start;
            if !range.is_empty() {
                break;
            }
            let batch = usize::try_from(*number - self.first).ok();
            if let Some(batch) = batch.and_then(|batch| self.batches.get_mut(batch)) {
                batch.spans -= 1;
            }
            queue.spans.pop_front();
        }
        match queue.spans.is_empty() {
            true => {
                self.streams.remove(&stream);
            }
            false => self.ready.push_back(stream),
        }
    }

    /// Takes everything that waits of a stream out, as if it was done. Tells where it ends.
    pub(super) fn take_out(&mut self, stream: &StreamName) -> Option<u64> {
        let queue = self.streams.get(stream)?;
        let end = queue.spans.iter().map(|(range, _)| range.end).max()?;
        // One span may lie behind another where a feed tells some events again.
        self.end(stream.clone(), end);
        self.ready.retain(|ready| ready != stream);
        Some(end)
    }

    /// Forgets the batches that are done, up to the first that is not. Tells up to where.
    pub(super) fn pass_done(&mut self) -> Option<Checkpoint> {
        let mut passed = None;
        while let Some(batch) = self.batches.front().filter(|batch| batch.spans == 0) {
            passed = Some(batch.checkpoint);
            self.batches.pop_front();
            self.first += 1;
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use floe_store::env::{Random, SeededRandom};

    use super::*;

    fn name(id: u64) -> StreamName {
        StreamName::new("Cart", &id).unwrap()
    }

    fn span(id: u64, range: Range<u64>) -> Span {
        Span::new(name(id), range.start, range.map(|_| "Added"))
    }

    fn at(offset: u64) -> Checkpoint {
        Checkpoint::of(0, offset).unwrap()
    }

    #[test]
    fn a_slow_stream_holds_the_checkpoint_and_nobody_else() {
        let mut backlog = Backlog::default();
        backlog.push(at(1), vec![span(1, 0..1), span(2, 0..1)]);
        backlog.push(at(2), vec![]);
        backlog.push(at(3), vec![span(2, 1..3), span(1, 1..2)]);
        assert_eq!(backlog.len(), (3, 5));
        assert_eq!(backlog.begin(9), Some((name(1), 0..2)));
        assert_eq!(backlog.begin(9), Some((name(2), 0..3)));
        assert_eq!(backlog.begin(9), None);
        backlog.end(name(2), 3);
        assert_eq!(backlog.pass_done(), None);
        backlog.push(at(4), vec![span(1, 2..3), span(2, 3..4)]);
        assert_eq!(backlog.begin(9), Some((name(2), 3..4)));
        assert_eq!(backlog.begin(9), None);
        backlog.end(name(1), 2);
        assert_eq!(backlog.pass_done(), Some(at(3)));
        assert_eq!(backlog.begin(9), Some((name(1), 2..3)));
        backlog.end(name(1), 3);
        backlog.end(name(2), 4);
        assert_eq!(backlog.pass_done(), Some(at(4)));
        assert_eq!((backlog.len(), backlog.streams.len()), ((0, 0), 0));
    }

    #[test]
    fn what_is_parked_counts_as_done() {
        let mut backlog = Backlog::default();
        backlog.push(at(1), vec![span(1, 0..4)]);
        backlog.push(at(2), vec![span(1, 4..6)]);
        assert_eq!(backlog.begin(3), Some((name(1), 0..3)));
        backlog.end(name(1), 2);
        assert_eq!(backlog.take_out(&name(1)), Some(6));
        assert_eq!(backlog.take_out(&name(1)), None);
        assert_eq!(backlog.begin(3), None);
        assert_eq!(backlog.pass_done(), Some(at(2)));
    }

    /// Handlers come back in any order and with any part done: the events of a stream are begun in their order, and
    /// nothing is passed that is not done.
    #[test]
    fn nothing_is_passed_that_is_not_done() {
        for seed in 0..300 {
            let random = SeededRandom::new(seed);
            let mut backlog = Backlog::default();
            let (mut ends, mut done) = ([0_u64; 5], [0_u64; 5]);
            let mut told: Vec<(Checkpoint, [u64; 5])> = Vec::new();
            let mut running: BTreeMap<u64, Range<u64>> = BTreeMap::new();
            let mut passed = 0;
            for _ in 0..200 {
                match random.next_u64() % 4 {
                    0 => {
                        let mut spans = Vec::new();
                        for (id, end) in (0..).zip(&mut ends) {
                            let more = random.below(3);
                            if more > 0 {
                                spans.push(span(id, *end..*end + more));
                                *end += more;
                            }
                        }
                        told.push((at(told.len() as u64 + 1), ends));
                        backlog.push(told.last().unwrap().0, spans);
                    }
                    1 => {
                        if let Some((stream, range)) = backlog.begin(1 + random.below(4) as usize) {
                            let id = stream.id().parse().unwrap();
                            assert_eq!(range.start, done[id as usize]);
                            assert_eq!(running.insert(id, range), None);
                        }
                    }
                    _ => {
                        if let Some((id, range)) = running.pop_last() {
                            let index = range.start + random.below(range.end - range.start + 1);
                            done[id as usize] = index;
                            backlog.end(name(id), index);
                        }
                    }
                }
                if let Some(checkpoint) = backlog.pass_done() {
                    passed = checkpoint.offset() as usize;
                }
                let is_done = |(_, ends): &&(Checkpoint, [u64; 5])| {
                    ends.iter().zip(&done).all(|(end, done)| end <= done)
                };
                assert_eq!(told.iter().take_while(is_done).count(), passed);
                let left: u64 = ends.iter().zip(&done).map(|(end, done)| end - done).sum();
                assert_eq!(backlog.len(), (told.len() - passed, left));
            }
        }
    }
}
