//! Values of a packed item that are decoded one by one, on first access.

use std::cmp::Ordering;
use std::sync::OnceLock;

use super::{OFFSETS_MAX, Packed, PackedReader};
use crate::value::Value;
use crate::value::item::find;

/// Decoded values, by the index of their attribute.
pub(super) type Slots = Box<[OnceLock<Value>]>;

impl Packed {
    /// Returns the value of an attribute. For an item with few attributes, only this value is decoded and cached. An
    /// item with many attributes is unpacked as a whole, because finding each attribute would scan all of it.
    pub(in crate::value::item) fn get(&self, name: &str) -> Option<&Value> {
        if self.attributes.get().is_some() || self.len() > OFFSETS_MAX {
            return find(self.attributes(), name);
        }
        let (at, value) = self.find(name)?;
        let empty = || (0..self.len()).map(|_| OnceLock::new()).collect();
        let slot = self.slots.get_or_init(empty).get(at)?;
        Some(slot.get_or_init(|| value.unpack()))
    }

    /// Whether the attribute exists.
    pub(in crate::value::item) fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns the index of an attribute, and a reader at its value.
    pub(in crate::value::item) fn find(&self, name: &str) -> Option<(usize, PackedReader<'_>)> {
        let (mut reader, count) = self.attributes_reader();
        for at in 0..count {
            match reader.take_name_bytes().cmp(name.as_bytes()) {
                Ordering::Less => {}
                Ordering::Equal => return Some((at, reader)),
                Ordering::Greater => return None,
            }
            match self.reader_at(at + 1) {
                Some(next) => reader = next,
                None if at + 1 == count => {}
                None => reader.skip(),
            }
        }
        None
    }
}
