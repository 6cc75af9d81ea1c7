//! Who is connected, and who must go: the places of the server and the rules by which they are lost.
//!
//! One task looks at all connections in every tick, so that no request pays for a timer. A connection is only cut
//! off while the server waits for its client, never while the client waits for an answer.

mod entry;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use crate::limits::{Limits, TICK};
use crate::memory::Budget;
use entry::{Look, Tick};

pub(crate) use entry::{Entry, Phase};

/// Who holds counted memory may stand still for so long while others wait for it.
const STILL_WHEN_SHORT: Duration = Duration::from_millis(300);

/// After this it must have moved at [`PACE_WHEN_SHORT`].
const DEADLINE_WHEN_SHORT: Duration = Duration::from_secs(1);

/// What it must send or take in a second meanwhile.
const PACE_WHEN_SHORT: usize = 1 << 20;

/// The part of the memory that is won back in a tick: those who stand still longest go first, and not all at once,
/// because who has stood still for a moment may only have had to wait for its turn on a busy machine.
const FREED_IN_A_TICK: usize = 8;

/// All connections.
#[derive(Debug)]
pub(crate) struct Registry {
    limits: Limits,
    /// Memory for large bodies.
    pub(crate) bodies: Arc<Budget>,
    /// Memory for large answers.
    pub(crate) answers: Arc<Budget>,
    places: Mutex<Places>,
    now: AtomicU32,
    is_draining: AtomicBool,
    /// Notified when a connection came or went.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Places {
    /// Those that are taken, by number.
    taken: BTreeMap<u64, Arc<Entry>>,
    /// How many were ever taken.
    entered: u64,
}

impl Registry {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            bodies: Budget::new(limits.bodies_bytes_max),
            answers: Budget::new(limits.answers_bytes_max),
            limits,
            places: Mutex::default(),
            now: AtomicU32::new(0),
            is_draining: AtomicBool::new(false),
            changed: Notify::new(),
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The present tick.
    pub(crate) fn now(&self) -> Tick {
        self.now.load(Ordering::Relaxed)
    }

    /// Whether the server takes no further requests.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }

