//! States that are kept in memory, so that loading a stream again reads only what is new.
//!
//! What is kept is bounded in bytes. All of it stands in a queue; where room is needed, the first in it makes room, unless
//! it was used since it was queued: then it is queued again. So a use costs no more than a note of it, and what was used
//! longest ago goes first, about. While a stream is being loaded for one caller, others who want the same stream wait
//! for it instead of loading it too.

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe_store::Timestamp;

use super::keys::StreamName;
use super::position::Position;
use crate::lock::lock;

/// How long states are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caching {
    /// As long after they were used last.
    Sliding(Duration),
    /// As long after they were loaded first.
    Fixed(Duration),
}

/// What a state takes besides the events in the Tip, where nobody knows better.
const STATE_BYTES: usize = 512;

/// So many entries more than are needed may be there before they are looked for.
const SWEEP_ENTRIES: usize = 64;

/// Which state of which stream.
type Key = (TypeId, StreamName);

/// States of streams, shared by those who load them.
#[derive(Debug)]
pub(crate) struct StateCache {
    caching: Caching,
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Key, Entry>,
    /// What is kept, and when it was queued. What its entry does not say of itself is passed over.
    queue: VecDeque<(u64, Key)>,
    /// Counts what was done, to tell what was before what.
    clock: u64,
    bytes: usize,
    /// With how many entries those are looked for that nobody needs.
    sweep_at: usize,
}

#[derive(Debug)]
struct Entry {
    kept: Option<Kept>,
    used: u64,
    /// When it was queued, if it is.
    queued: Option<u64>,
    /// Held by who loads the stream.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
struct Kept {
    state: Arc<dyn Any + Send + Sync>,
    position: Position,
    begun: Timestamp,
    refreshed: Timestamp,
    used: Timestamp,
    /// Which of all that was done kept it.
    number: u64,
    bytes: usize,
}

/// A state that was kept.
#[derive(Debug)]
pub(crate) struct Cached<S> {
    pub(crate) state: Arc<S>,
    pub(crate) position: Position,
    /// When it was seen to be the present state.
    pub(crate) refreshed: Timestamp,
    /// Which of all that was done kept it.
    pub(crate) number: u64,
}

/// The turn of whoever loads a stream.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) lock: Arc<tokio::sync::Mutex<()>>,
    /// Which of all that was done asked for it: what is kept by a greater number was kept while others waited.
    pub(crate) number: u64,
}

impl StateCache {
    pub(crate) fn new(caching: Caching, bytes_max: usize) -> Self {
        Self {
            caching,
            bytes_max,
            state: Mutex::default(),
        }
    }

