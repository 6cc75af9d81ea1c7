//! At least once: events of a partition to handlers, many streams at once, each in its order.
//!
//! Reading, handling and storing go on beside each other. Batches are read ahead into the [backlog](super::backlog), as
//! far as it has room. What is stored is up to where everything is done, so whoever goes on from there misses nothing,
//! and is given again what was handled beyond.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::ops::Range;

use tracing::Instrument;

use super::backlog::Backlog;
use super::progress::{Parked, Place, Progress};
use super::{Consumed, Consumer, Handled, Notice, Orders, Patience, Ran};
use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::limits::{BATCHES_AHEAD, EVENTS_AHEAD};
use crate::events::feed::log::TableLog;
use crate::events::feed::reader::{FeedBatch, Reader};
use crate::events::feed::span::Span;
use crate::events::feed::subscription::load_between;
use crate::events::{Recorded, StreamName};
use crate::side_by_side::crowd::{Crowd, Ticket};
use crate::telemetry::feed as telemetry;

/// What has come to its end.
enum Done {
    Read(Reader<TableLog>, Result<Option<FeedBatch>>),
    /// What is stored was looked at, before spans of parked streams are passed by.
    Looked(Reader<TableLog>, FeedBatch, Result<Progress>),
    Handled(StreamName, Result<Outcome>),
    Stored(Result<Option<Progress>>),
    Waited,
    Told,
    GraceOver,
}

/// What became of events that were given to a handler.
pub(super) struct Outcome {
    /// Those before this index are done.
    pub(super) index: u64,
    /// How many of them were not done before.
    pub(super) events: u64,
    /// Why the others are not.
    pub(super) reason: Option<String>,
}

/// What is not stored yet.
#[derive(Default)]
struct Unstored {
    checkpoint: Option<Checkpoint>,
    parked: Vec<Parked>,
}

/// A run over a partition.
struct Run<'c> {
    consumer: &'c Consumer,
    orders: Orders,
    /// What is stored, and what will be.
    known: Progress,
    unstored: Unstored,
    /// What is being stored, and is parked with it.
    storing: Option<Vec<Parked>>,
    /// Absent while it reads.
    reader: Option<Reader<TableLog>>,
    is_at_tail: bool,
    backlog: Backlog,
    handlers: HashMap<StreamName, Ticket>,
    is_stopping: bool,
    consumed: Consumed,
}