    /// A place for one more, if there is one.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Option<Place> {
        let entry = Arc::new(Entry::new(self.now()));
        let mut places = self.places();
        if places.taken.len() >= self.limits.connections_max {
            return None;
        }
        places.entered += 1;
        let number = places.entered;
        places.taken.insert(number, Arc::clone(&entry));
        drop(places);
        self.changed.notify_waiters();
        Some(Place {
            registry: Arc::clone(self),
            entry,
            number,
        })
    }

    /// A place for one more. If there is none, the one that has waited longest for its client loses its own,
    /// one that never had an answer before one that had. If nobody waits for its client, a place is waited for.
    pub(crate) async fn enter(self: &Arc<Self>) -> Place {
        loop {
            // From here on no change is missed.
            let changed = self.changed.notified();
            if let Some(place) = self.try_enter() {
                return place;
            }
            self.evict();
            // Those who move now may stand still a tick later.
            let _ = tokio::time::timeout(TICK, changed).await;
        }
    }

    /// Cuts off the one that has waited longest for its client.
    pub(crate) fn evict(&self) -> bool {
        let now = self.now();
        let places = self.places();
        let waiting = places.taken.values().filter_map(|entry| {
            let look = entry.look(now);
            (look.is_waiting_for_client() && look.still > 0).then_some((entry, look))
        });
        let longest = waiting.max_by_key(|(_, look)| (!look.has_answered, look.still));
        longest.is_some_and(|(entry, look)| entry.cut(&look))
    }

    /// Lets time pass as long as there are connections, and cuts off those that are overdue.
    pub(crate) async fn watch(&self) {
        let mut ticks = tokio::time::interval(TICK);
        // A tick that comes late is one tick: when the server had no time to look, nobody is to blame.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.now.fetch_add(1, Ordering::Relaxed);
            self.sweep();
            // From here on no change is missed.
            let changed = self.changed.notified();
            if self.count() == 0 {
                changed.await;
                ticks.reset();
            }
        }
    }

    /// Cuts off all that are overdue, and those who hold memory that others wait for and do not move.
    pub(crate) fn sweep(&self) {
        let now = self.now();
        let places = self.places();
        for entry in places.taken.values() {
            let look = entry.look(now);
            if self.is_overdue(&look) {
                entry.cut(&look);
            }
        }
        self.win_back(&places, Phase::Body, &self.bodies);
        self.win_back(&places, Phase::Answering, &self.answers);
    }

    fn is_overdue(&self, look: &Look) -> bool {
        let limits = &self.limits;
        match look.phase {
            Phase::Waiting if look.has_answered => look.age > ticks(limits.idle_deadline),
            Phase::Waiting | Phase::Head => look.age > ticks(limits.head_deadline),
            Phase::Body => is_behind(look, limits.body_deadline, limits.pace_bytes),
            Phase::Answering => is_behind(look, limits.answer_deadline, limits.pace_bytes),
            Phase::Serving | Phase::Cut => false,
        }
    }

    /// Wins back memory that others wait for.
    fn win_back(&self, places: &Places, phase: Phase, memory: &Budget) {
        if !memory.is_short() {
            return;
        }
        let now = self.now();
        let looks = places.taken.values().map(|entry| (entry, entry.look(now)));
        let mut holders: Vec<_> = looks
            .filter(|(_, look)| look.phase == phase && look.is_holding_up())
            .collect();
        holders.sort_unstable_by_key(|(_, look)| Reverse(look.still));
        let mut freed = 0;
        for (entry, look) in holders {
            if freed >= memory.bytes_max() / FREED_IN_A_TICK {
                return;
            }
            if entry.cut(&look) {
                freed += look.held_bytes;
            }
        }
    }

    /// Takes no further requests: those who wait for their client go, the others finish what they are doing.
    /// Returns when all are gone, or the deadline is over and the rest was cut off.
    pub(crate) async fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        let now = self.now();
        for entry in self.places().taken.values() {
            let look = entry.look(now);
            if look.phase == Phase::Waiting {
                entry.cut(&look);
            }
        }
        let all_gone = self.all_gone();
        if tokio::time::timeout(self.limits.shutdown_deadline, all_gone)
            .await
            .is_err()
        {
            self.places().taken.values().for_each(|entry| entry.abort());
            self.all_gone().await;
        }
    }

    async fn all_gone(&self) {
        loop {
            // From here on no change is missed.
            let changed = self.changed.notified();
            if self.count() == 0 {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.places().taken.len()
    }

    fn leave(&self, number: u64) {
        self.places().taken.remove(&number);
        self.changed.notify_waiters();
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Look {
    /// Whether it holds memory without moving as it should.
    fn is_holding_up(&self) -> bool {
        let is_still = self.still > ticks(STILL_WHEN_SHORT);
        self.held_bytes > 0 && (is_still || is_behind(self, DEADLINE_WHEN_SHORT, PACE_WHEN_SHORT))
    }

    /// Whether the server waits for the client, and not the other way round.
    const fn is_waiting_for_client(&self) -> bool {
        !matches!(self.phase, Phase::Serving | Phase::Cut)
    }
}

/// Whether the deadline is over, and what has moved since is less than the pace asks for.
fn is_behind(look: &Look, deadline: Duration, pace_bytes: usize) -> bool {
    let millis = look.moved_bytes.saturating_mul(1000) / pace_bytes.max(1);
    let earned = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
    look.age > ticks(deadline.saturating_add(earned))
}

/// The ticks in a time.
fn ticks(time: Duration) -> Tick {
    Tick::try_from(time.as_millis() / TICK.as_millis()).unwrap_or(Tick::MAX)
}

/// The place of a connection, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) registry: Arc<Registry>,
    pub(crate) entry: Arc<Entry>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.registry.leave(self.number);
    }
}
