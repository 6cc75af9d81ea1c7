//! The registry reads and changes of a transaction, until it commits.
//!
//! Every item that a body uses is recorded as read and as changed. Reads go through this module, so that a body sees
//! its own changes. `compile.rs` turns them into the writes of the commit.

use std::collections::BTreeMap;

use floe_store::Item;

use super::keys::{GroupKey, ItemKey, version_of};

/// The registry reads and changes of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Changes(pub(super) BTreeMap<ItemKey, ItemState>);

/// The state of an item that the body uses.
#[derive(Debug)]
pub(super) struct ItemState {
    pub(super) group: GroupKey,
    /// The item as read; `None` if it was absent.
    pub(super) read: Option<Item>,
    /// The item with the changes of the body.
    pub(super) now: Option<Item>,
    /// Whether the outcome depends on it.
    pub(super) is_watched: bool,
    /// Whether the item was not read, but inferred from its pointer.
    pub(super) is_inferred: bool,
}

impl Changes {
    /// The item as the body sees it; `None` if it must be read first.
    pub(super) fn current(&self, key: &ItemKey) -> Option<Option<Item>> {
        self.0.get(key).map(|state| state.now.clone())
    }

    /// Records the result of a read. The first result of an item stays.
    pub(super) fn record_read(&mut self, group: &GroupKey, key: &ItemKey, read: Option<Item>) {
        self.record(group, key, read, false);
    }

    /// Records an item inferred from its pointer.
    pub(super) fn record_inferred(
        &mut self,
        group: &GroupKey,
        key: &ItemKey,
        inferred: Option<Item>,
    ) {
        self.record(group, key, inferred, true);
    }

    fn record(&mut self, group: &GroupKey, key: &ItemKey, read: Option<Item>, is_inferred: bool) {
        self.0.entry(key.clone()).or_insert_with(|| ItemState {
            group: group.clone(),
            now: read.clone(),
            read,
            is_watched: false,
            is_inferred,
        });
    }

    /// Makes the outcome depend on a recorded item.
    pub(super) fn watch(&mut self, key: &ItemKey) {
        if let Some(state) = self.0.get_mut(key) {
            state.is_watched = true;
        }
    }

    /// Replaces or removes a recorded item.
    pub(super) fn put(&mut self, key: &ItemKey, item: Option<Item>) {
        if let Some(state) = self.0.get_mut(key) {
            state.now = item;
        }
    }

    /// The recorded versions of a group that exist.
    pub(super) fn versions(&self, group: &GroupKey) -> Vec<(u64, Item)> {
        let own = self.0.values().filter(|state| state.group == *group);
        let there = own.filter_map(|state| state.now.as_ref());
        there
            .filter_map(|item| Some((version_of(group.schema, item)?, item.clone())))
            .collect()
    }
}
