//! Iterators that continue after damaged blocks.
//!
//! Fjall merges its sorted files into one iterator, which cannot continue after an unreadable block and loses the entry
//! before it. So after an error, keys are read from each sorted file separately, block by block, and their values are
//! looked up: a lookup finds the newest value of a key or fails, so that an older value never replaces a damaged one.
//!
//! Entries in a gap are not found if they are only in a write buffer that is being flushed, because fjall does not
//! expose such buffers. They are not lost, and the gap is reported.

use std::collections::VecDeque;
use std::ops::Bound;

use floe_store::{Error, Result};

use fjall::AbstractTree;

use super::disk::read_failed;
use super::{Bytes, Direction, KeyBounds, RangeIter, Snapshot, Space};

/// A range of keys, some of which could not be read.
#[derive(Debug)]
pub(crate) struct Gap {
    /// Why reading failed.
    pub(crate) error: Error,
    /// The last key before the gap.
    pub(crate) after: Option<Bytes>,
    /// The first key after the gap.
    pub(crate) before: Option<Bytes>,
}

/// An iterator over all readable entries in ascending order, and the gaps between them.
pub(crate) struct SalvageIter {
    snapshot: Snapshot,
    space: Space,
    bounds: KeyBounds,
    /// The plain iterator, until it fails.
    plain: Option<RangeIter>,
    /// The sources of keys after it has failed.
    sources: Vec<KeySource>,
    /// The failure, until it is part of a reported gap.
    failure: Option<Gap>,
    /// A gap of keys that were found but whose lookups failed.
    failed_lookups: Option<Gap>,
    /// The last key that was returned.
    last: Option<Bytes>,
    found: VecDeque<Result<(Bytes, Bytes), Gap>>,
}

impl Snapshot {
    /// Iterates over the keys and values within bounds, and over the gaps where some cannot be read.
    pub(crate) fn salvage(&self, space: Space, bounds: KeyBounds) -> SalvageIter {
        SalvageIter {
            snapshot: self.clone(),
            space,
            plain: Some(self.range(space, bounds.clone(), Direction::Forward)),
            bounds,
            sources: Vec::new(),
            failure: None,
            failed_lookups: None,
            last: None,
            found: VecDeque::new(),
        }
    }
}

impl Iterator for SalvageIter {
    type Item = Result<(Bytes, Bytes), Gap>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.plain.as_mut().map(RangeIter::next) {
            None => {}
            Some(None) => self.plain = None,
            Some(Some(Ok((key, value)))) => {
                self.last = Some(key.clone());
                return Some(Ok((key, value)));
            }
            Some(Some(Err(error))) => self.switch_to_sources(error),
        }
        while self.found.is_empty() && self.read_next() {}
        self.found.pop_front()
    }
}

impl SalvageIter {
    fn switch_to_sources(&mut self, error: Error) {
        self.plain = None;
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

    /// Reads the next key of all sources. `false` at the end.
    fn read_next(&mut self) -> bool {
        let heads = self
            .sources
            .iter()
            .filter_map(|source| source.head.as_ref());
        let Some(key) = heads.min().cloned() else {
            let rest = self
                .failed_lookups
                .take()
                .into_iter()
                .chain(self.failure.take());
            self.found.extend(rest.map(Err));
            return !self.found.is_empty();
        };
        match self.snapshot.get(self.space, &key) {
            Ok(Some(value)) => {
                if let Some(gap) = self.failed_lookups.take() {
                    let before = Some(key.clone());
                    self.found.push_back(Err(Gap { before, ..gap }));
                }
                self.last = Some(key.clone());
                self.found.push_back(Ok((key.clone(), value)));
            }
            Ok(None) => {}
            // The failed block belongs to a gap that was already reported.
            Err(_) if self.sources.iter().any(|source| source.is_in_gap(&key)) => {}
            Err(error) => {
                self.failure = None;
                self.failed_lookups.get_or_insert(Gap {
                    error,
                    after: self.last.clone(),
                    before: None,
                });
            }
        }
        self.advance(Some(&key));
        true
    }

    /// Advances all sources whose next key is `key`, and reports their gaps.
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
struct KeySource {
    keys: Box<dyn Iterator<Item = Result<Bytes>> + Send>,
    /// The next key.
    head: Option<Bytes>,
    /// Whether blocks before the head are unreadable.
    gap: bool,
    /// Number of blocks that may still fail. A file with an unreadable index fails forever.
    failures_left: u64,
}

impl KeySource {
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

    /// Moves to the next key, past all versions of this one and past unreadable blocks.
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

/// All sources of keys of a space on disk, within bounds. Empty for a space in memory, which is always readable.
fn sources(snapshot: &Snapshot, space: Space, bounds: &KeyBounds) -> Vec<KeySource> {
    let Snapshot::Disk(held) = snapshot else {
        return Vec::new();
    };
    let tree = &held.keyspace(space).tree;
    let skip = space.skip();
    let bounds = space.full_bounds(bounds.clone());
    // The buffer comes first: if it is flushed meanwhile, its keys occur twice instead of not at all.
    let buffer = tree.active_memtable();
    let within = |key: &[u8]| std::ops::RangeBounds::<Vec<u8>>::contains(&bounds, &key.to_vec());
    let buffered = buffer.iter().map(|entry| entry.key.user_key);
    let buffered: Vec<_> = buffered
        .filter(|key| within(key))
        .map(|slice| Ok(Bytes { slice, skip }))
        .collect();
    let mut sources = vec![KeySource::new(buffered.into_iter(), 0)];
    for table in tree.current_version().iter_tables() {
        // A file is not removed while it is held.
        let (table, held) = (table.clone(), held.clone());
        let blocks = table.metadata.data_block_count + table.metadata.index_block_count;
        let bound = |bound: &Bound<Vec<u8>>| bound.clone().map(fjall::Slice::from);
        let entries = table.range((bound(&bounds.0), bound(&bounds.1)));
        let keys = entries.map(move |entry| {
            let _held = (&table, &held);
            let key = entry.map_err(read_failed)?.key.user_key;
            Ok(Bytes { slice: key, skip })
        });
        sources.push(KeySource::new(keys, blocks));
    }
    sources
}
