//! All connections: their slots, and the rules by which they are closed.
//!
//! One task checks all connections at every tick, so that no request pays for a timer. A connection is closed only
//! while the server waits for the client, never while the client waits for a response.

mod entry;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use crate::limits::{Limits, TICK};
use crate::memory::MemoryBudget;
use entry::{EntrySnapshot, Tick};

pub(crate) use entry::{Entry, Phase};

/// How long a connection that holds memory may make no progress while a request waits for memory.
const STALL_UNDER_PRESSURE: Duration = Duration::from_millis(300);

/// Time after which a transfer must have reached [`PACE_UNDER_PRESSURE`] while a request waits for memory.
const DEADLINE_UNDER_PRESSURE: Duration = Duration::from_secs(1);

/// Minimum transfer rate while a request waits for memory, in bytes per second.
const PACE_UNDER_PRESSURE: usize = 1 << 20;

/// A tick stops reclaiming once it has freed this fraction (one eighth) of a budget, starting with the connections that
/// have stalled longest. Not all are closed at once: some may only have waited for the CPU of a busy machine.
const RECLAIM_DIVISOR: usize = 8;

/// All connections.
#[derive(Debug)]
pub(crate) struct Registry {
    limits: Limits,
    /// Memory for large request bodies.
    pub(crate) bodies: Arc<MemoryBudget>,
    /// Memory for large responses.
    pub(crate) responses: Arc<MemoryBudget>,
    slots: Mutex<Slots>,
    now: AtomicU32,
    is_draining: AtomicBool,
    /// Notified when a connection is opened or closed.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Slots {
    /// Open connections by number.
    open: BTreeMap<u64, Arc<Entry>>,
    /// Number of connections ever opened.
    last_number: u64,
}

impl Registry {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            bodies: MemoryBudget::new(limits.bodies_bytes_max),
            responses: MemoryBudget::new(limits.responses_bytes_max),
            limits,
            slots: Mutex::default(),
            now: AtomicU32::new(0),
            is_draining: AtomicBool::new(false),
            changed: Notify::new(),
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the current tick.
    pub(crate) fn now(&self) -> Tick {
        self.now.load(Ordering::Relaxed)
    }

