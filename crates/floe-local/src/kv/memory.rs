//! The store in memory: a persistent map for each space, which is cloned for a snapshot.

use std::ops::Bound;

use super::{Batch, Bytes, Direction, KeyBounds, Space, as_slice, is_empty_range};

/// All spaces at one point in time.
pub(crate) type MemoryState = imbl::OrdMap<Space, imbl::OrdMap<Bytes, Bytes>>;

/// Number of entries that an iterator fetches at a time.
const FETCH: usize = 64;

/// Returns the state after a batch.
pub(super) fn apply(batch: Batch, state: &MemoryState) -> MemoryState {
    let mut state = state.clone();
    for (space, key, value) in batch.writes {
        let map = state.entry(space).or_default();
        match value {
            Some(value) => map.insert(key, value),
            None => map.remove(&key),
        };
        if map.is_empty() {
            state.remove(&space);
        }
    }
    state
}

/// An iterator over a persistent map. It borrows nothing, so it fetches a few entries at a time.
pub(super) struct MemoryRange {
    map: imbl::OrdMap<Bytes, Bytes>,
    bounds: KeyBounds,
    /// The next entries in reverse order.
    ahead: Vec<(Bytes, Bytes)>,
}

impl MemoryRange {
    /// Creates an iterator over a space within nonempty bounds.
    pub(super) fn new(state: &MemoryState, space: Space, bounds: KeyBounds) -> Self {
        Self {
            map: state.get(&space).cloned().unwrap_or_default(),
            bounds,
            ahead: Vec::new(),
        }
    }

    pub(super) fn next(&mut self, direction: Direction) -> Option<(Bytes, Bytes)> {
        if self.ahead.is_empty() {
            self.fetch(direction);
        }
        self.ahead.pop()
    }

    fn fetch(&mut self, direction: Direction) {
        let (start, end) = (as_slice(&self.bounds.0), as_slice(&self.bounds.1));
        if is_empty_range(start, end) {
            return;
        }
        let range = self.map.range::<_, [u8]>((start, end));
        let entry = |(key, value): (&Bytes, &Bytes)| (key.clone(), value.clone());
        self.ahead = match direction {
            Direction::Forward => range.take(FETCH).map(entry).collect(),
            Direction::Backward => range.rev().take(FETCH).map(entry).collect(),
        };
        if let Some((last, _)) = self.ahead.last() {
            let last = Bound::Excluded(last.to_vec());
            match direction {
                Direction::Forward => self.bounds.0 = last,
                Direction::Backward => self.bounds.1 = last,
            }
        }
        self.ahead.reverse();
    }
}
