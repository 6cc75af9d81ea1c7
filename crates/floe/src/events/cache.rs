//! Cached states, so that loading a stream again reads only new events.
//!
//! The cache is bounded in bytes. Eviction takes the head of a queue, unless it was used since it was queued: then it
//! is queued again. A use therefore only records a number, and eviction is approximately least recently used. While
//! one caller loads a stream, other callers of the same stream wait for it instead of loading it too.

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe_store::Timestamp;

use super::keys::StreamName;
use super::position::StreamPosition;
use crate::lock::lock;

/// How long states stay in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Caching {
    /// This long after the last use.
    Sliding(Duration),
    /// This long after they were first loaded.
    Fixed(Duration),
}

/// Estimated size of a state besides the events of the Tip.
const STATE_BYTES: usize = 512;

/// Number of surplus entries that triggers a sweep.
const SWEEP_ENTRIES: usize = 64;

/// Identifies a state: its decider and its stream.
type Key = (TypeId, StreamName);

/// A cache of stream states.
#[derive(Debug)]
pub(crate) struct StateCache {
    caching: Caching,
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Key, Entry>,
    /// Queued entries with the number of their queueing. Entries with another number are stale and skipped.
    queue: VecDeque<(u64, Key)>,
    /// Counts operations, to order them.
    clock: u64,
    bytes: usize,
    /// Number of entries at which unneeded ones are removed.
    sweep_at: usize,
}

#[derive(Debug)]
struct Entry {
    cached: Option<CachedState>,
    used: u64,
    /// The number of its queueing, if it is queued.
    queued: Option<u64>,
    /// Held while a caller loads the stream.
    load_lock: Arc<tokio::sync::Mutex<()>>,
}

/// A state in the cache, of any decider.
#[derive(Debug)]
struct CachedState {
    state: Arc<dyn Any + Send + Sync>,
    position: StreamPosition,
    /// When it was first loaded.
    first_loaded: Timestamp,
    refreshed: Timestamp,
    used: Timestamp,
    /// The number of the operation that stored it.
    number: u64,
    bytes: usize,
}

/// A state found in the cache.
#[derive(Debug)]
pub(crate) struct Cached<S> {
    pub(crate) state: Arc<S>,
    pub(crate) position: StreamPosition,
    /// When it was last known to be current.
    pub(crate) refreshed: Timestamp,
    /// The number of the operation that stored it.
    pub(crate) number: u64,
}

/// The lock of the caller that loads a stream.
#[derive(Clone, Debug)]
pub(crate) struct LoadLock {
    pub(crate) lock: Arc<tokio::sync::Mutex<()>>,
    /// The number of the request: states with a larger number were stored while the caller waited.
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

