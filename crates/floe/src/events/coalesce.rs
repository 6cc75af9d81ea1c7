//! Coalescing: appends to one stream that come at the same time are sent as one.
//!
//! Callers stand in a line, one line for each stream. One of them has the turn and sends what all of them want to
//! append, as far as it fits; then each is told where its own events are. Whoever is still in line takes the next turn.
//!
//! What is being sent belongs to the line and not to the caller whose turn it is. So a caller may go away at any time:
//! the next one goes on with the very request that was under way, and nothing is lost or appended twice. Only when all
//! callers of a stream have gone away, what was under way is given up, as with any append that nobody waits for.
//!
//! Where a stream stands is remembered from one append to the next, so that nothing is read in between. If somebody else
//! has written meanwhile, the Tip that comes back with the refusal tells it. The guard is the etag, so that a stream that
//! was pruned meanwhile is noticed too.

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

/// Appends to streams, together what comes at the same time. Cheap to clone: copies share the lines.
///
/// For streams that many append to without deciding anything, such as logs. The order of two appends is the order in
/// which they were called; whatever version the stream has will do.
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
    /// Appends to the streams of this store. Before a request is sent, others are waited for so long; not at all if that
    /// is zero, and then only those come together who come while another request is under way.
    pub fn new(store: EventStore, linger: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                linger,
                lines: Mutex::default(),
            }),
        }
    }

    /// Appends events to a stream, all or none, one after the other. Tells the indexes that they have.
    ///
    /// A call that is given up may have appended its events or not. One that has begun is to be polled or dropped: while
    /// it has the turn, others wait for it.
    ///
    /// # Errors
    ///
    /// [`MaxResyncsExhausted`](ErrorKind::MaxResyncsExhausted) when others were always faster,
    /// [`TooLarge`](ErrorKind::TooLarge) when the events do not fit into an item,
    /// [`InvalidUse`](ErrorKind::InvalidUse) when there are none, [`Store`](ErrorKind::Store) when the store cannot
    /// answer. An error of the request is told to all whose events were in it.
    pub async fn append(&self, stream: &StreamName, events: Vec<EventData>) -> Result<Range<u64>> {
        if events.is_empty() {
            let message = format!("there is nothing to append: stream={stream} events=0");
            return Err(Error::new(ErrorKind::InvalidUse, message));
        }
        let seat = self.shared.sit(stream);
        let line = &seat.line;
        let mut answer = line.join(self.shared.store.stored(events)?);
        // The one that has the answer leaves the turn to others.
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
                // The others filled the request.
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

/// Nobody tells an answer any more, which takes a panic of who should.
fn forsaken(stream: &StreamName) -> Error {
    let message = format!("nobody can know whether the append was applied: stream={stream}");
    Error::new(ErrorKind::OutcomeUnknown, message)
}

type Answer = oneshot::Receiver<Result<Range<u64>>>;

/// Those who append to one stream.
struct Line {
    stream: StreamName,
    waiting: Mutex<VecDeque<Waiting>>,
    /// Where the stream stands, as far as is known.
    position: Mutex<Option<Position>>,
    /// Held by whose turn it is, with what is being sent.
    turn: tokio::sync::Mutex<Option<BoxFuture<'static, ()>>>,
}

/// A caller in line.
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

    /// Goes to the end of the line.
    fn join(&self, events: Vec<StoredEvent>) -> Answer {
        let (answer, told) = oneshot::channel();
        lock(&self.waiting).push_back(Waiting {
            bytes: events.iter().map(|event| event.weight().model).sum(),
            events,
            answer,
        });
        told
    }

    /// Waits for others, and sends what is there then.
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

    /// Takes from the line whom one request has room for, and at least one. Who has gone away is passed over.
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

    /// Appends to the stream, wherever it stands. Tells the index of the first event.
    async fn append(&self, store: &EventStore, events: Vec<StoredEvent>) -> Result<u64> {
        // Until it is known where the stream stands then, nobody knows.
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

/// Tells everyone the indexes of their own events, or what went wrong.
fn tell(group: Vec<Waiting>, told: Result<u64>) {
    let mut start = told;
    for one in group {
        let end = start.clone().map(|start| start + one.events.len() as u64);
        let range = start.and_then(|start| Ok(start..end.clone()?));
        // Who has gone away does not want to know.
        drop(one.answer.send(range));
        start = end;
    }
}

/// The lines of all streams that are appended to, and of some that were.
#[derive(Default)]
struct Lines {
    by_stream: HashMap<StreamName, Place>,
    /// The streams that nobody appends to, the one that has been so for longest first.
    idle: BTreeMap<u64, StreamName>,
    idle_bytes: usize,
    /// Counts how often a stream became idle.
    clock: u64,
}

/// A line and who is in it.
struct Place {
    line: Arc<Line>,
    callers: usize,
    /// Since when it is idle.
    since: u64,
    /// What is remembered of it while it is idle.
    bytes: usize,
}

/// A caller's place in a line, which is left when it is dropped.
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
        // What was under way may hold anything, so it ends where no lock is held.
        drop(abandoned);
    }
}

impl Lines {
    /// One caller less. Gives back what was under way if it was the last.
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

    /// Forgets what has been idle for longest, until there is room.
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
