//! What items were, as long as an old answer may still show it.
//!
//! For every item that was written lately, its versions in order. The last one is the item as it stands;
//! the one before it is what a reader sees that the last write has not reached yet, and so on back.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use floe_store::{Item, Timestamp};

use super::control::{Attempt, index_units};
use super::dice;
use super::faults::{Faults, Lag};

/// How many versions of one item are kept; of more, the oldest are forgotten, and so not shown.
const VERSIONS_MAX: usize = 64;

/// A moment, counted both ways in which a [`Lag`] counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The number of an operation.
    pub(super) number: u64,
    /// The engine's time.
    pub(super) time: Timestamp,
}

/// What a write did to one item.
pub(super) struct Change {
    pub(super) key: Item,
    pub(super) before: Option<Item>,
    pub(super) after: Option<Item>,
}

/// An item for which a reader sees an older version than the last.
#[derive(Clone, Debug)]
pub(super) struct Old {
    pub(super) key: Item,
    /// What the reader sees.
    pub(super) then: Option<Item>,
    /// What stands in the table.
    pub(super) now: Option<Item>,
}

/// A state of an item.
struct Version {
    image: Option<Item>,
    /// The number of the write that made it.
    write: u64,
    since: Moment,
}

impl Version {
    /// Whether a reader at this moment sees it that lags so much behind.
    fn reached(&self, lag: Lag, units: u64, reader: Moment) -> bool {
        units == 0
            || match lag {
                Lag::Operations(_) => self.since.number.saturating_add(units) <= reader.number,
                Lag::Time(_) => self.since.time.plus(Duration::from_millis(units)) <= reader.time,
            }
    }
}

/// The versions of one item, at least one.
struct ItemPast {
    /// A number that stands for the key.
    hash: u64,
    versions: VecDeque<Version>,
    /// How many versions were forgotten before the first.
    forgotten: usize,
    /// How many versions, the forgotten ones included, come before the newest that an eventual read saw.
    shown: usize,
}

impl ItemPast {
    fn push(&mut self, image: Option<Item>, write: u64, since: Moment) {
        self.versions.push_back(Version {
            image,
            write,
            since,
        });
        if self.versions.len() > VERSIONS_MAX {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        self.versions.pop_front();
        self.forgotten += 1;
    }

    /// The place of the newest version up to which all are reached; the first always is.
    fn newest(&self, reached: impl Fn(&Version) -> bool) -> usize {
        self.versions
            .iter()
            .skip(1)
            .take_while(|v| reached(v))
            .count()
    }

    fn old(&self, key: &Item, place: usize) -> Option<Old> {
        let (then, now) = (self.versions.get(place)?, self.versions.back()?);
        (place + 1 < self.versions.len()).then(|| Old {
            key: key.clone(),
            then: then.image.clone(),
            now: now.image.clone(),
        })
    }
}

/// The versions of all items that were written lately.
#[derive(Default)]
pub(super) struct Past {
    tables: HashMap<String, HashMap<Item, ItemPast>>,
    /// How many changes were recorded since all items were looked at for versions to forget.
    unswept: usize,
}

impl Past {
    /// Remembers what a write did. Recorded in the order of the writes of each item.
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
        let hash = dice::of_text(&format!("{:?}", change.key));
        let item = items.entry(change.key).or_insert_with(|| ItemPast {
            hash,
            versions: VecDeque::new(),
            forgotten: 0,
            shown: 0,
        });
        // Something else than the last known version was there if a write went around the wrapper.
        if item
            .versions
            .back()
            .is_none_or(|last| last.image != change.before)
        {
            item.push(change.before, write, since);
        }
        item.push(change.after, write, since);
        self.unswept += 1;
        if self.unswept > 1000 {
            self.sweep(faults, since);
        }
    }

    /// The items whose last changes have not come into a global index yet. The delay belongs to the
    /// change, so what an index has shown once, it goes on showing.
    pub(super) fn lagging(
        &self,
        attempt: &Attempt<'_>,
        table: &str,
        index: &str,
        reader: Moment,
    ) -> Vec<Old> {
        let (Some(lag), Some(late)) = (attempt.faults().index_lag, attempt.index_lags()) else {
            return Vec::new();
        };
        let index = dice::of_text(index);
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

    /// The items that an eventual read sees as they were, if it is answered by a replica that is behind.
    pub(super) fn stale(
        &mut self,
        attempt: &Attempt<'_>,
        table: &str,
        keys: Option<&[Item]>,
        is_behind: bool,
        reader: Moment,
    ) -> Vec<Old> {
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
                    place = place.max(item.shown.saturating_sub(item.forgotten));
                    item.shown = place + item.forgotten;
                }
                item.old(key, place)
            })
            .collect()
    }

    /// Forgets a table.
    pub(super) fn forget(&mut self, table: &str) {
        self.tables.remove(table);
    }

    /// Forgets the versions that no reader can see any more.
    fn sweep(&mut self, faults: &Faults, now: Moment) {
        self.unswept = 0;
        let lags = [faults.index_lag, faults.stale_lag];
        let reached_by_all = |version: &Version| {
            (lags.iter().flatten()).all(|&lag| version.reached(lag, lag.units_max(), now))
        };
        for items in self.tables.values_mut() {
            items.retain(|_, item| {
                for _ in 0..item.newest(reached_by_all) {
                    item.forget_first();
                }
                item.versions.len() > 1
            });
        }
    }
}