    /// Returns the lock for loading this stream.
    pub(crate) fn load_lock<D: 'static>(&self, stream: &StreamName) -> LoadLock {
        let mut state = lock(&self.state);
        let clock = state.tick();
        let entry = state.entry(key::<D>(stream), clock);
        LoadLock {
            lock: entry.load_lock.clone(),
            number: clock,
        }
    }

    /// Removes a stream that does not exist.
    pub(crate) fn forget<D: 'static>(&self, stream: &StreamName) {
        let mut state = lock(&self.state);
        let entry = state.entries.remove(&key::<D>(stream));
        let freed = entry.and_then(|entry| entry.cached);
        state.bytes -= freed.map_or(0, |cached| cached.bytes);
    }

    /// Returns the cached state of a stream, unless it has expired.
    pub(crate) fn get<D: 'static, S: Send + Sync + 'static>(
        &self,
        stream: &StreamName,
        now: Timestamp,
    ) -> Option<Cached<S>> {
        let mut state = lock(&self.state);
        let clock = state.tick();
        let entry = state.entries.get_mut(&key::<D>(stream))?;
        let cached = entry.cached.as_mut()?;
        let has_expired = match self.caching {
            Caching::Sliding(window) => now.since(cached.used) > window,
            Caching::Fixed(window) => now.since(cached.first_loaded) > window,
        };
        if has_expired {
            let bytes = entry.cached.take().map_or(0, |cached| cached.bytes);
            state.bytes -= bytes;
            return None;
        }
        cached.used = now;
        let found = Cached {
            state: cached.state.clone().downcast::<S>().ok()?,
            position: cached.position.clone(),
            refreshed: cached.refreshed,
            number: cached.number,
        };
        entry.used = clock;
        Some(found)
    }

    /// Stores a state, unless a newer one is stored.
    pub(crate) fn put<D: 'static, S: Send + Sync + 'static>(
        &self,
        stream: &StreamName,
        value: Arc<S>,
        position: StreamPosition,
        now: Timestamp,
    ) {
        let mut state = lock(&self.state);
        let clock = state.tick();
        let key = key::<D>(stream);
        let entry = state.entry(key.clone(), clock);
        let before = entry.cached.as_ref();
        if before.is_some_and(|before| before.position.version > position.version) {
            return;
        }
        let bytes = position.bytes() + size_of::<S>() + STATE_BYTES;
        let freed = before.map_or(0, |before| before.bytes);
        let first_loaded = before.map_or(now, |before| before.first_loaded);
        entry.cached = Some(CachedState {
            state: value,
            position,
            first_loaded,
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

    /// Evicts the least recently used states until there is room.
    fn make_room(&self, state: &mut State) {
        while state.bytes > self.bytes_max {
            let Some((queued, key)) = state.queue.pop_front() else {
                return;
            };
            let entry = state.entries.get_mut(&key);
            let Some(entry) = entry.filter(|entry| entry.queued == Some(queued)) else {
                continue;
            };
            match &entry.cached {
                Some(_) if entry.used > queued => {
                    let used = entry.used;
                    entry.queued = Some(used);
                    state.queue.push_back((used, key));
                }
                Some(cached) => {
                    state.bytes -= cached.bytes;
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

    /// Queues an entry. Stale queue entries are removed from time to time, so that the queue stays proportional to
    /// the entries.
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

    /// Returns the entry of a stream, creating it if necessary.
    fn entry(&mut self, key: Key, clock: u64) -> &mut Entry {
        if self.entries.len() >= self.sweep_at {
            // Entries without a state are needed only while a caller holds their lock.
            let is_needed =
                |entry: &Entry| entry.cached.is_some() || Arc::strong_count(&entry.load_lock) > 1;
            self.entries.retain(|_, entry| is_needed(entry));
            self.sweep_at = self.entries.len() * 2 + SWEEP_ENTRIES;
        }
        self.entries.entry(key).or_insert_with(|| Entry {
            cached: None,
            used: clock,
            queued: None,
            load_lock: Arc::default(),
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

    fn at(version: u64) -> StreamPosition {
        StreamPosition {
            version,
            etag: None,
            calved_bytes: 0,
            tip: Events::default(),
            last_write: None,
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
    fn state_expires_by_sliding_or_fixed_window() {
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
    fn older_state_does_not_replace_a_newer_one() {
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 1 << 20);
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(5), seconds(0));
        cache.put::<Cart, u32>(&name(1), Arc::new(6), at(4), seconds(0));
        assert_eq!(version(&cache, 1, 0), Some(5));
    }

    #[test]
    fn least_recently_used_states_are_evicted() {
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
    fn replaced_state_keeps_its_queue_position_and_counts_as_used() {
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
    fn expired_and_stored_again_state_is_evictable() {
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
    fn queue_stays_proportional_to_the_entries() {
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
    fn missing_streams_are_not_remembered() {
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 1 << 20);
        for id in 0..10 {
            cache.load_lock::<Cart>(&name(id));
            cache.forget::<Cart>(&name(id));
        }
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
        cache.forget::<Cart>(&name(1));
        assert!(lock(&cache.state).entries.is_empty());
        assert_eq!(lock(&cache.state).bytes, 0);
    }

    #[test]
    fn state_stored_while_waiting_has_a_larger_number() {
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 1 << 20);
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
        let number = || cache.get::<Cart, u32>(&name(1), seconds(0)).unwrap().number;
        let load_lock = cache.load_lock::<Cart>(&name(1));
        assert!(number() < load_lock.number);
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
        assert!(number() > load_lock.number);
    }

    #[test]
    fn entries_without_state_are_removed_unless_their_lock_is_held() {
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 1 << 20);
        let held = cache.load_lock::<Cart>(&name(0));
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
        for id in 2..10_000 {
            drop(cache.load_lock::<Cart>(&name(id)));
        }
        assert!(lock(&cache.state).entries.len() < 4 * SWEEP_ENTRIES);
        let again = cache.load_lock::<Cart>(&name(0));
        assert!(Arc::ptr_eq(&held.lock, &again.lock));
        assert_eq!(version(&cache, 1, 0), Some(1));
    }

    #[test]
    fn deciders_do_not_share_states() {
        struct Other;
        let cache = StateCache::new(Caching::Sliding(Duration::from_secs(30)), 1 << 20);
        cache.put::<Cart, u32>(&name(1), Arc::new(7), at(1), seconds(0));
        assert!(cache.get::<Other, u32>(&name(1), seconds(0)).is_none());
    }
}
