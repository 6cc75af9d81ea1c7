//! What a transaction has read and changed in registries, until it commits.
//!
//! Every item that a body touches is noted as it was read and as it is to be. Reading goes through here, so a body sees
//! its own changes. `compile.rs` makes the writes of the commit of it.

use std::collections::BTreeMap;

use floe_store::Item;

use super::keys::{GroupPlace, Place, version_of};

/// What was read and changed in registries.
#[derive(Debug, Default)]
pub(crate) struct Changes(pub(super) BTreeMap<Place, State>);

/// An item that the body has touched.
#[derive(Debug)]
pub(super) struct State {
    pub(super) group: GroupPlace,
    /// As it was read; `None` if it was not there.
    pub(super) read: Option<Item>,
    /// As it is to be.
    pub(super) now: Option<Item>,
    /// Whether the outcome depends on it.
    pub(super) is_watched: bool,
    /// It was not read: its pointer has told what it is.
    pub(super) is_told: bool,
}

impl Changes {
    /// The item as the body sees it; `None` if it has to be read.
    pub(super) fn known(&self, place: &Place) -> Option<Option<Item>> {
        self.0.get(place).map(|state| state.now.clone())
    }

    /// Takes note of what was read. What was read first counts.
    pub(super) fn settle(&mut self, group: &GroupPlace, place: &Place, read: Option<Item>) {
        self.note(group, place, read, false);
    }

    /// Takes note of what an item is by the word of its pointer.
    pub(super) fn tell(&mut self, group: &GroupPlace, place: &Place, told: Option<Item>) {
        self.note(group, place, told, true);
    }

    fn note(&mut self, group: &GroupPlace, place: &Place, read: Option<Item>, is_told: bool) {
        self.0.entry(place.clone()).or_insert_with(|| State {
            group: group.clone(),
            now: read.clone(),
            read,
            is_watched: false,
            is_told,
        });
    }

    /// Takes note that the outcome depends on an item that is known.
    pub(super) fn watch(&mut self, place: &Place) {
        if let Some(state) = self.0.get_mut(place) {
            state.is_watched = true;
        }
    }

    /// Puts an item that is known in place of what is there, or removes it.
    pub(super) fn put(&mut self, place: &Place, item: Option<Item>) {
        if let Some(state) = self.0.get_mut(place) {
            state.now = item;
        }
    }

    /// The versions of a group that are known and there.
    pub(super) fn versions(&self, group: &GroupPlace) -> Vec<(u64, Item)> {
        let own = self.0.values().filter(|state| state.group == *group);
        let there = own.filter_map(|state| state.now.as_ref());
        there
            .filter_map(|item| Some((version_of(group.schema, item)?, item.clone())))
            .collect()
    }
}
