//! Walks that read on behind damaged blocks.
//!
//! The store below merges its sorted files into one walk, which cannot go on behind a block that could
//! not be read and loses the entry before it. So where a walk fails, keys are taken from each sorted file
//! by itself, block by block, and values are looked up: a lookup finds the newest value of a key or
//! fails, so that no older one stands in for a damaged one.
//!
//! Not found are entries inside a gap that are nowhere but in a write buffer which is just being written
//! out: the store below does not show such buffers. They are not lost, and the gap is told.

use std::collections::VecDeque;
use std::ops::Bound;

use floe_store::{Error, Result};

use fjall::AbstractTree;

use super::disk::read_failed;
use super::{Bytes, Direction, KeyBounds, Snapshot, Space, Walk};

/// A stretch of keys of which some could not be read.
#[derive(Debug)]
pub(crate) struct Gap {
    /// Why.
    pub(crate) error: Error,
    /// The last key before it.
    pub(crate) after: Option<Bytes>,
    /// The first key behind it.
    pub(crate) before: Option<Bytes>,
}

/// A walk through all entries that can be read, in ascending order, and the gaps among them.
pub(crate) struct Salvage {
    snapshot: Snapshot,
    space: Space,
    bounds: KeyBounds,
    /// The plain walk, as long as it does not fail.
    walk: Option<Walk>,
    /// Where the keys are taken from once it has failed.
    sources: Vec<Source>,
    /// Why it failed, until a gap tells.
    failure: Option<Gap>,
    /// A gap that is made of lookups which failed, although the key was found.
    lookups: Option<Gap>,
    /// The last key that was read.
    last: Option<Bytes>,
    found: VecDeque<Result<(Bytes, Bytes), Gap>>,
}

impl Snapshot {
    /// The keys and values within bounds, with the gaps where some cannot be read.
    pub(crate) fn salvage(&self, space: Space, bounds: KeyBounds) -> Salvage {
        Salvage {
            snapshot: self.clone(),
            space,
            walk: Some(self.range(space, bounds.clone(), Direction::Forward)),
            bounds,
            sources: Vec::new(),
            failure: None,
            lookups: None,
            last: None,
            found: VecDeque::new(),
        }
    }
}

impl Iterator for Salvage {
    type Item = Result<(Bytes, Bytes), Gap>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.walk.as_mut().map(Walk::next) {
            None => {}
            Some(None) => self.walk = None,
            Some(Some(Ok((key, value)))) => {
                self.last = Some(key.clone());
                return Some(Ok((key, value)));
            }
            Some(Some(Err(error))) => self.turn_to_sources(error),
        }
        while self.found.is_empty() && self.read_on() {}
        self.found.pop_front()
    }
}

impl Salvage {
    fn turn_to_sources(&mut self, error: Error) {
        self.walk = None;
        if let Some(last) = &self.last {
            self.bounds.0 = Bound::Excluded(last.to_vec());
        }
        self.failure = Some(Gap {
            error,
            after: self.last.clone(),
            before: None,
        });
        self.sources = sources(&self.snapshot, self.space, &self.bounds);
        self.advance(None);
    }

    /// Reads the next key that any source has. `false` at the end.
    fn read_on(&mut self) -> bool {
        let heads = self
            .sources
            .iter()
            .filter_map(|source| source.head.as_ref());
        let Some(key) = heads.min().cloned() else {
            let rest = self.lookups.take().into_iter().chain(self.failure.take());
            self.found.extend(rest.map(Err));
            return !self.found.is_empty();
        };
        match self.snapshot.get(self.space, &key) {
            Ok(Some(value)) => {
                if let Some(gap) = self.lookups.take() {
                    let before = Some(key.clone());
                    self.found.push_back(Err(Gap { before, ..gap }));
                }
                self.last = Some(key.clone());
                self.found.push_back(Ok((key.clone(), value)));
            }
            Ok(None) => {}
            // What the key needs can be in a gap that has been told.
            Err(_) if self.sources.iter().any(|source| source.is_in_gap(&key)) => {}
            Err(error) => {
                self.failure = None;
                self.lookups.get_or_insert(Gap {
                    error,
                    after: self.last.clone(),
                    before: None,
                });
            }
        }
        self.advance(Some(&key));
        true
    }