    /// The turn of whoever loads this stream.
    pub(crate) fn turn<D: 'static>(&self, stream: &StreamName) -> Turn {
        let mut state = lock(&self.state);
        let clock = state.tick();
        let entry = state.entry(key::<D>(stream), clock);
        Turn {
            lock: entry.turn.clone(),
            number: clock,
        }
    }

    /// Forgets a stream that is not there.
    pub(crate) fn forget<D: 'static>(&self, stream: &StreamName) {
        let mut state = lock(&self.state);
        let entry = state.entries.remove(&key::<D>(stream));
        let freed = entry.and_then(|entry| entry.kept);
        state.bytes -= freed.map_or(0, |kept| kept.bytes);
    }

    /// What is kept of a stream, unless it is too old.
    pub(crate) fn get<D: 'static, S: Send + Sync + 'static>(
        &self,
        stream: &StreamName,
        now: Timestamp,
    ) -> Option<Cached<S>> {
        let mut state = lock(&self.state);
        let clock = state.tick();
        let entry = state.entries.get_mut(&key::<D>(stream))?;
        let kept = entry.kept.as_mut()?;
        let is_over = match self.caching {
            Caching::Sliding(window) => now.since(kept.used) > window,
            Caching::Fixed(window) => now.since(kept.begun) > window,
        };
        if is_over {
            let bytes = entry.kept.take().map_or(0, |kept| kept.bytes);
            state.bytes -= bytes;
            return None;
        }
        kept.used = now;
        let cached = Cached {
            state: kept.state.clone().downcast::<S>().ok()?,
            position: kept.position.clone(),
            refreshed: kept.refreshed,
            number: kept.number,
        };
        entry.used = clock;
        Some(cached)
    }

    /// Keeps a state, unless a later one is kept.
    pub(crate) fn put<D: 'static, S: Send + Sync + 'static>(
        &self,
        stream: &StreamName,
        value: Arc<S>,
        position: Position,
        now: Timestamp,
    ) {
        let mut state = lock(&self.state);
        let clock = state.tick();
        let key = key::<D>(stream);
        let entry = state.entry(key.clone(), clock);
        let before = entry.kept.as_ref();
        if before.is_some_and(|kept| kept.position.version > position.version) {
            return;
        }
        let bytes = position.bytes() + size_of::<S>() + STATE_BYTES;
        let freed = before.map_or(0, |kept| kept.bytes);
        let begun = before.map_or(now, |kept| kept.begun);
        entry.kept = Some(Kept {
            state: value,
            position,
            begun,
            refreshed: now,
            used: now,
            number: clock,
            bytes,
        });
        entry.used = clock;
        let queued = *entry.queued.get_or_insert(clock);
        state.bytes = state.bytes + bytes - freed;
        if queued == clock {
            state.enqueue(clock, key);
        }
        self.make_room(&mut state);
    }

    /// Forgets what was not used for long, until there is room.
    fn make_room(&self, state: &mut State) {
        while state.bytes > self.bytes_max {
            let Some((queued, key)) = state.queue.pop_front() else {
                return;
            };
            let entry = state.entries.get_mut(&key);
            let Some(entry) = entry.filter(|entry| entry.queued == Some(queued)) else {
                continue;
            };
            match &entry.kept {
                Some(_) if entry.used > queued => {
                    let used = entry.used;
                    entry.queued = Some(used);
                    state.queue.push_back((used, key));
                }
                Some(kept) => {
                    state.bytes -= kept.bytes;
                    state.entries.remove(&key);
                }
                None => entry.queued = None,
            }
        }
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Puts an entry at the end of the queue. What was forgotten is left out from time to time, so that the queue stays as
    /// long as there are entries, about.
    fn enqueue(&mut self, clock: u64, key: Key) {
        if self.queue.len() >= self.entries.len() * 2 + SWEEP_ENTRIES {
            let entries = &self.entries;
            self.queue.retain(|(queued, key)| {
                let entry = entries.get(key);
                entry.is_some_and(|entry| entry.queued == Some(*queued))
            });
        }
        self.queue.push_back((clock, key));
    }

    /// The entry of a stream, which is made if there is none.
    fn entry(&mut self, key: Key, clock: u64) -> &mut Entry {
        if self.entries.len() >= self.sweep_at {
            // Of a stream that could not be loaded, or whose state has become too old, only the turn is left.
            let is_needed =
                |entry: &Entry| entry.kept.is_some() || Arc::strong_count(&entry.turn) > 1;
            self.entries.retain(|_, entry| is_needed(entry));
            self.sweep_at = self.entries.len() * 2 + SWEEP_ENTRIES;
        }
        self.entries.entry(key).or_insert_with(|| Entry {
            kept: None,
            used: clock,
            queued: None,
            turn: Arc::default(),
        })
    }
}

fn key<D: 'static>(stream: &StreamName) -> Key {
    (TypeId::of::<D>(), stream.clone())
}

#[cfg(test)]
mod tests {
    use super::super::stored::Events;
    use super::*;

    struct Cart;

    fn name(id: u32) -> StreamName {
        StreamName::new("Cart", &id).unwrap()
    }

    fn at(version: u64) -> Position {
        Position {
            version,
            etag: None,
            calved_bytes: 0,
            tip: Events::default(),
            left: None,
        }
    }

