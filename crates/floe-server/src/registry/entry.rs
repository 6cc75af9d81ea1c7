//! The state of a connection: its phase, when the phase began, and its progress.
//!
//! The connection's task updates it with plain stores on every read and write, without reading a clock: time is counted
//! in ticks. The registry reads it and may disconnect the client. Both agree through one atomic word, so that a
//! connection is never closed while a request is being executed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use tokio::task::AbortHandle;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing of the next request has arrived.
    Idle,
    /// The headers of a request are being received.
    Head,
    /// The body of a request is being received.
    Body,
    /// The request is being executed: the client waits for the server.
    Executing,
    /// The response is being sent.
    Responding,
    /// The server has closed the connection.
    Closed,
}

impl Phase {
    const fn from_bits(bits: u64) -> Self {
        match bits {
            0 => Self::Idle,
            1 => Self::Head,
            2 => Self::Body,
            3 => Self::Executing,
            4 => Self::Responding,
            _ => Self::Closed,
        }
    }
}

/// A time, in [ticks](crate::limits::TICK).
pub(crate) type Tick = u32;

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The phase and the tick at which it began.
    state: AtomicU64,
    /// The tick of the last read or write.
    progress_at: AtomicU32,
    /// Bytes read or written in this phase.
    progress_bytes: AtomicUsize,
    /// Memory that the connection has reserved.
    held_bytes: AtomicUsize,
    has_responded: AtomicBool,
    task: OnceLock<AbortHandle>,
}

/// The state of an [`Entry`] at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntrySnapshot {
    state: u64,
    pub(crate) phase: Phase,
    /// Ticks since the phase began.
    pub(crate) age: Tick,
    /// Ticks since the last read or write.
    pub(crate) stalled: Tick,
    pub(crate) progress_bytes: usize,
    pub(crate) held_bytes: usize,
    pub(crate) has_responded: bool,
}

impl Entry {
    pub(crate) fn new(now: Tick) -> Self {
        Self {
            state: AtomicU64::new(pack(Phase::Idle, now)),
            progress_at: AtomicU32::new(now),
            progress_bytes: AtomicUsize::new(0),
            held_bytes: AtomicUsize::new(0),
            has_responded: AtomicBool::new(false),
            task: OnceLock::new(),
        }
    }

    /// Returns the phase.
    pub(crate) fn phase(&self) -> Phase {
        unpack(self.state.load(Ordering::SeqCst)).0
    }

    /// Begins a phase. Returns false if the connection was closed.
    pub(crate) fn begin(&self, phase: Phase, now: Tick) -> bool {
        self.progress_at.store(now, Ordering::Relaxed);
        self.progress_bytes.store(0, Ordering::Relaxed);
        let before = self.state.swap(pack(phase, now), Ordering::SeqCst);
        unpack(before).0 != Phase::Closed
    }

    /// Records that a response was sent. The connection waits for the next request.
    pub(crate) fn response_sent(&self, now: Tick) -> bool {
        self.has_responded.store(true, Ordering::Relaxed);
        self.set_held_bytes(0);
        self.begin(Phase::Idle, now)
    }

    /// Records that bytes were read or written.
    pub(crate) fn record_progress(&self, bytes: usize, now: Tick) {
        self.progress_at.store(now, Ordering::Relaxed);
        // Only the connection's own task counts, so no update is lost in between.
        let before = self.progress_bytes.load(Ordering::Relaxed);
        self.progress_bytes
            .store(before.saturating_add(bytes), Ordering::Relaxed);
    }

    /// Records how much memory the connection has reserved.
    pub(crate) fn set_held_bytes(&self, bytes: usize) {
        self.held_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Sets the handle with which the connection's task is aborted.
    pub(crate) fn set_task(&self, task: AbortHandle) {
        if self.task.set(task).is_ok() && self.phase() == Phase::Closed {
            self.abort();
        }
    }

    pub(crate) fn snapshot(&self, now: Tick) -> EntrySnapshot {
        let state = self.state.load(Ordering::SeqCst);
        let (phase, since) = unpack(state);
        EntrySnapshot {
            state,
            phase,
            age: now.saturating_sub(since),
            stalled: now.saturating_sub(self.progress_at.load(Ordering::Relaxed)),
            progress_bytes: self.progress_bytes.load(Ordering::Relaxed),
            held_bytes: self.held_bytes.load(Ordering::Relaxed),
            has_responded: self.has_responded.load(Ordering::Relaxed),
        }
    }

    /// Closes the connection, unless its state has changed since the snapshot. Returns whether it did.
    pub(crate) fn close(&self, snapshot: &EntrySnapshot) -> bool {
        let closed = pack(Phase::Closed, 0);
        let changed =
            self.state
                .compare_exchange(snapshot.state, closed, Ordering::SeqCst, Ordering::SeqCst);
        if changed.is_ok() {
            self.abort();
        }
        changed.is_ok()
    }

    /// Aborts the connection's task in any phase.
    pub(crate) fn abort(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

const fn pack(phase: Phase, since: Tick) -> u64 {
    (phase as u64) << 32 | since as u64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower half is the tick"
)]
const fn unpack(state: u64) -> (Phase, Tick) {
    (Phase::from_bits(state >> 32), state as Tick)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_and_tick_round_trip() {
        for phase in [
            Phase::Idle,
            Phase::Head,
            Phase::Body,
            Phase::Executing,
            Phase::Responding,
            Phase::Closed,
        ] {
            assert_eq!(unpack(pack(phase, Tick::MAX)), (phase, Tick::MAX));
        }
    }

    #[test]
    fn changed_connection_is_not_closed() {
        let entry = Entry::new(0);
        let snapshot = entry.snapshot(300);
        assert!(entry.begin(Phase::Executing, 300));
        assert!(!entry.close(&snapshot));
        assert_eq!(entry.phase(), Phase::Executing);
    }

    #[test]
    fn closed_connection_cannot_begin_a_phase() {
        let entry = Entry::new(0);
        assert!(entry.close(&entry.snapshot(300)));
        assert!(!entry.begin(Phase::Executing, 300));
    }

    #[test]
    fn progress_is_counted_per_phase() {
        let entry = Entry::new(0);
        entry.begin(Phase::Body, 5);
        entry.record_progress(100, 6);
        entry.record_progress(50, 9);
        let snapshot = entry.snapshot(12);
        assert_eq!(
            (snapshot.age, snapshot.stalled, snapshot.progress_bytes),
            (7, 3, 150)
        );
        entry.begin(Phase::Responding, 12);
        let snapshot = entry.snapshot(12);
        assert_eq!(
            (snapshot.age, snapshot.stalled, snapshot.progress_bytes),
            (0, 0, 0)
        );
    }
}
