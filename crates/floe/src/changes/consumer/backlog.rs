//! What was read of a table and is not done: each item's changes in their order, and up to where everything is done.
//!
//! Nothing here reads, writes or waits. Looks at the table come in the order in which they were made, each with its mark;
//! a mark is passed when everything up to it is done.

use std::collections::{HashMap, VecDeque};

use floe_store::Item;

/// The changes of a table that are not done.
pub(super) struct Backlog<W, M> {
    items: HashMap<Item, Queue<W>>,
    /// The items whose next changes can be begun, those that have waited longest first.
    ready: VecDeque<Item>,
    looks: VecDeque<Look<M>>,
    /// The number of the first of the looks.
    first: u64,
    records: usize,
    bytes: usize,
}

/// The changes of an item.
struct Queue<W> {
    waiting: VecDeque<Entry<W>>,
    /// The looks and bytes of those that are being handled.
    begun: Vec<(u64, usize)>,
    is_busy: bool,
}

struct Entry<W> {
    work: W,
    look: u64,
    bytes: usize,
}

/// What one look has brought.
struct Look<M> {
    mark: M,
    /// How many of its changes are not done.
    left: usize,
}

impl<W, M> Default for Backlog<W, M> {
    fn default() -> Self {
        Self {
            items: HashMap::new(),
            ready: VecDeque::new(),
            looks: VecDeque::new(),
            first: 0,
            records: 0,
            bytes: 0,
        }
    }
}

impl<W> Queue<W> {
    const fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            begun: Vec::new(),
            is_busy: false,
        }
    }
}

impl<W, M> Backlog<W, M> {
    /// Takes in what a look has brought: what is to be done, with its item and its size.
    pub(super) fn push(&mut self, mark: M, works: Vec<(Item, W, usize)>) {
        let number = self.first + self.looks.len() as u64;
        self.looks.push_back(Look {
            mark,
            left: works.len(),
        });
        for (item, work, bytes) in works {
            self.records += 1;
            self.bytes += bytes;
            let queue = self.items.entry(item.clone()).or_insert_with(Queue::new);
            queue.waiting.push_back(Entry {
                work,
                look: number,
                bytes,
            });
            if queue.waiting.len() == 1 && !queue.is_busy {
                self.ready.push_back(item);
            }
        }
    }

    /// How many looks, records and bytes are not done.
    pub(super) fn len(&self) -> (usize, usize, usize) {
        (self.looks.len(), self.records, self.bytes)
    }

    /// Takes the item that has waited longest, and its next changes: at most so many.
    pub(super) fn begin(&mut self, changes_max: usize) -> Option<(Item, Vec<W>)> {
        let item = self.ready.pop_front()?;
        let queue = self.items.get_mut(&item)?;
        let count = queue.waiting.len().min(changes_max.max(1));
        let mut works = Vec::with_capacity(count);
        for entry in queue.waiting.drain(..count) {
            queue.begun.push((entry.look, entry.bytes));
            works.push(entry.work);
        }
        queue.is_busy = true;
        Some((item, works))
    }

    /// Keeps the changes of an item from being begun until [`end`](Self::end); `false` if some are being handled.
    pub(super) fn block(&mut self, item: &Item) -> bool {
        let queue = self.items.entry(item.clone()).or_insert_with(Queue::new);
        if queue.is_busy {
            return false;
        }
        queue.is_busy = true;
        self.ready.retain(|ready| ready != item);
        true
    }

    /// Everything that was begun of an item is done.
    pub(super) fn end(&mut self, item: Item) {
        let Some(queue) = self.items.get_mut(&item) else {
            return;
        };
        queue.is_busy = false;
        for (number, bytes) in queue.begun.drain(..) {
            self.records -= 1;
            self.bytes -= bytes;
            let place = usize::try_from(number - self.first).ok();
            if let Some(look) = place.and_then(|place| self.looks.get_mut(place)) {
                look.left -= 1;
            }
        }
        match queue.waiting.is_empty() {
            true => drop(self.items.remove(&item)),
            false => self.ready.push_back(item),
        }
    }

