//! Which tokens may have been used lately, without asking the store.
//!
//! Almost every token is new, and a new one would be looked for in each slot of time that is still
//! remembered. A Bloom filter for each slot answers that without a read: what it has not seen was not used.
//! What it may have seen is looked up in the store, which alone knows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use floe_store::Result;
use xxhash_rust::xxh3::xxh3_64;

use crate::kv::{Direction, Snapshot, Space};
use crate::layout::record::{token_key, token_slot, token_slot_key};

/// How many tokens are read when the store is opened. If there are more, they are looked up until their slots
/// are forgotten.
const LOADED_MAX: usize = 10_000;

/// The tokens of the first layer of a filter; each further one holds twice as many.
const FIRST_LAYER_TOKENS: usize = 4096;

/// Bits for each token: with four of them set, one in 400 that was not used seems to have been.
const TOKEN_BITS: usize = 16;

/// Bits that a token sets.
const PROBES: u64 = 4;

/// The tokens of the slots that are still remembered.
#[derive(Debug, Default)]
pub(crate) struct RecentTokens {
    filters: BTreeMap<u32, Filter>,
    /// Slots of which tokens may be in the store without being here.
    unread: BTreeSet<u32>,
}

impl RecentTokens {
    /// The tokens that a store holds from this slot on.
    pub(crate) fn load(snapshot: &Snapshot, tokens: Space, oldest: u32) -> Result<Self> {
        let mut recent = Self::default();
        let walk_from = |slot| {
            let from = Bound::Included(token_slot_key(slot));
            snapshot.range(tokens, (from, Bound::Unbounded), Direction::Forward)
        };
        for (loaded, entry) in walk_from(oldest).enumerate() {
            let (key, _) = entry?;
            let (slot, token) = token_slot(&key)?;
            if loaded == LOADED_MAX {
                recent.unread.insert(slot);
                break;
            }
            recent.filter(slot).insert(xxh3_64(token));
        }
        // Of the slots behind, only the numbers.
        while let Some(next) = recent.unread.last().and_then(|last| last.checked_add(1))
            && let Some(entry) = walk_from(next).next()
        {
            recent.unread.insert(token_slot(&entry?.0)?.0);
        }
        Ok(recent)
    }

    /// The slots between these two in which a token may have been used, the newest first.
    pub(crate) fn slots(&self, token: &str, oldest: u32, newest: u32) -> Vec<u32> {
        let hash = hash(token);
        let known = self.filters.range(oldest..=newest);
        let known = known.filter(|(_, filter)| filter.has(hash));
        let mut slots: BTreeSet<u32> = known.map(|(slot, _)| *slot).collect();
        slots.extend(self.unread.range(oldest..=newest));
        slots.into_iter().rev().collect()
    }

    /// A token is used in a slot. Slots before the oldest are forgotten.
    pub(crate) fn insert(&mut self, slot: u32, token: &str, oldest: u32) {
        self.filter(slot).insert(hash(token));
        self.filters = self.filters.split_off(&oldest);
        self.unread = self.unread.split_off(&oldest);
    }

    fn filter(&mut self, slot: u32) -> &mut Filter {
        self.filters.entry(slot).or_default()
    }
}

/// What stands behind the slot in the key of a token.
fn hash(token: &str) -> u64 {
    let key = token_key(0, token);
    token_slot(&key).map_or(0, |(_, token)| xxh3_64(token))
}

/// A Bloom filter that grows by layers.
#[derive(Debug, Default)]
struct Filter {
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    words: Vec<u64>,
    /// How many tokens it can still take.
    room: usize,
}

impl Filter {
    fn has(&self, hash: u64) -> bool {
        self.layers.iter().any(|layer| layer.has(hash))
    }

    fn insert(&mut self, hash: u64) {
        if self.layers.last().is_none_or(|layer| layer.room == 0) {
            let tokens = FIRST_LAYER_TOKENS << self.layers.len().min(12);
            self.layers.push(Layer {
                words: vec![0; tokens * TOKEN_BITS / 64],
                room: tokens,
            });
        }
        if let Some(layer) = self.layers.last_mut() {
            layer.insert(hash);
        }
    }
}

impl Layer {
    /// The places of the bits of a token: all from one hash, by two numbers of it.
    fn places(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let bits = 64 * self.words.len() as u64;
        let step = (hash >> 32) | 1;
        (0..PROBES).map(move |n| {
            let bit = hash.wrapping_add(n.wrapping_mul(step)) % bits;
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }

    fn has(&self, hash: u64) -> bool {
        let mut places = self.places(hash);
        places.all(|(word, bit)| self.words.get(word).is_some_and(|word| word & bit != 0))
    }

    fn insert(&mut self, hash: u64) {
        for (word, bit) in self.places(hash) {
            if let Some(word) = self.words.get_mut(word) {
                *word |= bit;
            }
        }
        self.room = self.room.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(n: u64) -> String {
        format!("{n:08}-0000-4000-8000-000000000000")
    }

    #[test]
    fn what_was_used_is_always_found_and_what_was_not_hardly_ever() {
        let mut recent = RecentTokens::default();
        for n in 0..50_000 {
            recent.insert(7, &text(n), 5);
        }
        let may_have = |n| !recent.slots(&text(n), 0, 9).is_empty();
        assert!((0..50_000).all(may_have));
        let strangers = (50_000..150_000).filter(|n| may_have(*n));
        assert!(strangers.count() < 2000);
        assert_eq!(recent.slots(&text(1), 0, 9), [7]);
        assert_eq!(recent.slots(&text(1), 0, 6), [0; 0]);
    }

    #[test]
    fn old_slots_are_forgotten() {
        let mut recent = RecentTokens::default();
        for slot in 0..10 {
            recent.insert(slot, "token", slot.saturating_sub(3));
        }
        assert_eq!(recent.slots("token", 0, 20), [9, 8, 7, 6]);
        assert_eq!(recent.slots("other", 0, 20), [0; 0]);
    }

    #[test]
    fn slots_that_were_not_read_are_looked_into() {
        let kv = crate::kv::Kv::memory();
        let mut batch = crate::kv::Batch::default();
        for n in 0..LOADED_MAX as u64 {
            batch.put(Space::Tokens, token_key(4, &text(n)), vec![]);
        }
        for slot in [4, 6, 9] {
            batch.put(Space::Tokens, token_key(slot, "z"), vec![]);
        }
        kv.commit(batch, crate::kv::Sync::None).unwrap();
        let recent = RecentTokens::load(&kv.snapshot(), Space::Tokens, 3).unwrap();
        assert_eq!(recent.slots("z", 0, 20), [9, 6, 4]);
        assert_eq!(recent.slots("z", 5, 8), [6]);
        let recent = RecentTokens::load(&kv.snapshot(), Space::Tokens, 5).unwrap();
        assert_eq!(recent.slots("z", 0, 20), [9, 6]);
        assert_eq!(recent.slots("other", 0, 20), [0; 0]);
    }
}
