//! Coalescing: concurrent appends to one stream are sent as one request.
//!
//! Callers join a queue, one queue per stream. One caller becomes the leader and sends the events of all queued callers
//! that fit into a request; then each receives the indexes of its events. A caller that is still queued becomes the
//! next leader.
//!
//! The request in flight belongs to the queue, not to the leader. A caller can therefore be cancelled at any time: the
//! next leader continues the same request, and nothing is lost or appended twice. Only when all callers of a stream are
//! cancelled, the request in flight is dropped, as for any cancelled append.
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
use super::position::StreamPosition;
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
    queues: Mutex<Queues>,
}

impl Appender {
    /// Creates an appender for the streams of this store. `linger` is the pause before a request, in which further
    /// appends can join; with zero, only appends during a request in flight are coalesced.
    pub fn new(store: EventStore, linger: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                linger,
                queues: Mutex::default(),
            }),
        }
    }

    /// Appends events to a stream, atomically and adjacent. Returns their indexes.
    ///
    /// A cancelled call may have appended its events or not. A started call must be polled or dropped: while it is the
    /// leader, other callers wait for it.
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
        let member = self.shared.join(stream);
        let queue = &member.queue;
        let mut result = queue.push(self.shared.store.stored(events)?);
        // A caller that receives its result first leaves the lead to another caller.
        let mut in_flight = match select(&mut result, pin!(queue.in_flight.lock())).await {
            Either::Left((result, _)) => {
                return result.unwrap_or_else(|_| Err(sender_dropped(stream)));
            }
            Either::Right((in_flight, _)) => in_flight,
        };
        loop {
            let (store, linger) = (self.shared.store.clone(), self.shared.linger);
            in_flight
                .get_or_insert_with(|| Box::pin(queue.clone().send(store, linger)))
                .await;
            *in_flight = None;
            match result.try_recv() {
                Ok(result) => return result,
                // The request was full before it reached this caller.
                Err(oneshot::error::TryRecvError::Empty) => {}
                Err(oneshot::error::TryRecvError::Closed) => return Err(sender_dropped(stream)),
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
fn sender_dropped(stream: &StreamName) -> Error {
    let message = format!("append outcome unknown: stream={stream}");
    Error::new(ErrorKind::OutcomeUnknown, message)
}

type AppendResult = Result<Range<u64>>;

/// The callers that append to one stream.
struct Queue {
    stream: StreamName,
    waiting: Mutex<VecDeque<QueuedAppend>>,
    /// The position of the stream, if known.
    position: Mutex<Option<StreamPosition>>,
    /// The request in flight. Locked by the leader.
    in_flight: tokio::sync::Mutex<Option<BoxFuture<'static, ()>>>,
}

/// The append of a queued caller.
struct QueuedAppend {
    events: Vec<StoredEvent>,
    bytes: usize,
    result: oneshot::Sender<AppendResult>,
}

impl Queue {
    fn new(stream: StreamName) -> Self {
        Self {
            stream,
            waiting: Mutex::default(),
            position: Mutex::default(),
            in_flight: tokio::sync::Mutex::default(),
        }
    }

    /// Adds an append to the end of the queue.
    fn push(&self, events: Vec<StoredEvent>) -> oneshot::Receiver<AppendResult> {
        let (result, receiver) = oneshot::channel();
        lock(&self.waiting).push_back(QueuedAppend {
            bytes: events.iter().map(|event| event.size().estimate).sum(),
            events,
            result,
        });
        receiver
    }

    /// Lingers, and sends what is queued then.
    async fn send(self: Arc<Self>, store: EventStore, linger: Duration) {
        if !linger.is_zero() {
            store.db().timer().sleep(linger).await;
        }
        let group = self.take();
        let events = group.iter().flat_map(|append| &append.events);
        let events: Vec<_> = events.cloned().collect();
        if events.is_empty() {
            return;
        }
        let start = self.append(&store, events).await;
        send_results(group, start);
    }

    /// Takes the appends that fit into one request, at least one. Skips those of cancelled callers.
    fn take(&self) -> Vec<QueuedAppend> {
        let mut waiting = lock(&self.waiting);
        let mut group: Vec<QueuedAppend> = Vec::new();
        let (mut events, mut bytes) = (0, 0);
        while let Some(next) = waiting.pop_front() {
            if next.result.is_closed() {
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
            position = tip.as_ref().map(StreamPosition::of_tip);
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
fn send_results(group: Vec<QueuedAppend>, mut start: Result<u64>) {
    for append in group {
        let end = start
            .clone()
            .map(|start| start + append.events.len() as u64);
        let range = start.and_then(|start| Ok(start..end.clone()?));
        // A cancelled caller needs no result.
        drop(append.result.send(range));
        start = end;
    }
}

/// The queues of all streams with callers, and of some idle ones.
#[derive(Default)]
struct Queues {
    by_stream: HashMap<StreamName, QueueEntry>,
    /// Streams without callers, longest idle first.
    idle: BTreeMap<u64, StreamName>,
    idle_bytes: usize,
    /// Counts how often streams became idle.
    clock: u64,
}

/// A queue and its number of callers.
struct QueueEntry {
    queue: Arc<Queue>,
    callers: usize,
    /// The count at which it became idle.
    idle_since: u64,
    /// Size of its position while it is idle.
    bytes: usize,
}

/// A caller's membership in a queue, which ends when it is dropped.
struct QueueMember {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
}

impl Shared {
    /// Adds a caller to the queue of a stream.
    fn join(self: &Arc<Self>, stream: &StreamName) -> QueueMember {
        let mut queues = lock(&self.queues);
        let Queues {
            by_stream,
            idle,
            idle_bytes,
            ..
        } = &mut *queues;
        let entry = by_stream
            .entry(stream.clone())
            .or_insert_with(|| QueueEntry {
                queue: Arc::new(Queue::new(stream.clone())),
                callers: 0,
                idle_since: 0,
                bytes: 0,
            });
        if entry.callers == 0 && idle.remove(&entry.idle_since).is_some() {
            *idle_bytes -= entry.bytes;
        }
        entry.callers += 1;
        QueueMember {
            shared: self.clone(),
            queue: entry.queue.clone(),
        }
    }
}

impl Drop for QueueMember {
    fn drop(&mut self) {
        let in_flight = lock(&self.shared.queues).leave(&self.queue);
        // The request in flight may hold any resource, so it is dropped without holding the lock.
        drop(in_flight);
    }
}

impl Queues {
    /// Removes a caller. Returns the request in flight if it was the last caller.
    fn leave(&mut self, queue: &Queue) -> Option<BoxFuture<'static, ()>> {
        let entry = self.by_stream.get_mut(&queue.stream)?;
        entry.callers -= 1;
        if entry.callers > 0 {
            return None;
        }
        let in_flight = queue.in_flight.try_lock().ok();
        let in_flight = in_flight.and_then(|mut in_flight| in_flight.take());
        lock(&queue.waiting).clear();
        let Some(bytes) = lock(&queue.position).as_ref().map(StreamPosition::bytes) else {
            self.by_stream.remove(&queue.stream);
            return in_flight;
        };
        self.clock += 1;
        (entry.idle_since, entry.bytes) = (self.clock, bytes);
        self.idle.insert(self.clock, queue.stream.clone());
        self.idle_bytes += bytes;
        self.make_room();
        in_flight
    }

    /// Removes the longest idle queues until there is room.
    fn make_room(&mut self) {
        while self.idle.len() > IDLE_STREAMS_MAX || self.idle_bytes > IDLE_BYTES_MAX {
            let Some((_, stream)) = self.idle.pop_first() else {
                return;
            };
            let entry = self.by_stream.remove(&stream);
            self.idle_bytes -= entry.map_or(0, |entry| entry.bytes);
        }
    }
}
