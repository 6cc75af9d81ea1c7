//! Values of a packed item that are made one by one, when somebody asks for them.

use std::cmp::Ordering;
use std::sync::OnceLock;

use super::{Input, PLACES_MAX, Packed};
use crate::value::Value;
use crate::value::item::find;

/// Values that were asked for, by their places.
pub(super) type Slots = Box<[OnceLock<Value>]>;

impl Packed {
    /// The value of an attribute. Of an item of few attributes that one alone is made, and kept; an item of many is
    /// unpacked as a whole, since whoever asks for many of them would go through all of it each time.
    pub(in crate::value::item) fn get(&self, name: &str) -> Option<&Value> {
        if self.attributes.get().is_some() || self.len() > PLACES_MAX {
            return find(self.attributes(), name);
        }
        let (at, value) = self.find(name)?;
        let empty = || (0..self.len()).map(|_| OnceLock::new()).collect();
        let slot = self.slots.get_or_init(empty).get(at)?;
        Some(slot.get_or_init(|| value.make()))
    }

    /// Whether the attribute is there.
    pub(in crate::value::item) fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The place of an attribute, and what begins with its value.
    pub(in crate::value::item) fn find(&self, name: &str) -> Option<(usize, Input<'_>)> {
        let (mut input, count) = self.attributes_input();
        for at in 0..count {
            match input.take_name_bytes().cmp(name.as_bytes()) {
                Ordering::Less => {}
                Ordering::Equal => return Some((at, input)),
                Ordering::Greater => return None,
            }
            match self.input_at(at + 1) {
                Some(next) => input = next,
                None if at + 1 == count => {}
                None => input.pass(),
            }
        }
        None
    }
}
