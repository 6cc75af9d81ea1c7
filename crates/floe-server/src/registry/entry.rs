//! What the server knows of a connection: what it is doing, since when, and whether it moves.
//!
//! The task of the connection writes it with plain stores, on every read and every write, and asks no clock: time
//! is counted in ticks. Who looks after all connections reads it, and may cut one off. Both agree through one
//! word, so that a connection is never cut off while a call is being answered.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use tokio::task::AbortHandle;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing of the next request is there.
    Waiting,
    /// The headers of a request are coming in.
    Head,
    /// The body of a request is coming in.
    Body,
    /// The request is being answered: the client waits for the server.
    Serving,
    /// The answer is going out.
    Answering,
    /// It was cut off.
    Cut,
}

impl Phase {
    const fn from_bits(bits: u64) -> Self {
        match bits {
            0 => Self::Waiting,
            1 => Self::Head,
            2 => Self::Body,
            3 => Self::Serving,
            4 => Self::Answering,
            _ => Self::Cut,
        }
    }
}

/// A moment, counted in [ticks](crate::limits::TICK).
pub(crate) type Tick = u32;

/// What the server knows of a connection.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The phase, and the tick in which it began.
    state: AtomicU64,
    /// The last tick in which something was read or written.
    moved_at: AtomicU32,
    /// What was read or written in this phase.
    moved_bytes: AtomicUsize,
    /// The counted memory that it holds.
    held_bytes: AtomicUsize,
    has_answered: AtomicBool,
    task: OnceLock<AbortHandle>,
}

/// What [`Entry`] was in one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    state: u64,
    pub(crate) phase: Phase,
    /// Ticks since the phase began.
    pub(crate) age: Tick,
    /// Ticks since something moved.
    pub(crate) still: Tick,
    pub(crate) moved_bytes: usize,
    pub(crate) held_bytes: usize,
    pub(crate) has_answered: bool,
}

impl Entry {
    pub(crate) fn new(now: Tick) -> Self {
        Self {
            state: AtomicU64::new(pack(Phase::Waiting, now)),
            moved_at: AtomicU32::new(now),
            moved_bytes: AtomicUsize::new(0),
            held_bytes: AtomicUsize::new(0),
            has_answered: AtomicBool::new(false),
            task: OnceLock::new(),
        }
    }

    /// What the connection is doing.
    pub(crate) fn phase(&self) -> Phase {
        unpack(self.state.load(Ordering::SeqCst)).0
    }

    /// Begins a phase. Returns whether the connection may go on, which it may not once it was cut off.
    pub(crate) fn enter(&self, phase: Phase, now: Tick) -> bool {
        self.moved_at.store(now, Ordering::Relaxed);
        self.moved_bytes.store(0, Ordering::Relaxed);
        let before = self.state.swap(pack(phase, now), Ordering::SeqCst);
        unpack(before).0 != Phase::Cut
    }

    /// Notes that an answer has gone out, and waits for the next request.
    pub(crate) fn answered(&self, now: Tick) -> bool {
        self.has_answered.store(true, Ordering::Relaxed);
        self.holds(0);
        self.enter(Phase::Waiting, now)
    }

    /// Notes that something was read or written.
    pub(crate) fn moved(&self, bytes: usize, now: Tick) {
        self.moved_at.store(now, Ordering::Relaxed);
        // Its own task alone counts, so nothing is lost between the two.
        let before = self.moved_bytes.load(Ordering::Relaxed);
        self.moved_bytes
            .store(before.saturating_add(bytes), Ordering::Relaxed);
    }

    /// Notes how much counted memory it holds.
    pub(crate) fn holds(&self, bytes: usize) {
        self.held_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Notes by which handle its task is ended.
    pub(crate) fn set_task(&self, task: AbortHandle) {
        if self.task.set(task).is_ok() && self.phase() == Phase::Cut {
            self.abort();
        }
    }

    pub(crate) fn look(&self, now: Tick) -> Look {
        let state = self.state.load(Ordering::SeqCst);
        let (phase, since) = unpack(state);
        Look {
            state,
            phase,
            age: now.saturating_sub(since),
            still: now.saturating_sub(self.moved_at.load(Ordering::Relaxed)),
            moved_bytes: self.moved_bytes.load(Ordering::Relaxed),
            held_bytes: self.held_bytes.load(Ordering::Relaxed),
            has_answered: self.has_answered.load(Ordering::Relaxed),
        }
    }

    /// Cuts the connection off, unless it has gone on since it was looked at.
    pub(crate) fn cut(&self, look: &Look) -> bool {
        let cut = pack(Phase::Cut, 0);
        let changed =
            self.state
                .compare_exchange(look.state, cut, Ordering::SeqCst, Ordering::SeqCst);
        if changed.is_ok() {
            self.abort();
        }
        changed.is_ok()
    }

    /// Ends its task, whatever it is doing.
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
    fn a_phase_is_read_as_it_was_written() {
        for phase in [
            Phase::Waiting,
            Phase::Head,
            Phase::Body,
            Phase::Serving,
            Phase::Answering,
            Phase::Cut,
        ] {
            assert_eq!(unpack(pack(phase, Tick::MAX)), (phase, Tick::MAX));
        }
    }

    #[test]
    fn what_has_gone_on_is_not_cut_off() {
        let entry = Entry::new(0);
        let look = entry.look(300);
        assert!(entry.enter(Phase::Serving, 300));
        assert!(!entry.cut(&look));
        assert_eq!(entry.phase(), Phase::Serving);
    }

    #[test]
    fn what_was_cut_off_does_not_go_on() {
        let entry = Entry::new(0);
        assert!(entry.cut(&entry.look(300)));
        assert!(!entry.enter(Phase::Serving, 300));
    }

    #[test]
    fn what_moves_is_counted_by_phase() {
        let entry = Entry::new(0);
        entry.enter(Phase::Body, 5);
        entry.moved(100, 6);
        entry.moved(50, 9);
        let look = entry.look(12);
        assert_eq!((look.age, look.still, look.moved_bytes), (7, 3, 150));
        entry.enter(Phase::Answering, 12);
        let look = entry.look(12);
        assert_eq!((look.age, look.still, look.moved_bytes), (0, 0, 0));
    }
}