impl Consumer {
    /// Gives the events of the partition to handlers, up to where the orders say.
    pub(super) async fn deliver<'c, H, F, E>(
        &'c self,
        handler: &'c H,
        orders: Orders,
    ) -> Result<Ran>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Send + Sync,
        F: Future<Output = Result<Handled, E>> + Send,
        E: fmt::Display + Send,
    {
        let mut patience = self.patience(orders.follows);
        let claimed = loop {
            match self.claim(orders.lease).await {
                Ok(claimed) => break claimed,
                Err(error) => patience.outlast(error).await?,
            }
        };
        let Some(known) = claimed else {
            return Ok(Ran::fenced(Consumed::default()));
        };
        let mut run = Run {
            consumer: self,
            orders,
            unstored: Unstored::default(),
            storing: None,
            reader: Some(self.reader(known.place.checkpoint)),
            is_at_tail: false,
            backlog: Backlog::default(),
            handlers: HashMap::new(),
            is_stopping: false,
            consumed: Consumed::default(),
            known,
        };
        let is_fenced = run.finish(handler).await?;
        let checkpoint = run.known.place.checkpoint;
        Ok(Ran {
            consumed: Consumed {
                checkpoint,
                ..run.consumed
            },
            is_fenced,
        })
    }

    /// Makes the progress one's own; `None` if somebody else holds the partition by now.
    async fn claim(&self, lease: Option<u64>) -> Result<Option<Progress>> {
        let decide = |stored: &Progress| {
            let claimed = stored.claimed(lease);
            Ok::<_, Error>((claimed.clone(), claimed))
        };
        self.stored().transact(decide).await
    }

    /// Stores how far everything is done; `None` if it was claimed or moved by somebody else.
    async fn advance(
        &self,
        term: u64,
        checkpoint: Option<Checkpoint>,
        parked: &[Parked],
    ) -> Result<Option<Progress>> {
        let decide = |stored: &Progress| {
            if stored.term != term {
                return Ok::<_, Error>((None, None));
            }
            let mut after = match checkpoint {
                Some(checkpoint) => stored.at(Place::before(checkpoint)),
                None => stored.clone(),
            };
            for parked in parked {
                after.park(parked.clone())?;
            }
            Ok((Some(after.clone()), Some(after)))
        };
        self.stored().transact(decide).await
    }

    /// Gives events of a stream to the handler until they are done, or it does not get on.
    pub(super) async fn handle<H, F, E>(
        &self,
        stream: &StreamName,
        mut range: Range<u64>,
        handler: &H,
        follows: bool,
    ) -> Result<Outcome>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Send + Sync,
        F: Future<Output = Result<Handled, E>> + Send,
        E: fmt::Display + Send,
    {
        let (start, mut tries) = (range.start, 0);
        let mut outcome = Outcome {
            index: start,
            events: 0,
            reason: None,
        };
        while !range.is_empty() {
            let end = range
                .start
                .saturating_add(self.options.events_max.max(1) as u64);
            let chunk = range.start..end.min(range.end);
            let (done, reason) = match self.load(stream, chunk.clone(), follows).await {
                Ok(events) => match self.call(stream, events, handler).await {
                    Ok(Handled::All) => (chunk.end, None),
                    Ok(Handled::UpTo(index)) => (index.clamp(chunk.start, chunk.end), None),
                    Ok(Handled::None) => (chunk.start, None),
                    Err(error) => (chunk.start, Some(error.to_string())),
                },
                Err(error) if is_of_stream(&error) => (chunk.start, Some(error.to_string())),
                Err(error) => return Err(error),
            };
            tries = if done > range.start { 0 } else { tries + 1 };
            range.start = done;
            outcome.index = done;
            outcome.events = done - start;
            if tries >= self.options.tries_max.max(1) {
                let reason = reason.unwrap_or_else(|| "nothing was handled".to_owned());
                outcome.reason = Some(reason);
                return Ok(outcome);
            }
            if tries > 0 {
                self.pause(tries).await;
            }
        }
        Ok(outcome)
    }

    /// Calls the handler.
    async fn call<H, F, E>(
        &self,
        stream: &StreamName,
        events: Vec<Recorded>,
        handler: &H,
    ) -> Result<Handled, E>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Send + Sync,
        F: Future<Output = Result<Handled, E>> + Send,
    {
        let span = telemetry::handle(&self.id.0, self.partition, stream, events.len());
        handler(stream.clone(), events).instrument(span).await
    }

    /// Loads events of a stream, however long the store does not answer if the consumer follows the feed.
    pub(super) async fn load(
        &self,
        stream: &StreamName,
        range: Range<u64>,
        follows: bool,
    ) -> Result<Vec<Recorded>> {
        let mut patience = self.patience(follows);
        loop {
            match load_between(&self.store, stream, range.clone()).await {
                Ok(events) => return Ok(events),
                Err(error) => patience.outlast(error).await?,
            }
        }
    }
}

/// Whether it is the stream that is at fault, and not the store.
pub(super) fn is_of_stream(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::MissingEvents | ErrorKind::InvalidEvent
    )
}

async fn read(
    mut patience: Patience<'_>,
    mut reader: Reader<TableLog>,
) -> (Reader<TableLog>, Result<Option<FeedBatch>>) {
    loop {
        let error = match reader.next().await {
            Ok(batch) => return (reader, Ok(batch)),
            Err(error) => error,
        };
        if let Err(error) = patience.outlast(error).await {
            return (reader, Err(error));
        }
    }
}