    fn seconds(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn version(cache: &StateCache, id: u32, now: u64) -> Option<u64> {
        let cached = cache.get::<Cart, u32>(&name(id), seconds(now));
        cached.map(|cached| cached.position.version)
    }

    #[test]
    fn a_state_is_kept_as_long_as_it_is_used_or_as_long_as_it_may_be() {
        for (caching, at_50, at_70) in [
            (Caching::Sliding(Duration::from_secs(30)), Some(2), Some(2)),
            (Caching::Fixed(Duration::from_secs(60)), Some(2), None),
        ] {
            let cache = StateCache::new(caching, 1 << 20);
            cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
            assert_eq!(version(&cache, 1, 25), Some(1));
            cache.put::<Cart, u32>(&name(1), Arc::new(7), at(2), seconds(25));
            assert_eq!(version(&cache, 1, 50), at_50, "{caching:?}");
            cache.put::<Cart, u32>(&name(1), Arc::new(7), at(2), seconds(50));
            assert_eq!(version(&cache, 1, 70), at_70, "{caching:?}");
            assert_eq!(version(&cache, 1, 200), None);
            assert_eq!(lock(&cache.state).bytes, 0);
        }
    }

    #[test]
    fn an_older_state_takes_the_place_of_none_that_is_newer() {
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 1 << 20);
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(5), seconds(0));
        cache.put::<Cart, u32>(&name(1), Arc::new(6), at(4), seconds(0));
        assert_eq!(version(&cache, 1, 0), Some(5));
    }

    #[test]
    fn those_used_longest_ago_make_room() {
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 3000);
        for id in 0..4 {
            cache.put::<Cart, u32>(&name(id), Arc::new(7), at(1), seconds(0));
        }
        assert_eq!(version(&cache, 0, 0), Some(1));
        cache.put::<Cart, u32>(&name(4), Arc::new(7), at(1), seconds(0));
        let kept: Vec<_> = (0..5)
            .filter(|id| version(&cache, *id, 0).is_some())
            .collect();
        assert_eq!(kept, [0, 2, 3, 4]);
        assert!(lock(&cache.state).bytes <= 3000);
    }

    #[test]
    fn what_is_put_again_stays_in_its_place_and_counts_as_used() {
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 3000);
        let put = |id, version| {
            cache.put::<Cart, u32>(&name(id), Arc::new(7), at(version), seconds(0));
        };
        for id in 0..4 {
            put(id, 1);
        }
        put(0, 2);
        put(1, 2);
        put(4, 1);
        put(5, 1);
        let kept: Vec<_> = (0..6)
            .filter(|id| version(&cache, *id, 0).is_some())
            .collect();
        assert_eq!(kept, [0, 1, 4, 5]);
    }

    #[test]
    fn what_was_too_old_and_is_kept_again_makes_room_like_the_others() {
        let cache = StateCache::new(Caching::Fixed(Duration::from_secs(30)), 3000);
        let put = |id, now| cache.put::<Cart, u32>(&name(id), Arc::new(7), at(1), seconds(now));
        put(0, 0);
        assert_eq!(version(&cache, 0, 60), None);
        put(0, 60);
        for id in 1..10 {
            put(id, 60);
        }
        assert_eq!(version(&cache, 0, 60), None);
        assert_eq!(version(&cache, 9, 60), Some(1));
        assert!(lock(&cache.state).bytes <= 3000);
    }

    #[test]
    fn the_queue_is_no_longer_than_it_must_be() {
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 1 << 20);
        for round in 0..1000 {
            for id in 0..10 {
                cache.put::<Cart, u32>(&name(id), Arc::new(7), at(1), seconds(0));
                assert_eq!(version(&cache, id, 0), Some(1), "{round}");
            }
        }
        assert_eq!(lock(&cache.state).queue.len(), 10);
        for _ in 0..1000 {
            cache.forget::<Cart>(&name(1));
            cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
        }
        assert!(lock(&cache.state).queue.len() <= 10 * 2 + SWEEP_ENTRIES + 1);
        let forgotten = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 100_000);
        for id in 0..10_000 {
            forgotten.put::<Cart, u32>(&name(id), Arc::new(7), at(1), seconds(0));
        }
        let state = lock(&forgotten.state);
        assert!(state.bytes <= 100_000 && state.entries.len() > 50);
        assert!(state.queue.len() <= state.entries.len() * 2 + SWEEP_ENTRIES + 1);
    }

    #[test]
    fn streams_that_are_not_there_are_not_remembered() {
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 1 << 20);
        for id in 0..10 {
            cache.turn::<Cart>(&name(id));
            cache.forget::<Cart>(&name(id));
        }
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
        cache.forget::<Cart>(&name(1));
        assert!(lock(&cache.state).entries.is_empty());
        assert_eq!(lock(&cache.state).bytes, 0);
    }

    #[test]
    fn what_is_kept_while_others_wait_for_their_turn_has_a_greater_number() {
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 1 << 20);
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
        let number = || cache.get::<Cart, u32>(&name(1), seconds(0)).unwrap().number;
        let turn = cache.turn::<Cart>(&name(1));
        assert!(number() < turn.number);
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
        assert!(number() > turn.number);
    }

    #[test]
    fn of_streams_without_a_state_nothing_stays_but_turns_that_are_held() {
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 1 << 20);
        let held = cache.turn::<Cart>(&name(0));
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
        for id in 2..10_000 {
            drop(cache.turn::<Cart>(&name(id)));
        }
        assert!(lock(&cache.state).entries.len() < 4 * SWEEP_ENTRIES);
        let again = cache.turn::<Cart>(&name(0));
        assert!(Arc::ptr_eq(&held.lock, &again.lock));
        assert_eq!(version(&cache, 1, 0), Some(1));
    }

    #[test]
    fn two_who_fold_the_same_stream_differently_do_not_meet() {
        struct Other;
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 1 << 20);
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
        assert!(cache.get::<Other, u32>(&name(1), seconds(0)).is_none());
    }
}
