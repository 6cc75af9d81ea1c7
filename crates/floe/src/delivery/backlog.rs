//! Records that were read but not processed: a queue for each key, and the checkpoint up to which everything is
//! processed.
//!
//! Each key has a queue, and at most one turn takes from it. A batch is complete when all its records are processed;
//! its checkpoint is reached when all earlier batches are complete too. A slow key thus delays the checkpoint, but no
//! other key.
//!
//! This module does no I/O and never waits.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// How much of the memory bounds a record uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) records: u64,
    pub(crate) bytes: usize,
}

/// A record of a batch, with the key that orders it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<K, W> {
    pub(crate) key: K,
    pub(crate) work: W,
    pub(crate) size: Size,
}

/// The records of one read of a source.
#[derive(Debug)]
pub(crate) struct Batch<K, W, M> {
    pub(crate) entries: Vec<Entry<K, W>>,
    /// The checkpoint of the source after all of them, if it is worth storing.
    pub(crate) checkpoint: Option<M>,
    /// Whether the read found nothing.
    pub(crate) is_idle: bool,
}

/// Limits of a backlog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BacklogLimits {
    pub(crate) batches_max: usize,
    pub(crate) records_max: u64,
    pub(crate) bytes_max: usize,
}

/// The size of a backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BacklogSize {
    pub(crate) batches: usize,
    pub(crate) size: Size,
}

impl BacklogSize {
    /// Whether there is room for more.
    pub(super) const fn has_room(&self, limits: BacklogLimits) -> bool {
        self.batches < limits.batches_max
            && self.size.records < limits.records_max
            && self.size.bytes < limits.bytes_max
    }
}

/// The unprocessed records of a source.
#[derive(Debug)]
pub(crate) struct Backlog<K, W, M> {
    queues: HashMap<K, Queue<W>>,
    /// The keys whose next turn can start, longest waiting first.
    ready: VecDeque<K>,
    batches: VecDeque<OpenBatch<M>>,
    /// The number of the first open batch. Batches are numbered from 0.
    first: u64,
    size: Size,
}

/// The records of a key.
#[derive(Debug)]
struct Queue<W> {
    waiting: VecDeque<QueuedEntry<W>>,
    /// The records of the current turn.
    begun: Vec<EntryMeta>,
    is_busy: bool,
}

#[derive(Debug)]
struct QueuedEntry<W> {
    work: W,
    meta: EntryMeta,
}

/// The size of a record, and the number of its batch, if any.
#[derive(Clone, Copy, Debug)]
struct EntryMeta {
    batch: Option<u64>,
    size: Size,
}

#[derive(Debug)]
struct OpenBatch<M> {
    checkpoint: M,
    /// Number of unprocessed records.
    left: usize,
}

impl<K, W, M> Default for Backlog<K, W, M> {
    fn default() -> Self {
        Self {
            queues: HashMap::new(),
            ready: VecDeque::new(),
            batches: VecDeque::new(),
            first: 0,
            size: Size::default(),
        }
    }
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            begun: Vec::new(),
            is_busy: false,
        }
    }
}

impl<K: Clone + Eq + Hash, W, M> Backlog<K, W, M> {
    /// Adds a batch: its records, and the checkpoint that is reached when all of them are processed.
    pub(crate) fn push(&mut self, checkpoint: M, entries: Vec<Entry<K, W>>) {
        let batch = self.first + self.batches.len() as u64;
        let left = entries.len();
        self.batches.push_back(OpenBatch { checkpoint, left });
        for Entry { key, work, size } in entries {
            self.size.records += size.records;
            self.size.bytes += size.bytes;
            let meta = EntryMeta {
                batch: Some(batch),
                size,
            };
            let queue = self.queue(key);
            queue.waiting.push_back(QueuedEntry { work, meta });
        }
    }

    /// Adds work in front of the queue of a key. It belongs to no batch, so no checkpoint depends on it.
    pub(crate) fn push_front(&mut self, key: K, work: W) {
        let meta = EntryMeta {
            batch: None,
            size: Size::default(),
        };
        let queue = self.queue(key);
        queue.waiting.push_front(QueuedEntry { work, meta });
    }

    /// The queue of a key, for adding a record.
    fn queue(&mut self, key: K) -> &mut Queue<W> {
        let queue = self.queues.entry(key.clone()).or_default();
        if queue.waiting.is_empty() && !queue.is_busy {
            self.ready.push_back(key);
        }
        queue
    }

    /// Returns the size of the backlog.
    pub(crate) fn size(&self) -> BacklogSize {
        BacklogSize {
            batches: self.batches.len(),
            size: self.size,
        }
    }

    /// Starts a turn of the longest waiting key: takes its first entry, and further entries up to `records_max`
    /// records.
    pub(crate) fn begin(&mut self, records_max: u64) -> Option<(K, Vec<W>)> {
        let key = self.ready.pop_front()?;
        let queue = self.queues.get_mut(&key)?;
        queue.is_busy = true;
        let (mut work, mut records) = (Vec::new(), 0);
        while let Some(next) = queue.waiting.front() {
            records += next.meta.size.records;
            if !work.is_empty() && records > records_max {
                break;
            }
            if let Some(next) = queue.waiting.pop_front() {
                queue.begun.push(next.meta);
                work.push(next.work);
            }
        }
        Some((key, work))
    }