impl<'c> Run<'c> {
    /// Runs until nothing is left to do. Tells whether it was fenced off.
    async fn finish<H, F, E>(&mut self, handler: &'c H) -> Result<bool>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Send + Sync,
        F: Future<Output = Result<Handled, E>> + Send,
        E: fmt::Display + Send,
    {
        let mut crowd: Crowd<'_, Done> = Crowd::new();
        if let Some(mut stop) = self.orders.stop.clone() {
            crowd.join(Box::pin(async move {
                // Who could tell it is gone: then it is dropped soon.
                drop(stop.wait_for(|is_told| *is_told).await);
                Done::Told
            }));
        }
        loop {
            self.begin_to_read(&mut crowd);
            self.begin_to_handle(&mut crowd, handler);
            self.begin_to_store(&mut crowd);
            if self.has_ended() {
                return Ok(false);
            }
            match crowd.next().await {
                Done::Read(reader, batch) => match batch? {
                    Some(batch) if self.has_parked(&batch) => {
                        self.look(&mut crowd, reader, batch);
                    }
                    Some(batch) => self.take(reader, batch)?,
                    None => self.wait_at_tail(&mut crowd, reader),
                },
                Done::Looked(reader, batch, stored) => {
                    let stored = stored?;
                    if stored.term != self.known.term {
                        return Ok(true);
                    }
                    self.learn(stored)?;
                    self.take(reader, batch)?;
                }
                Done::Handled(stream, outcome) => self.end_of_handling(stream, outcome?)?,
                Done::Stored(stored) => {
                    self.storing = None;
                    match stored? {
                        Some(stored) => self.learn(stored)?,
                        None => return Ok(true),
                    }
                }
                Done::Waited => self.is_at_tail = false,
                Done::Told => self.stop(&mut crowd),
                Done::GraceOver => {
                    for (_, ticket) in self.handlers.drain() {
                        crowd.leave(ticket);
                    }
                }
            }
        }
    }

    fn has_ended(&self) -> bool {
        let is_busy = self.storing.is_some() || !self.handlers.is_empty();
        let reads_no_more = self.is_stopping || self.is_at_tail && !self.orders.follows;
        reads_no_more && !is_busy
    }

    fn begin_to_read(&mut self, crowd: &mut Crowd<'c, Done>) {
        let (batches, events) = self.backlog.len();
        let has_room = batches < BATCHES_AHEAD && events < EVENTS_AHEAD;
        if self.is_stopping || self.is_at_tail || !has_room {
            return;
        }
        if let Some(reader) = self.reader.take() {
            let patience = self.consumer.patience(self.orders.follows);
            crowd.join(Box::pin(async move {
                let (reader, batch) = read(patience, reader).await;
                Done::Read(reader, batch)
            }));
        }
    }

    fn begin_to_handle<H, F, E>(&mut self, crowd: &mut Crowd<'c, Done>, handler: &'c H)
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Send + Sync,
        F: Future<Output = Result<Handled, E>> + Send,
        E: fmt::Display + Send,
    {
        let options = &self.consumer.options;
        while !self.is_stopping && self.handlers.len() < options.at_once_max.max(1) {
            let Some((stream, range)) = self.backlog.begin(options.events_max) else {
                return;
            };
            let (consumer, follows) = (self.consumer, self.orders.follows);
            let name = stream.clone();
            let ticket = crowd.join(Box::pin(async move {
                let outcome = consumer.handle(&name, range, handler, follows).await;
                Done::Handled(name, outcome)
            }));
            self.handlers.insert(stream, ticket);
        }
    }

    fn begin_to_store(&mut self, crowd: &mut Crowd<'c, Done>) {
        if let Some(checkpoint) = self.backlog.pass_done() {
            self.unstored.checkpoint = Some(checkpoint);
        }
        let is_all_stored = self.unstored.checkpoint.is_none() && self.unstored.parked.is_empty();
        if self.storing.is_some() || is_all_stored {
            return;
        }
        let Unstored { checkpoint, parked } = std::mem::take(&mut self.unstored);
        self.storing = Some(parked.clone());
        let (consumer, term) = (self.consumer, self.known.term);
        let mut patience = consumer.patience(self.orders.follows);
        crowd.join(Box::pin(async move {
            loop {
                let error = match consumer.advance(term, checkpoint, &parked).await {
                    Ok(stored) => return Done::Stored(Ok(stored)),
                    Err(error) => error,
                };
                if let Err(error) = patience.outlast(error).await {
                    return Done::Stored(Err(error));
                }
            }
        }));
    }

    /// Looks at what is stored: what is parked may have been tried again elsewhere, and not be parked any more. Nothing is
    /// read meanwhile, so that batches keep their order.
    fn look(&self, crowd: &mut Crowd<'c, Done>, reader: Reader<TableLog>, batch: FeedBatch) {
        let consumer = self.consumer;
        let mut patience = consumer.patience(self.orders.follows);
        crowd.join(Box::pin(async move {
            loop {
                let error = match consumer.progress().await {
                    Ok(stored) => return Done::Looked(reader, batch, Ok(stored)),
                    Err(error) => error,
                };
                if let Err(error) = patience.outlast(error).await {
                    return Done::Looked(reader, batch, Err(error));
                }
            }
        }));
    }

    fn wait_at_tail(&mut self, crowd: &mut Crowd<'c, Done>, reader: Reader<TableLog>) {
        self.reader = Some(reader);
        self.is_at_tail = true;
        if self.orders.follows {
            let consumer = self.consumer;
            crowd.join(Box::pin(async move {
                consumer
                    .store
                    .db()
                    .timer()
                    .sleep(consumer.options.poll)
                    .await;
                Done::Waited
            }));
        }
    }

    fn stop(&mut self, crowd: &mut Crowd<'c, Done>) {
        self.is_stopping = true;
        let consumer = self.consumer;
        crowd.join(Box::pin(async move {
            consumer
                .store
                .db()
                .timer()
                .sleep(consumer.options.grace)
                .await;
            Done::GraceOver
        }));
    }

    /// This is stored now; what is not stored yet comes on top.
    fn learn(&mut self, stored: Progress) -> Result<()> {
        self.known = stored;
        let storing = self.storing.iter().flatten();
        for parked in storing.chain(&self.unstored.parked) {
            self.known.park(parked.clone())?;
        }
        Ok(())
    }

    fn has_parked(&self, batch: &FeedBatch) -> bool {
        let mut spans = batch.spans.iter();
        spans.any(|span| self.known.is_parked(&span.stream))
    }

    /// Takes a batch: what is parked is passed by.
    fn take(&mut self, reader: Reader<TableLog>, batch: FeedBatch) -> Result<()> {
        self.reader = Some(reader);
        let filter = &self.consumer.options.filter;
        let wanted = batch.spans.into_iter();
        let wanted = wanted.filter(|span| filter.lets_through(&span.stream));
        let (passed_by, given): (Vec<Span>, Vec<Span>) =
            wanted.partition(|span| self.known.is_parked(&span.stream));
        self.backlog.push(batch.checkpoint, given);
        for span in passed_by {
            let range = span.start..span.end();
            self.park(Parked::new(span.stream, range, PASSED_BY))?;
        }
        Ok(())
    }

    fn end_of_handling(&mut self, stream: StreamName, outcome: Outcome) -> Result<()> {
        self.handlers.remove(&stream);
        self.consumed.events += outcome.events;
        self.backlog.end(stream.clone(), outcome.index);
        let Some(reason) = outcome.reason else {
            return Ok(());
        };
        let end = self.backlog.take_out(&stream).unwrap_or(outcome.index);
        telemetry::parked(&self.consumer.id.0, self.consumer.partition, &stream);
        let parked = Parked::new(stream, outcome.index..end, &reason);
        let notice = Notice::Parked(self.consumer.partition, parked.clone());
        self.consumer.options.tell(&notice);
        self.consumed.parked.push(parked.clone());
        self.park(parked)
    }

    fn park(&mut self, parked: Parked) -> Result<()> {
        self.known.park(parked.clone())?;
        self.unstored.parked.push(parked);
        Ok(())
    }
}

/// Why events of a stream are parked that was tried again in the same moment.
const PASSED_BY: &str = "they came while the stream was parked";
