//! Filters for tokens that may have been used recently, so that the store need not be read.
//!
//! Almost every token is new, and looking it up would mean a read for each slot that has not expired. A Bloom filter
//! per slot avoids those reads: a token that is not in the filter was not used. A token that may be in it is looked up
//! in the store.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use floe_store::Result;
use xxhash_rust::xxh3::xxh3_64;

use crate::kv::{Direction, Snapshot, Space};
use crate::layout::record::{token_key, token_slot, token_slot_key};

/// Maximum number of tokens read when the store is opened. Slots of any others are marked as unloaded, and always
/// looked up until they expire.
const LOADED_MAX: usize = 10_000;

/// Capacity of a filter's first layer, in tokens; each further layer has twice the capacity.
const FIRST_LAYER_TOKENS: usize = 4096;

/// Bits per token: with four of them set, one in 400 unused tokens is a false positive.
const TOKEN_BITS: usize = 16;

/// Number of bits that a token sets.
const PROBES: u64 = 4;

/// Filters for the tokens of unexpired slots.
#[derive(Debug, Default)]
pub(crate) struct RecentTokens {
    filters: BTreeMap<u32, Filter>,
    /// Slots with tokens in the store that were not loaded into a filter.
    unloaded: BTreeSet<u32>,
}

impl RecentTokens {
    /// Loads the tokens of a store, starting at slot `oldest`.
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
                recent.unloaded.insert(slot);
                break;
            }
            recent.filter(slot).insert(xxh3_64(token));
        }
        // For the later slots, load only their numbers.
        while let Some(next) = recent.unloaded.last().and_then(|last| last.checked_add(1))
            && let Some(entry) = walk_from(next).next()
        {
            recent.unloaded.insert(token_slot(&entry?.0)?.0);
        }
        Ok(recent)
    }

    /// The slots from `oldest` to `newest` in which a token may have been used, newest first.
    pub(crate) fn slots(&self, token: &str, oldest: u32, newest: u32) -> Vec<u32> {
        let hash = hash(token);
        let known = self.filters.range(oldest..=newest);
        let known = known.filter(|(_, filter)| filter.may_contain(hash));
        let mut slots: BTreeSet<u32> = known.map(|(slot, _)| *slot).collect();
        slots.extend(self.unloaded.range(oldest..=newest));
        slots.into_iter().rev().collect()
    }

    /// Records the use of a token in a slot. Drops the slots before `oldest`.
    pub(crate) fn insert(&mut self, slot: u32, token: &str, oldest: u32) {
        self.filter(slot).insert(hash(token));
        self.filters = self.filters.split_off(&oldest);
        self.unloaded = self.unloaded.split_off(&oldest);
    }

    fn filter(&mut self, slot: u32) -> &mut Filter {
        self.filters.entry(slot).or_default()
    }
}

/// Hash of the part of a token's key after the slot.
fn hash(token: &str) -> u64 {
    let key = token_key(0, token);
    token_slot(&key).map_or(0, |(_, token)| xxh3_64(token))
}

/// A Bloom filter that grows by adding layers.
#[derive(Debug, Default)]
struct Filter {
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    words: Vec<u64>,
    /// Number of tokens that can still be added.
    capacity_left: usize,
}

impl Filter {
    fn may_contain(&self, hash: u64) -> bool {
        self.layers.iter().any(|layer| layer.may_contain(hash))
    }

    fn insert(&mut self, hash: u64) {
        if self
            .layers
            .last()
            .is_none_or(|layer| layer.capacity_left == 0)
        {
            let tokens = FIRST_LAYER_TOKENS << self.layers.len().min(12);
            self.layers.push(Layer {
                words: vec![0; tokens * TOKEN_BITS / 64],
                capacity_left: tokens,
            });
        }
        if let Some(layer) = self.layers.last_mut() {
            layer.insert(hash);
        }
    }
}

impl Layer {
    /// The words and bits of a token, derived from one hash by double hashing.
    fn probes(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let bits = 64 * self.words.len() as u64;
        let step = (hash >> 32) | 1;
        (0..PROBES).map(move |n| {
            let bit = hash.wrapping_add(n.wrapping_mul(step)) % bits;
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }

    fn may_contain(&self, hash: u64) -> bool {
        let mut probes = self.probes(hash);
        probes.all(|(word, bit)| self.words.get(word).is_some_and(|word| word & bit != 0))
    }

    fn insert(&mut self, hash: u64) {
        for (word, bit) in self.probes(hash) {
            if let Some(word) = self.words.get_mut(word) {
                *word |= bit;
            }
        }
        self.capacity_left = self.capacity_left.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(n: u64) -> String {
        format!("{n:08}-0000-4000-8000-000000000000")
    }

    #[test]
    fn used_tokens_are_always_found_and_false_positives_are_rare() {
        let mut recent = RecentTokens::default();
        for n in 0..50_000 {
            recent.insert(7, &text(n), 5);
        }
        let may_have = |n| !recent.slots(&text(n), 0, 9).is_empty();
        assert!((0..50_000).all(may_have));
        let false_positives = (50_000..150_000).filter(|n| may_have(*n));
        assert!(false_positives.count() < 2000);
        assert_eq!(recent.slots(&text(1), 0, 9), [7]);
        assert_eq!(recent.slots(&text(1), 0, 6), [0; 0]);
    }

    #[test]
    fn expired_slots_are_dropped() {
        let mut recent = RecentTokens::default();
        for slot in 0..10 {
            recent.insert(slot, "token", slot.saturating_sub(3));
        }
        assert_eq!(recent.slots("token", 0, 20), [9, 8, 7, 6]);
        assert_eq!(recent.slots("other", 0, 20), [0; 0]);
    }

    #[test]
    fn unloaded_slots_are_always_candidates() {
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