    /// Ends the turn of a key: everything it took is processed.
    pub(crate) fn end(&mut self, key: &K) {
        let Some(queue) = self.queues.get_mut(key) else {
            return;
        };
        queue.is_busy = false;
        for EntryMeta { batch, size } in std::mem::take(&mut queue.begun) {
            self.size.records -= size.records;
            self.size.bytes -= size.bytes;
            let index = batch.and_then(|batch| usize::try_from(batch - self.first).ok());
            if let Some(batch) = index.and_then(|index| self.batches.get_mut(index)) {
                batch.left -= 1;
            }
        }
        if queue.waiting.is_empty() {
            self.queues.remove(key);
        } else {
            self.ready.push_back(key.clone());
        }
    }

    /// Removes the complete batches before the first incomplete one. Returns the checkpoint of the last of them.
    pub(crate) fn pass_done(&mut self) -> Option<M> {
        let mut passed = None;
        while self.batches.front().is_some_and(|batch| batch.left == 0) {
            passed = self.batches.pop_front().map(|batch| batch.checkpoint);
            self.first += 1;
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use floe_store::env::{Random, SeededRandom};

    use super::*;

    fn entry(key: u64, work: u64, records: u64) -> Entry<u64, u64> {
        let size = Size {
            records,
            bytes: 3 * records as usize,
        };
        Entry { key, work, size }
    }

    fn backlog_size(batches: usize, records: u64) -> BacklogSize {
        let bytes = 3 * records as usize;
        let size = Size { records, bytes };
        BacklogSize { batches, size }
    }

    #[test]
    fn slow_key_delays_only_the_checkpoint() {
        let mut backlog: Backlog<u64, u64, u64> = Backlog::default();
        backlog.push(1, vec![entry(1, 10, 1), entry(2, 20, 1)]);
        backlog.push(2, vec![]);
        backlog.push(3, vec![entry(2, 21, 1), entry(2, 22, 1)]);
        assert_eq!(backlog.size(), backlog_size(3, 4));
        assert_eq!(backlog.begin(9), Some((1, vec![10])));
        assert_eq!(backlog.begin(2), Some((2, vec![20, 21])));
        assert_eq!(backlog.begin(9), None);
        backlog.end(&2);
        assert_eq!(backlog.pass_done(), None);
        assert_eq!(backlog.begin(9), Some((2, vec![22])));
        backlog.end(&2);
        backlog.end(&1);
        assert_eq!(backlog.pass_done(), Some(3));
        assert_eq!(backlog.size(), BacklogSize::default());
        assert!(backlog.queues.is_empty() && backlog.ready.is_empty());
    }

    #[test]
    fn turn_takes_at_least_one_entry() {
        let mut backlog: Backlog<u64, u64, u64> = Backlog::default();
        backlog.push(1, vec![entry(1, 10, 7), entry(1, 11, 1), entry(1, 12, 2)]);
        assert_eq!(backlog.begin(3), Some((1, vec![10])));
        backlog.end(&1);
        assert_eq!(backlog.begin(3), Some((1, vec![11, 12])));
    }

    #[test]
    fn urgent_work_comes_first_and_delays_no_checkpoint() {
        let mut backlog: Backlog<u64, u64, u64> = Backlog::default();
        backlog.push(1, vec![entry(1, 10, 1)]);
        backlog.push_front(1, 9);
        backlog.push_front(2, 19);
        assert_eq!(backlog.begin(9), Some((1, vec![9, 10])));
        backlog.push_front(1, 8);
        backlog.end(&1);
        assert_eq!(backlog.pass_done(), Some(1));
        assert_eq!(backlog.begin(9), Some((2, vec![19])));
        assert_eq!(backlog.begin(9), Some((1, vec![8])));
        backlog.end(&1);
        backlog.end(&2);
        assert_eq!(backlog.size(), BacklogSize::default());
        assert!(backlog.queues.is_empty() && backlog.ready.is_empty());
    }

    /// Turns end in any order: the records of a key start in order, one turn at a time, and no checkpoint is reached
    /// before everything up to it is processed.
    #[test]
    fn checkpoint_waits_for_all_earlier_records() {
        for seed in 0..300 {
            let random = SeededRandom::new(seed);
            let mut backlog: Backlog<u64, u64, u64> = Backlog::default();
            let (mut read, mut done) = ([0_u64; 5], [0_u64; 5]);
            let mut checkpoints: Vec<[u64; 5]> = Vec::new();
            let mut running: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            let mut passed = 0;
            for _ in 0..200 {
                match random.next_u64() % 4 {
                    0 => {
                        let mut entries = Vec::new();
                        for _ in 0..random.below(6) {
                            let key = random.below(5);
                            entries.push(entry(key, read[key as usize], 1));
                            read[key as usize] += 1;
                        }
                        checkpoints.push(read);
                        backlog.push(checkpoints.len() as u64, entries);
                    }
                    1 => {
                        if let Some((key, work)) = backlog.begin(1 + random.below(3)) {
                            assert_eq!(work[0], done[key as usize]);
                            assert!(work.is_sorted());
                            assert_eq!(running.insert(key, work), None);
                        }
                    }
                    _ => {
                        if let Some((key, work)) = running.pop_last() {
                            done[key as usize] += work.len() as u64;
                            backlog.end(&key);
                        }
                    }
                }
                if let Some(checkpoint) = backlog.pass_done() {
                    passed = checkpoint as usize;
                }
                let is_done = |read: &&[u64; 5]| read.iter().zip(&done).all(|(a, b)| a <= b);
                assert_eq!(checkpoints.iter().take_while(is_done).count(), passed);
                let left: u64 = read.iter().zip(&done).map(|(read, done)| read - done).sum();
                assert_eq!(
                    backlog.size(),
                    backlog_size(checkpoints.len() - passed, left)
                );
            }
        }
    }
}
