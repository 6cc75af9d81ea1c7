//! The raw key-value store, doing the minimum that the engine must do.

use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch as WriteBatch, PersistMode, Readable,
};
use floe_store::env::{Random, SeededRandom};
use floe_store::size::item_size;

use super::data::{self, PARTITION, Picker};
use super::{Decoding, Fallible, Subject};
use crate::measure::{Rate, repeat};

pub(crate) struct Raw {
    database: Database,
    items: Keyspace,
    index: Keyspace,
    changes: Keyspace,
    sequence: AtomicU64,
    value_bytes: usize,
}

impl Raw {
    /// Loads the items and reopens the store, like the engine.
    pub(super) fn load(folder: &Path, items: u64) -> Fallible<Self> {
        let loader = Self::open(folder)?;
        for n in 0..items {
            let mut batch = loader.database.batch();
            batch.insert(&loader.items, key(n), loader.value(0));
            batch.insert(&loader.index, index_key(n), loader.value(0));
            let sequence = loader.sequence.fetch_add(1, Ordering::Relaxed);
            let change = [key(n), loader.value(0)].concat();
            batch.insert(&loader.changes, sequence.to_be_bytes(), change);
            batch.commit()?;
        }
        loader.database.persist(PersistMode::SyncAll)?;
        drop(loader);
        let raw = Self::open(folder)?;
        raw.sequence.store(items, Ordering::Relaxed);
        Ok(raw)
    }

    /// Opens the store with the settings of the engine.
    fn open(folder: &Path) -> Fallible<Self> {
        let database = Database::builder(folder)
            .cache_size(128 * 1024 * 1024)
            .max_journaling_size(64 * 1024 * 1024)
            .worker_threads(2)
            .open()?;
        let settings = || KeyspaceCreateOptions::default().max_memtable_size(32 * 1024 * 1024);
        let space = |name| database.keyspace(name, settings);
        Ok(Self {
            items: space("items")?,
            index: space("index")?,
            changes: space("changes")?,
            database: database.clone(),
            sequence: AtomicU64::new(0),
            value_bytes: item_size(&data::item(1, 1)),
        })
    }

    fn value(&self, score: u64) -> Vec<u8> {
        let mut value = vec![b'x'; self.value_bytes];
        if let Some(head) = value.first_chunk_mut::<8>() {
            *head = score.to_be_bytes();
        }
        value
    }

    /// Reads the item, and writes it, its index entry and its change record.
    fn put(&self, batch: &mut WriteBatch, n: u64, score: u64) -> Fallible<()> {
        let key = key(n);
        let old = self.items.get(&key)?.ok_or("an item is missing")?;
        let new = self.value(score);
        let mut change = key.clone();
        change.extend_from_slice(&old);
        change.extend_from_slice(&new);
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        batch.insert(&self.changes, sequence.to_be_bytes(), change);
        batch.insert(&self.index, index_key(n), new.clone());
        batch.insert(&self.items, key, new);
        Ok(())
    }

    fn batch(&self) -> WriteBatch {
        self.database
            .batch()
            .durability(Some(PersistMode::SyncData))
    }
}

/// The key prefix of a partition. It begins with a hash, like the keys of the engine, because sequential keys would
/// make an unrealistic tree.
fn partition_prefix(n: u64) -> Vec<u8> {
    let partition = data::partition_key(n / PARTITION);
    let hash = SeededRandom::new(n / PARTITION).next_u64();
    let mut key = (hash as u16).to_be_bytes().to_vec();
    key.extend_from_slice(partition.as_bytes());
    key
}

fn key(n: u64) -> Vec<u8> {
    let mut key = partition_prefix(n);
    key.push(0);
    key.extend_from_slice(&(n % PARTITION).to_be_bytes());
    key
}

fn index_key(n: u64) -> Vec<u8> {
    let mut index_key = data::owner_key(n).into_bytes();
    index_key.push(0);
    index_key.extend_from_slice(&key(n));
    index_key
}

impl Subject for Raw {
    fn get(&self, picker: &mut Picker, _: Decoding, duration: Duration) -> Fallible<Rate> {
        repeat(duration, || {
            for _ in 0..100 {
                let value = self.items.get(key(picker.item()))?;
                black_box(value.ok_or("an item is missing")?);
            }
            Ok(100)
        })
    }

    fn query(
        &self,
        picker: &mut Picker,
        count: usize,
        _: Decoding,
        duration: Duration,
    ) -> Fallible<Rate> {
        repeat(duration, || {
            let start = picker.start_of(count);
            let mut end = partition_prefix(start);
            end.push(1);
            let snapshot = self.database.snapshot();
            let mut read = 0;
            for entry in snapshot.range(&self.items, key(start)..end).take(count) {
                black_box(entry.into_inner()?);
                read += 1;
            }
            if read == count {
                Ok(1)
            } else {
                Err("a query returned too few items".into())
            }
        })
    }

    fn put(&self, picker: &mut Picker, writers: usize, duration: Duration) -> Fallible<Rate> {
        repeat(duration, || {
            let mut batch = self.batch();
            for _ in 0..writers {
                self.put(&mut batch, picker.item(), picker.score())?;
            }
            batch.commit()?;
            Ok(writers as u64)
        })
    }

    fn transact(&self, picker: &mut Picker, duration: Duration) -> Fallible<Rate> {
        repeat(duration, || {
            let mut batch = self.batch();
            for n in picker.three() {
                self.put(&mut batch, n, picker.score())?;
            }
            batch.commit()?;
            Ok(1)
        })
    }
}
