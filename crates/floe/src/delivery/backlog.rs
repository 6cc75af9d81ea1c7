//! Records that were read and are not done: the queue of each key, and up to where everything is done.
//!
//! Each key has a queue, and one turn at a time takes from it. A batch is done when all of its records are; its mark is
//! passed when all batches before it are done as well. So a slow key holds the checkpoint, and no other key.
//!
//! Nothing here reads, writes or waits.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// What a record takes of the bounds of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) records: u64,
    pub(crate) bytes: usize,
}

/// A record of a batch, under the key that it is ordered by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<K, W> {
    pub(crate) key: K,
    pub(crate) work: W,
    pub(crate) size: Size,
}

/// Records that a read of a source has found.
#[derive(Debug)]
pub(crate) struct Batch<K, W, M> {
    pub(crate) entries: Vec<Entry<K, W>>,
    /// How far the source is done when all of them are, if that is worth storing.
    pub(crate) mark: Option<M>,
    /// Whether nothing was found.
    pub(crate) is_idle: bool,
}

/// How much of a source may be read and not done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) batches_max: usize,
    pub(crate) records_max: u64,
    pub(crate) bytes_max: usize,
}

/// How much is read and not done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) batches: usize,
    pub(crate) size: Size,
}

impl Load {
    /// Whether there is room for more.
    pub(super) const fn has_room(&self, limits: Limits) -> bool {
        self.batches < limits.batches_max
            && self.size.records < limits.records_max
            && self.size.bytes < limits.bytes_max
    }
}

/// The records of a source that are not done.
#[derive(Debug)]
pub(crate) struct Backlog<K, W, M> {
    queues: HashMap<K, Queue<W>>,
    /// The keys whose next turn can begin, the one that has waited longest first.
    ready: VecDeque<K>,
    batches: VecDeque<Pending<M>>,
    /// The number of the first of the batches: they are counted from 0.
    first: u64,
    size: Size,
}

/// The records of a key.
#[derive(Debug)]
struct Queue<W> {
    waiting: VecDeque<Waiting<W>>,
    /// Of the records that are being handled.
    begun: Vec<Place>,
    is_busy: bool,
}

#[derive(Debug)]
struct Waiting<W> {
    work: W,
    place: Place,
}

/// The size of a record, and the number of its batch if it is of one.
#[derive(Clone, Copy, Debug)]
struct Place {
    batch: Option<u64>,
    size: Size,
}

#[derive(Debug)]
struct Pending<M> {
    mark: M,
    /// How many of its records are not done.
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
    /// Adds a batch: its records, and the mark that is passed when all of them are done.
    pub(crate) fn push(&mut self, mark: M, entries: Vec<Entry<K, W>>) {
        let batch = self.first + self.batches.len() as u64;
        let left = entries.len();
        self.batches.push_back(Pending { mark, left });
        for Entry { key, work, size } in entries {
            self.size.records += size.records;
            self.size.bytes += size.bytes;
            let place = Place {
                batch: Some(batch),
                size,
            };
            let queue = self.queue(key);
            queue.waiting.push_back(Waiting { work, place });
        }
    }

    /// Adds work that comes before everything that waits under its key. No mark depends on it.
    pub(crate) fn push_front(&mut self, key: K, work: W) {
        let place = Place {
            batch: None,
            size: Size::default(),
        };
        let queue = self.queue(key);
        queue.waiting.push_front(Waiting { work, place });
    }

    /// The queue of a key to which a record is about to be added.
    fn queue(&mut self, key: K) -> &mut Queue<W> {
        let queue = self.queues.entry(key.clone()).or_default();
        if queue.waiting.is_empty() && !queue.is_busy {
            self.ready.push_back(key);
        }
        queue
    }

    /// How much is not done.
    pub(crate) fn load(&self) -> Load {
        Load {
            batches: self.batches.len(),
            size: self.size,
        }
    }

    /// Begins a turn of the key that has waited longest: takes its first entry, and those after it up to so many records.
    pub(crate) fn begin(&mut self, records_max: u64) -> Option<(K, Vec<W>)> {
        let key = self.ready.pop_front()?;
        let queue = self.queues.get_mut(&key)?;
        queue.is_busy = true;
        let (mut works, mut records) = (Vec::new(), 0);
        while let Some(next) = queue.waiting.front() {
            records += next.place.size.records;
            if !works.is_empty() && records > records_max {
                break;
            }
            if let Some(next) = queue.waiting.pop_front() {
                queue.begun.push(next.place);
                works.push(next.work);
            }
        }
        Some((key, works))
    }