    /// Forgets the looks that are done, up to the first that is not. Gives the mark of the last of them.
    pub(super) fn pass_done(&mut self) -> Option<M> {
        let mut passed = None;
        while self.looks.front().is_some_and(|look| look.left == 0) {
            passed = self.looks.pop_front().map(|look| look.mark);
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

    fn item(id: u64) -> Item {
        Item::new().with("id", id)
    }

    #[test]
    fn a_slow_item_holds_the_mark_and_nobody_else() {
        let mut backlog: Backlog<u64, u64> = Backlog::default();
        backlog.push(1, vec![(item(1), 10, 5), (item(2), 20, 5)]);
        backlog.push(2, vec![]);
        backlog.push(3, vec![(item(2), 21, 5), (item(2), 22, 5)]);
        assert_eq!(backlog.len(), (3, 4, 20));
        assert_eq!(backlog.begin(9), Some((item(1), vec![10])));
        assert_eq!(backlog.begin(2), Some((item(2), vec![20, 21])));
        assert_eq!(backlog.begin(9), None);
        backlog.end(item(2));
        assert_eq!(backlog.pass_done(), None);
        assert_eq!(backlog.begin(9), Some((item(2), vec![22])));
        backlog.end(item(2));
        backlog.end(item(1));
        assert_eq!(backlog.pass_done(), Some(3));
        assert_eq!(backlog.len(), (0, 0, 0));
        assert!(backlog.items.is_empty() && backlog.ready.is_empty());
    }

    #[test]
    fn an_item_that_is_blocked_waits() {
        let mut backlog: Backlog<u64, u64> = Backlog::default();
        backlog.push(1, vec![(item(1), 10, 1), (item(2), 20, 1)]);
        assert!(backlog.block(&item(1)));
        assert!(!backlog.block(&item(1)));
        assert_eq!(backlog.begin(9), Some((item(2), vec![20])));
        backlog.push(2, vec![(item(1), 11, 1)]);
        assert_eq!(backlog.begin(9), None);
        backlog.end(item(1));
        assert_eq!(backlog.begin(9), Some((item(1), vec![10, 11])));
        assert!(backlog.block(&item(3)));
        backlog.end(item(3));
        assert_eq!(backlog.items.len(), 2);
    }

    /// Handlers come back in any order: the changes of an item are begun in their order, one turn at a time, and no mark
    /// is passed before everything up to it is done.
    #[test]
    fn no_mark_is_passed_before_everything_up_to_it_is_done() {
        for seed in 0..300 {
            let random = SeededRandom::new(seed);
            let mut backlog: Backlog<u64, u64> = Backlog::default();
            let (mut read, mut done) = ([0_u64; 5], [0_u64; 5]);
            let mut marks: Vec<[u64; 5]> = Vec::new();
            let mut running: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            let mut passed = 0;
            for _ in 0..200 {
                match random.next_u64() % 4 {
                    0 => {
                        let mut works = Vec::new();
                        for _ in 0..random.below(6) {
                            let id = random.below(5) as usize;
                            works.push((item(id as u64), read[id], 3));
                            read[id] += 1;
                        }
                        marks.push(read);
                        backlog.push(marks.len() as u64, works);
                    }
                    1 => {
                        if let Some((key, works)) = backlog.begin(1 + random.below(3) as usize) {
                            let id = (0..5).find(|id| item(*id) == key).unwrap();
                            assert_eq!(works[0], done[id as usize]);
                            assert!(works.is_sorted());
                            assert_eq!(running.insert(id, works), None);
                        }
                    }
                    _ => {
                        if let Some((id, works)) = running.pop_last() {
                            done[id as usize] += works.len() as u64;
                            backlog.end(item(id));
                        }
                    }
                }
                if let Some(mark) = backlog.pass_done() {
                    passed = mark as usize;
                }
                let is_done = |read: &&[u64; 5]| read.iter().zip(&done).all(|(a, b)| a <= b);
                assert_eq!(marks.iter().take_while(is_done).count(), passed);
                let left: u64 = read.iter().zip(&done).map(|(read, done)| read - done).sum();
                let left = left as usize;
                assert_eq!(backlog.len(), (marks.len() - passed, left, 3 * left));
            }
        }
    }
}
