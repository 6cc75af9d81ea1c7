//! Coalescing: concurrent appends to one stream are sent as one request.
//!
//! Callers join a queue, one queue per stream. One caller takes the turn and sends the events of all queued callers
//! that fit into a request; then each receives the indexes of its events. A caller that is still queued takes the
//! next turn.
//!
//! The request in flight belongs to the queue, not to the caller with the turn. A caller can therefore be cancelled
//! at any time: the next one continues the same request, and nothing is lost or appended twice. Only when all callers
//! of a stream are cancelled, the request in flight is dropped, as for any cancelled append.
//!
//! The position of a stream is remembered between appends, so that nothing is read in between. After a conflict, the
//! Tip in the response has the new position. The guard is the etag, so that pruning is noticed too.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe_store::BoxFuture;
use futures_util::future::{Either, select};
use tokio::sync::oneshot;

use super::changes::{Change, Guard};
use super::event::EventData;
use super::keys::StreamName;
use super::limits::{COALESCED_BYTES_MAX, COALESCED_EVENTS_MAX, IDLE_BYTES_MAX, IDLE_STREAMS_MAX};
use super::position::Position;
use super::store::EventStore;
use super::stored::StoredEvent;
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;

/// Coalesces concurrent appends to streams. Cheap to clone: copies share the queues.
///
/// For streams to which many callers append without decisions, such as logs. Appends are ordered by their calls, and
/// accept any version of the stream.
///
/// ```
/// use std::time::Duration;
///
/// use floe::events::{Appender, EventData, StreamName};
/// use floe::{Db, Error};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let store = Db::memory()?.events();
/// store.ensure_table().await?;
/// let log = StreamName::new("Log", "a")?;
/// let appender = Appender::new(store, Duration::from_millis(1));
/// let one = appender.append(&log, vec![EventData::new("One", "")]);
/// let two = appender.append(&log, vec![EventData::new("Two", ""), EventData::new("Three", "")]);
/// assert_eq!(tokio::join!(one, two), (Ok(0..1), Ok(1..3)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Appender {
    shared: Arc<Shared>,
}

struct Shared {
    store: EventStore,
    linger: Duration,
    lines: Mutex<Lines>,
}

impl Appender {
    /// Creates an appender for the streams of this store. `linger` is the pause before a request, in which further
    /// appends can join; with zero, only appends during a request in flight are coalesced.
    pub fn new(store: EventStore, linger: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                linger,
                lines: Mutex::default(),
            }),
        }
    }

    /// Appends events to a stream, atomically and adjacent. Returns their indexes.
    ///
    /// A cancelled call may have appended its events or not. A started call must be polled or dropped: while it has
    /// the turn, other callers wait for it.
    ///
    /// # Errors
    ///
    /// [`MaxResyncsExhausted`](ErrorKind::MaxResyncsExhausted) after too many conflicts,
    /// [`TooLarge`](ErrorKind::TooLarge) if the events do not fit into an item, [`InvalidUse`](ErrorKind::InvalidUse)
    /// if there are none, [`Store`](ErrorKind::Store) if the store fails. An error of a request is returned to all
    /// callers whose events were in it.
    pub async fn append(&self, stream: &StreamName, events: Vec<EventData>) -> Result<Range<u64>> {
        if events.is_empty() {
            let message = format!("no events to append: stream={stream}");
            return Err(Error::new(ErrorKind::InvalidUse, message));
        }
        let seat = self.shared.sit(stream);
        let line = &seat.line;
        let mut answer = line.join(self.shared.store.stored(events)?);
        // A caller that receives its result first leaves the turn to others.
        let mut turn = match select(&mut answer, pin!(line.turn.lock())).await {
            Either::Left((told, _)) => return told.unwrap_or_else(|_| Err(forsaken(stream))),
            Either::Right((turn, _)) => turn,
        };
        loop {
            let (store, linger) = (self.shared.store.clone(), self.shared.linger);
            turn.get_or_insert_with(|| Box::pin(line.clone().round(store, linger)))
                .await;
            *turn = None;
            match answer.try_recv() {
                Ok(told) => return told,
                // The request was full before this caller's turn in the queue.
                Err(oneshot::error::TryRecvError::Empty) => {}
                Err(oneshot::error::TryRecvError::Closed) => return Err(forsaken(stream)),
            }
        }
    }
}

impl fmt::Debug for Appender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appender")
            .field("store", &self.shared.store)
            .field("linger", &self.shared.linger)
            .finish_non_exhaustive()
    }
}

/// The error after the sender of the result was dropped, which happens only after a panic.
fn forsaken(stream: &StreamName) -> Error {
    let message = format!("append outcome unknown: stream={stream}");
    Error::new(ErrorKind::OutcomeUnknown, message)
}

type Answer = oneshot::Receiver<Result<Range<u64>>>;

/// The callers that append to one stream.
struct Line {
    stream: StreamName,
    waiting: Mutex<VecDeque<Waiting>>,
    /// The position of the stream, if known.
    position: Mutex<Option<Position>>,
    /// Held by the caller with the turn, with the request in flight.
    turn: tokio::sync::Mutex<Option<BoxFuture<'static, ()>>>,
}

/// A queued caller.
struct Waiting {
    events: Vec<StoredEvent>,
    bytes: usize,
    answer: oneshot::Sender<Result<Range<u64>>>,
}

