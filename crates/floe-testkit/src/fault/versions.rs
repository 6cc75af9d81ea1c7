//! Earlier versions of items, kept as long as a stale read may return them.
//!
//! For each recently written item, its versions in order. The last one is the current item; the one before it is
//! what a reader sees that the last write has not reached yet, and so on.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use floe_store::{Item, Timestamp};

use super::control::{Attempt, index_units};
use super::faults::{Faults, Lag};
use super::random;

/// Maximum number of versions of an item. Older ones are discarded and never returned.
const VERSIONS_MAX: usize = 64;

/// A moment in both units of a [`Lag`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The number of an operation.
    pub(super) number: u64,
    /// The engine's time.
    pub(super) time: Timestamp,
}

/// The change that a write made to an item.
pub(super) struct Change {
    pub(super) key: Item,
    pub(super) before: Option<Item>,
    pub(super) after: Option<Item>,
}

/// An item of which a reader sees an earlier version.
#[derive(Clone, Debug)]
pub(super) struct OutdatedItem {
    pub(super) key: Item,
    /// The version that the reader sees.
    pub(super) seen: Option<Item>,
    /// The current version.
    pub(super) current: Option<Item>,
}

/// A version of an item.
struct Version {
    image: Option<Item>,
    /// The number of the write that created it.
    write: u64,
    since: Moment,
}

impl Version {
    /// Whether a reader at this moment, lagging by this many units, sees the version.
    fn reached(&self, lag: Lag, units: u64, reader: Moment) -> bool {
        units == 0
            || match lag {
                Lag::Operations(_) => self.since.number.saturating_add(units) <= reader.number,
                Lag::Time(_) => self.since.time.plus(Duration::from_millis(units)) <= reader.time,
            }
    }
}

/// The versions of an item, at least one.
struct ItemVersions {
    /// The hash of the key.
    hash: u64,
    versions: VecDeque<Version>,
    /// The number of versions discarded from the front.
    discarded: usize,
    /// The index, counting discarded versions, of the newest version that an eventually consistent read returned.
    shown: usize,
}

impl ItemVersions {
    fn push(&mut self, image: Option<Item>, write: u64, since: Moment) {
        self.versions.push_back(Version {
            image,
            write,
            since,
        });
        if self.versions.len() > VERSIONS_MAX {
            self.discard_first();
        }
    }

    fn discard_first(&mut self) {
        self.versions.pop_front();
        self.discarded += 1;
    }

    /// The index of the last version that is reached together with all before it. The first version always is.
    fn newest(&self, reached: impl Fn(&Version) -> bool) -> usize {
        self.versions
            .iter()
            .skip(1)
            .take_while(|v| reached(v))
            .count()
    }

    fn old(&self, key: &Item, place: usize) -> Option<OutdatedItem> {
        let (seen, current) = (self.versions.get(place)?, self.versions.back()?);
        (place + 1 < self.versions.len()).then(|| OutdatedItem {
            key: key.clone(),
            seen: seen.image.clone(),
            current: current.image.clone(),
        })
    }
}

/// The versions of all recently written items.
#[derive(Default)]
pub(super) struct VersionHistory {
    tables: HashMap<String, HashMap<Item, ItemVersions>>,
    /// The number of changes recorded since the last sweep.
    changes_since_sweep: usize,
}

impl VersionHistory {
    /// Records a change. Changes of one item must be recorded in the order of the writes.
    pub(super) fn record(
        &mut self,
        faults: &Faults,
        table: &str,
        change: Change,
        write: u64,
        since: Moment,
    ) {
        if change.before == change.after {
            return;
        }
        let items = self.tables.entry(table.to_owned()).or_default();
        let hash = random::hash_text(&format!("{:?}", change.key));
        let item = items.entry(change.key).or_insert_with(|| ItemVersions {
            hash,
            versions: VecDeque::new(),
            discarded: 0,
            shown: 0,
        });
        // A write that bypassed the wrapper left a state other than the last recorded version.
        if item
            .versions
            .back()
            .is_none_or(|last| last.image != change.before)
        {
            item.push(change.before, write, since);
        }
        item.push(change.after, write, since);
        self.changes_since_sweep += 1;
        if self.changes_since_sweep > 1000 {
            self.sweep(faults, since);
        }
    }

    /// The items whose last changes have not reached a global index yet. The delay belongs to the change, so an
    /// index never goes back to an earlier version.
    pub(super) fn lagging(
        &self,
        attempt: &Attempt<'_>,
        table: &str,
        index: &str,
        reader: Moment,
    ) -> Vec<OutdatedItem> {
        let (Some(lag), Some(late)) = (attempt.faults().index_lag, attempt.index_lags()) else {
            return Vec::new();
        };
        let index = random::hash_text(index);
        let items = self.tables.get(table).into_iter().flatten();
        items
            .filter_map(|(key, item)| {
                let place = item.newest(|version| {
                    let change = [version.write, index, item.hash];
                    let units = index_units(attempt.faults(), lag, late, &change);
                    version.reached(lag, units, reader)
                });
                item.old(key, place)
            })
            .collect()
    }

    /// The items of which an eventually consistent read sees an earlier version.
    pub(super) fn stale(
        &mut self,
        attempt: &Attempt<'_>,
        table: &str,
        keys: Option<&[Item]>,
        is_behind: bool,
        reader: Moment,
    ) -> Vec<OutdatedItem> {
        let (Some(lag), Some(items)) = (attempt.faults().stale_lag, self.tables.get_mut(table))
        else {
            return Vec::new();
        };
        let monotonic = attempt.faults().monotonic;
        items
            .iter_mut()
            .filter(|(key, _)| keys.is_none_or(|keys| keys.contains(key)))
            .filter_map(|(key, item)| {
                let units = if is_behind {
                    attempt.stale_units(lag, item.hash)
                } else {
                    0
                };
                let mut place = item.newest(|version| version.reached(lag, units, reader));
                if monotonic {
                    place = place.max(item.shown.saturating_sub(item.discarded));
                    item.shown = place + item.discarded;
                }
                item.old(key, place)
            })
            .collect()
    }

    /// Discards the versions of a table.
    pub(super) fn discard_table(&mut self, table: &str) {
        self.tables.remove(table);
    }

    /// Discards the versions that no reader can see any more.
    fn sweep(&mut self, faults: &Faults, now: Moment) {
        self.changes_since_sweep = 0;
        let lags = [faults.index_lag, faults.stale_lag];
        let reached_by_all = |version: &Version| {
            (lags.iter().flatten()).all(|&lag| version.reached(lag, lag.units_max(), now))
        };
        for items in self.tables.values_mut() {
            items.retain(|_, item| {
                for _ in 0..item.newest(reached_by_all) {
                    item.discard_first();
                }
                item.versions.len() > 1
            });
        }
    }
}