    /// Ends the turn of a key: everything that it took is done.
    pub(crate) fn end(&mut self, key: &K) {
        let Some(queue) = self.queues.get_mut(key) else {
            return;
        };
        queue.is_busy = false;
        for Place { batch, size } in std::mem::take(&mut queue.begun) {
            self.size.records -= size.records;
            self.size.bytes -= size.bytes;
            let place = batch.and_then(|batch| usize::try_from(batch - self.first).ok());
            if let Some(batch) = place.and_then(|place| self.batches.get_mut(place)) {
                batch.left -= 1;
            }
        }
        if queue.waiting.is_empty() {
            self.queues.remove(key);
        } else {
            self.ready.push_back(key.clone());
        }
    }

    /// Forgets the batches that are done, up to the first that is not. Returns the mark of the last of them.
    pub(crate) fn pass_done(&mut self) -> Option<M> {
        let mut passed = None;
        while self.batches.front().is_some_and(|batch| batch.left == 0) {
            passed = self.batches.pop_front().map(|batch| batch.mark);
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

    fn load(batches: usize, records: u64) -> Load {
        let bytes = 3 * records as usize;
        let size = Size { records, bytes };
        Load { batches, size }
    }

    #[test]
    fn slow_key_holds_the_mark_and_no_other_key() {
        let mut backlog: Backlog<u64, u64, u64> = Backlog::default();
        backlog.push(1, vec![entry(1, 10, 1), entry(2, 20, 1)]);
        backlog.push(2, vec![]);
        backlog.push(3, vec![entry(2, 21, 1), entry(2, 22, 1)]);
        assert_eq!(backlog.load(), load(3, 4));
        assert_eq!(backlog.begin(9), Some((1, vec![10])));
        assert_eq!(backlog.begin(2), Some((2, vec![20, 21])));
        assert_eq!(backlog.begin(9), None);
        backlog.end(&2);
        assert_eq!(backlog.pass_done(), None);
        assert_eq!(backlog.begin(9), Some((2, vec![22])));
        backlog.end(&2);
        backlog.end(&1);
        assert_eq!(backlog.pass_done(), Some(3));
        assert_eq!(backlog.load(), Load::default());
        assert!(backlog.queues.is_empty() && backlog.ready.is_empty());
    }

    #[test]
    fn turn_takes_an_entry_however_large_and_then_up_to_the_maximum() {
        let mut backlog: Backlog<u64, u64, u64> = Backlog::default();
        backlog.push(1, vec![entry(1, 10, 7), entry(1, 11, 1), entry(1, 12, 2)]);
        assert_eq!(backlog.begin(3), Some((1, vec![10])));
        backlog.end(&1);
        assert_eq!(backlog.begin(3), Some((1, vec![11, 12])));
    }

    #[test]
    fn urgent_work_comes_first_and_holds_no_mark() {
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
        assert_eq!(backlog.load(), Load::default());
        assert!(backlog.queues.is_empty() && backlog.ready.is_empty());
    }

    /// Turns end in any order: the records of a key are begun in their order, one turn at a time, and no mark is passed
    /// before everything up to it is done.
    #[test]
    fn no_mark_is_passed_before_everything_up_to_it_is_done() {
        for seed in 0..300 {
            let random = SeededRandom::new(seed);
            let mut backlog: Backlog<u64, u64, u64> = Backlog::default();
            let (mut read, mut done) = ([0_u64; 5], [0_u64; 5]);
            let mut marks: Vec<[u64; 5]> = Vec::new();
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
                        marks.push(read);
                        backlog.push(marks.len() as u64, entries);
                    }
                    1 => {
                        if let Some((key, works)) = backlog.begin(1 + random.below(3)) {
                            assert_eq!(works[0], done[key as usize]);
                            assert!(works.is_sorted());
                            assert_eq!(running.insert(key, works), None);
                        }
                    }
                    _ => {
                        if let Some((key, works)) = running.pop_last() {
                            done[key as usize] += works.len() as u64;
                            backlog.end(&key);
                        }
                    }
                }
                if let Some(mark) = backlog.pass_done() {
                    passed = mark as usize;
                }
                let is_done = |read: &&[u64; 5]| read.iter().zip(&done).all(|(a, b)| a <= b);
                assert_eq!(marks.iter().take_while(is_done).count(), passed);
                let left: u64 = read.iter().zip(&done).map(|(read, done)| read - done).sum();
                assert_eq!(backlog.load(), load(marks.len() - passed, left));
            }
        }
    }
}