    /// Moves all sources on that stand at this key, and tells the gaps that they meet.
    fn advance(&mut self, key: Option<&Bytes>) {
        let sources = self.sources.iter_mut();
        for source in sources.filter(|source| source.head.as_ref() == key) {
            if let Some(gap) = source.advance() {
                self.failure = None;
                let after = gap.after.or_else(|| self.last.clone());
                self.found.push_back(Err(Gap { after, ..gap }));
            }
        }
    }
}

/// The keys of one sorted file, or of the write buffer.
struct Source {
    keys: Box<dyn Iterator<Item = Result<Bytes>> + Send>,
    /// The key that comes next.
    head: Option<Bytes>,
    /// Whether blocks before the head could not be read.
    gap: bool,
    /// How many blocks may fail yet. A file whose index cannot be read fails for ever.
    failures_left: u64,
}

impl Source {
    fn new(keys: impl Iterator<Item = Result<Bytes>> + Send + 'static, blocks: u64) -> Self {
        Self {
            keys: Box::new(keys),
            head: None,
            gap: false,
            failures_left: blocks,
        }
    }

    fn is_in_gap(&self, key: &Bytes) -> bool {
        self.gap && self.head.as_ref() != Some(key)
    }

    /// Moves to the next key, over all its versions and over blocks that cannot be read.
    fn advance(&mut self) -> Option<Gap> {
        let after = self.head.take();
        let mut failure = None;
        for key in self.keys.by_ref() {
            match key {
                Ok(key) if Some(&key) == after.as_ref() => {}
                Ok(key) => {
                    self.head = Some(key);
                    break;
                }
                Err(error) => {
                    failure.get_or_insert(error);
                    match self.failures_left.checked_sub(1) {
                        Some(left) => self.failures_left = left,
                        None => break,
                    }
                }
            }
        }
        self.gap = failure.is_some();
        failure.map(|error| Gap {
            error,
            after,
            before: self.head.clone(),
        })
    }
}

/// All places where a space on disk has keys within bounds; none for a space in memory, of which
/// everything can be read.
fn sources(snapshot: &Snapshot, space: Space, bounds: &KeyBounds) -> Vec<Source> {
    let Snapshot::Disk(held) = snapshot else {
        return Vec::new();
    };
    let tree = &held.keyspace(space).tree;
    let skip = space.skip();
    let bounds = space.full_bounds(bounds.clone());
    // The buffer first: if it becomes a file meanwhile, its keys come twice rather than not at all.
    let buffer = tree.active_memtable();
    let within = |key: &[u8]| std::ops::RangeBounds::<Vec<u8>>::contains(&bounds, &key.to_vec());
    let buffered = buffer.iter().map(|entry| entry.key.user_key);
    let buffered: Vec<_> = buffered
        .filter(|key| within(key))
        .map(|slice| Ok(Bytes { slice, skip }))
        .collect();
    let mut sources = vec![Source::new(buffered.into_iter(), 0)];
    for table in tree.current_version().iter_tables() {
        // A file is not removed as long as it is held.
        let (table, held) = (table.clone(), held.clone());
        let blocks = table.metadata.data_block_count + table.metadata.index_block_count;
        let bound = |bound: &Bound<Vec<u8>>| bound.clone().map(fjall::Slice::from);
        let entries = table.range((bound(&bounds.0), bound(&bounds.1)));
        let keys = entries.map(move |entry| {
            let _held = (&table, &held);
            let key = entry.map_err(read_failed)?.key.user_key;
            Ok(Bytes { slice: key, skip })
        });
        sources.push(Source::new(keys, blocks));
    }
    sources
}