    /// Whether the server is shutting down and accepts no further requests.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst)
    }

    /// Returns a slot for a new connection, if one is free.
    pub(crate) fn try_acquire_slot(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let entry = Arc::new(Entry::new(self.now()));
        let mut slots = self.slots();
        if slots.open.len() >= self.limits.connections_max {
            return None;
        }
        slots.last_number += 1;
        let number = slots.last_number;
        slots.open.insert(number, Arc::clone(&entry));
        drop(slots);
        self.changed.notify_waiters();
        Some(ConnectionSlot {
            registry: Arc::clone(self),
            entry,
            number,
        })
    }

    /// Returns a slot for a new connection. If none is free, closes the connection that has waited longest for its
    /// client, preferring those that never received a response. If none waits for its client, waits for a slot.
    pub(crate) async fn acquire_slot(self: &Arc<Self>) -> ConnectionSlot {
        loop {
            // Created before the attempt, so that no change is missed.
            let changed = self.changed.notified();
            if let Some(slot) = self.try_acquire_slot() {
                return slot;
            }
            self.evict();
            // A connection with recent progress may be evictable a tick later.
            let _ = tokio::time::timeout(TICK, changed).await;
        }
    }

    /// Closes the connection that has waited longest for its client.
    pub(crate) fn evict(&self) -> bool {
        let now = self.now();
        let slots = self.slots();
        let waiting = slots.open.values().filter_map(|entry| {
            let snapshot = entry.snapshot(now);
            (snapshot.is_waiting_for_client() && snapshot.stalled > 0).then_some((entry, snapshot))
        });
        let longest =
            waiting.max_by_key(|(_, snapshot)| (!snapshot.has_responded, snapshot.stalled));
        longest.is_some_and(|(entry, snapshot)| entry.close(&snapshot))
    }

    /// Counts ticks while there are connections, and closes those that are overdue.
    pub(crate) async fn watch(&self) {
        let mut ticks = tokio::time::interval(TICK);
        // A delayed tick counts once: the server was busy, and no client is at fault.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.now.fetch_add(1, Ordering::Relaxed);
            self.sweep();
            // Created before the check, so that no change is missed.
            let changed = self.changed.notified();
            if self.count() == 0 {
                changed.await;
                ticks.reset();
            }
        }
    }

    /// Closes connections that are overdue, and those that hold memory without progress while a request waits for
    /// memory.
    pub(crate) fn sweep(&self) {
        let now = self.now();
        let slots = self.slots();
        for entry in slots.open.values() {
            let snapshot = entry.snapshot(now);
            if self.is_overdue(&snapshot) {
                entry.close(&snapshot);
            }
        }
        self.reclaim(&slots, Phase::Body, &self.bodies);
        self.reclaim(&slots, Phase::Responding, &self.responses);
    }

    fn is_overdue(&self, snapshot: &EntrySnapshot) -> bool {
        let limits = &self.limits;
        match snapshot.phase {
            Phase::Idle if snapshot.has_responded => snapshot.age > ticks(limits.idle_deadline),
            Phase::Idle | Phase::Head => snapshot.age > ticks(limits.head_deadline),
            Phase::Body => is_behind(snapshot, limits.body_deadline, limits.pace_bytes),
            Phase::Responding => is_behind(snapshot, limits.response_deadline, limits.pace_bytes),
            Phase::Executing | Phase::Closed => false,
        }
    }

    /// Closes stalled connections if a request waits for their memory.
    fn reclaim(&self, slots: &Slots, phase: Phase, memory: &MemoryBudget) {
        if !memory.is_under_pressure() {
            return;
        }
        let now = self.now();
        let snapshots = slots
            .open
            .values()
            .map(|entry| (entry, entry.snapshot(now)));
        let mut holders: Vec<_> = snapshots
            .filter(|(_, snapshot)| snapshot.phase == phase && snapshot.is_stalled_holder())
            .collect();
        holders.sort_unstable_by_key(|(_, snapshot)| Reverse(snapshot.stalled));
        let mut freed = 0;
        for (entry, snapshot) in holders {
            if freed >= memory.bytes_max() / RECLAIM_DIVISOR {
                return;
            }
            if entry.close(&snapshot) {
                freed += snapshot.held_bytes;
            }
        }
    }

    /// Shuts down: closes idle connections and lets the others finish. Returns when all are closed; connections that
    /// are still open at the deadline are aborted.
    pub(crate) async fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        let now = self.now();
        for entry in self.slots().open.values() {
            let snapshot = entry.snapshot(now);
            if snapshot.phase == Phase::Idle {
                entry.close(&snapshot);
            }
        }
        let all_closed = self.all_closed();
        if tokio::time::timeout(self.limits.shutdown_deadline, all_closed)
            .await
            .is_err()
        {
            self.slots().open.values().for_each(|entry| entry.abort());
            self.all_closed().await;
        }
    }

    async fn all_closed(&self) {
        loop {
            // Created before the check, so that no change is missed.
            let changed = self.changed.notified();
            if self.count() == 0 {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.slots().open.len()
    }

    fn release(&self, number: u64) {
        self.slots().open.remove(&number);
        self.changed.notify_waiters();
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EntrySnapshot {
    /// Whether the connection holds memory without sufficient progress.
    fn is_stalled_holder(&self) -> bool {
        let is_stalled = self.stalled > ticks(STALL_UNDER_PRESSURE);
        self.held_bytes > 0
            && (is_stalled || is_behind(self, DEADLINE_UNDER_PRESSURE, PACE_UNDER_PRESSURE))
    }

    /// Whether the server waits for the client.
    const fn is_waiting_for_client(&self) -> bool {
        !matches!(self.phase, Phase::Executing | Phase::Closed)
    }
}

/// Whether the deadline has passed and fewer bytes were transferred than the pace requires.
fn is_behind(snapshot: &EntrySnapshot, deadline: Duration, pace_bytes: usize) -> bool {
    let millis = snapshot.progress_bytes.saturating_mul(1000) / pace_bytes.max(1);
    let earned = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
    snapshot.age > ticks(deadline.saturating_add(earned))
}

/// Converts a duration to ticks.
fn ticks(time: Duration) -> Tick {
    Tick::try_from(time.as_millis() / TICK.as_millis()).unwrap_or(Tick::MAX)
}

/// The slot of a connection, released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) registry: Arc<Registry>,
    pub(crate) entry: Arc<Entry>,
    number: u64,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.registry.release(self.number);
    }
}
