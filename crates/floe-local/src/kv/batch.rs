//! Writes that are applied as a whole.

use super::bytes::Bytes;
use super::space::Space;

/// Writes to several spaces that are applied as a whole. A key must stand in it once only.
#[derive(Default)]
pub(crate) struct Batch {
    pub(super) writes: Vec<(Space, Bytes, Option<Bytes>)>,
    bytes: usize,
}

impl Batch {
    /// Sets a [key](Space::key) to a value, or removes it.
    pub(crate) fn push(&mut self, space: Space, key: Bytes, value: Option<Bytes>) {
        debug_assert_eq!(key.skip, space.skip(), "a key of another space");
        self.bytes += key.len() + value.as_ref().map_or(0, |value| value.len());
        self.writes.push((space, key, value));
    }

    /// Sets a key to a value.
    pub(crate) fn put(&mut self, space: Space, key: impl AsRef<[u8]>, value: impl Into<Bytes>) {
        self.push(space, space.key(key.as_ref()), Some(value.into()));
    }

    /// Replaces the value that a write of this batch sets.
    pub(crate) fn replace(&mut self, write: usize, value: Option<Bytes>) {
        if let Some((_, _, before)) = self.writes.get_mut(write) {
            self.bytes += value.as_ref().map_or(0, |value| value.len());
            *before = value;
        }
    }

    /// The value that a write of this batch sets; `None` if it removes its key.
    pub(crate) fn value(&self, write: usize) -> Option<&Bytes> {
        self.writes.get(write)?.2.as_ref()
    }

    /// How many writes there are.
    pub(crate) const fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there is no write in it.
    pub(crate) const fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// How many bytes it writes, roughly.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn has_each_key_once(&self) -> bool {
        let mut seen = std::collections::HashSet::new();
        self.writes
            .iter()
            .all(|(space, key, _)| seen.insert((space, key)))
    }
}