impl Line {
    fn new(stream: StreamName) -> Self {
        Self {
            stream,
            waiting: Mutex::default(),
            position: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Joins the end of the queue.
    fn join(&self, events: Vec<StoredEvent>) -> Answer {
        let (answer, told) = oneshot::channel();
        lock(&self.waiting).push_back(Waiting {
            bytes: events.iter().map(|event| event.weight().model).sum(),
            events,
            answer,
        });
        told
    }

    /// Lingers, and sends what is queued then.
    async fn round(self: Arc<Self>, store: EventStore, linger: Duration) {
        if !linger.is_zero() {
            store.db().timer().sleep(linger).await;
        }
        let group = self.take();
        let events: Vec<_> = group.iter().flat_map(|one| &one.events).cloned().collect();
        if events.is_empty() {
            return;
        }
        let told = self.append(&store, events).await;
        tell(group, told);
    }

    /// Takes the callers that fit into one request, at least one. Skips cancelled callers.
    fn take(&self) -> Vec<Waiting> {
        let mut waiting = lock(&self.waiting);
        let mut group: Vec<Waiting> = Vec::new();
        let (mut events, mut bytes) = (0, 0);
        while let Some(next) = waiting.pop_front() {
            if next.answer.is_closed() {
                continue;
            }
            events += next.events.len();
            bytes += next.bytes;
            let fits = events <= COALESCED_EVENTS_MAX && bytes <= COALESCED_BYTES_MAX;
            if !fits && !group.is_empty() {
                waiting.push_front(next);
                break;
            }
            group.push(next);
        }
        group
    }

    /// Appends to the stream at its current position. Returns the index of the first event.
    async fn append(&self, store: &EventStore, events: Vec<StoredEvent>) -> Result<u64> {
        // The position is unknown until the append succeeds.
        let mut position = lock(&self.position).take();
        if position.is_none() {
            let tip = store.tip(&self.stream, true).await?;
            position = tip.as_ref().map(Position::of_tip);
        }
        let change = Change {
            guard: Guard::Etag,
            ..Change::of_events(events)
        };
        let appended = store.append_to(&self.stream, position, &change, |_| Ok(()));
        let (before, after) = appended.await?;
        *lock(&self.position) = Some(after);
        Ok(before)
    }
}

/// Sends each caller the indexes of its events, or the error.
fn tell(group: Vec<Waiting>, told: Result<u64>) {
    let mut start = told;
    for one in group {
        let end = start.clone().map(|start| start + one.events.len() as u64);
        let range = start.and_then(|start| Ok(start..end.clone()?));
        // A cancelled caller needs no result.
        drop(one.answer.send(range));
        start = end;
    }
}

/// The queues of all streams with callers, and of some idle ones.
#[derive(Default)]
struct Lines {
    by_stream: HashMap<StreamName, Place>,
    /// Streams without callers, longest idle first.
    idle: BTreeMap<u64, StreamName>,
    idle_bytes: usize,
    /// Counts how often streams became idle.
    clock: u64,
}

/// A queue and its number of callers.
struct Place {
    line: Arc<Line>,
    callers: usize,
    /// The count at which it became idle.
    since: u64,
    /// Size of its position while it is idle.
    bytes: usize,
}

/// A caller's membership in a queue, which ends when it is dropped.
struct Seat {
    shared: Arc<Shared>,
    line: Arc<Line>,
}

impl Shared {
    fn sit(self: &Arc<Self>, stream: &StreamName) -> Seat {
        let mut lines = lock(&self.lines);
        let Lines {
            by_stream,
            idle,
            idle_bytes,
            ..
        } = &mut *lines;
        let place = by_stream.entry(stream.clone()).or_insert_with(|| Place {
            line: Arc::new(Line::new(stream.clone())),
            callers: 0,
            since: 0,
            bytes: 0,
        });
        if place.callers == 0 && idle.remove(&place.since).is_some() {
            *idle_bytes -= place.bytes;
        }
        place.callers += 1;
        Seat {
            shared: self.clone(),
            line: place.line.clone(),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let abandoned = lock(&self.shared.lines).leave(&self.line);
        // The request in flight may hold any resource, so it is dropped without holding the lock.
        drop(abandoned);
    }
}

impl Lines {
    /// Removes a caller. Returns the request in flight if it was the last caller.
    fn leave(&mut self, line: &Line) -> Option<BoxFuture<'static, ()>> {
        let place = self.by_stream.get_mut(&line.stream)?;
        place.callers -= 1;
        if place.callers > 0 {
            return None;
        }
        let abandoned = line.turn.try_lock().ok().and_then(|mut turn| turn.take());
        lock(&line.waiting).clear();
        let Some(bytes) = lock(&line.position).as_ref().map(Position::bytes) else {
            self.by_stream.remove(&line.stream);
            return abandoned;
        };
        self.clock += 1;
        (place.since, place.bytes) = (self.clock, bytes);
        self.idle.insert(self.clock, line.stream.clone());
        self.idle_bytes += bytes;
        self.make_room();
        abandoned
    }

    /// Removes the longest idle queues until there is room.
    fn make_room(&mut self) {
        while self.idle.len() > IDLE_STREAMS_MAX || self.idle_bytes > IDLE_BYTES_MAX {
            let Some((_, stream)) = self.idle.pop_first() else {
                return;
            };
            let place = self.by_stream.remove(&stream);
            self.idle_bytes -= place.map_or(0, |place| place.bytes);
        }
    }
}
