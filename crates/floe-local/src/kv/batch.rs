//! Batches of writes that are applied atomically.

use super::bytes::Bytes;
use super::space::Space;

/// Writes to several spaces that are applied atomically. Each key may occur only once.
#[derive(Default)]
pub(crate) struct Batch {
    pub(super) writes: Vec<(Space, Bytes, Option<Bytes>)>,
    bytes: usize,
}

impl Batch {
    /// Sets a [key](Space::key) to a value, or removes it.
    pub(crate) fn push(&mut self, space: Space, key: Bytes, value: Option<Bytes>) {
        debug_assert_eq!(key.skip, space.skip(), "the key belongs to another space");
        self.bytes += key.len() + value.as_ref().map_or(0, |value| value.len());
        self.writes.push((space, key, value));
    }

    /// Sets a key to a value.
    pub(crate) fn put(&mut self, space: Space, key: impl AsRef<[u8]>, value: impl Into<Bytes>) {
        self.push(space, space.key(key.as_ref()), Some(value.into()));
    }

    /// Replaces the value of the write at this index.
    pub(crate) fn replace(&mut self, write: usize, value: Option<Bytes>) {
        if let Some((_, _, before)) = self.writes.get_mut(write) {
            self.bytes += value.as_ref().map_or(0, |value| value.len());
            *before = value;
        }
    }

    /// The value of the write at this index; `None` if it removes its key.
    pub(crate) fn value(&self, write: usize) -> Option<&Bytes> {
        self.writes.get(write)?.2.as_ref()
    }

    /// The number of writes.
    pub(crate) const fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether the batch is empty.
    pub(crate) const fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The approximate number of bytes it writes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn has_unique_keys(&self) -> bool {
        let mut seen = std::collections::HashSet::new();
        self.writes
            .iter()
            .all(|(space, key, _)| seen.insert((space, key)))
    }
}
