//! Reads everything intact from the files of a store without opening it.
//!
//! Sorted files and journals are read individually, so that damage to one of them, or to the lists of files, loses only
//! the damaged part. Of several versions of a key the newest is used. If a damaged block may have contained a newer
//! one, the key is omitted, because an older version is not the latest stored value.

use std::collections::BTreeMap;
use std::collections::btree_map::IntoIter;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsm_tree::{Cache, Checksum, InternalValue, Table};

use super::failure::describe_files;
use super::{Bytes, Space, TablePrefix};
use crate::files::{self, KEYSPACES_FOLDER};
use crate::journal::{self, JournalSalvage, UncertainKey};

/// Memory in bytes for caching blocks. Each is read only once.
const CACHE_BYTES: u64 = 1 << 20;

/// A version of a key: its sequence number and value; `None` if it was removed.
type Version = (u64, Option<Vec<u8>>);

/// Keys that the journals write or remove.
type Journaled = BTreeMap<Vec<u8>, Version>;

/// Keys whose versions may be lost from the journals, with the sequence numbers of versions that may be outdated.
type UncertainKeys = BTreeMap<Vec<u8>, Range<u64>>;

/// The files of a store, read without opening it.
pub(crate) struct RawFiles {
    data: PathBuf,
    journaled: BTreeMap<u64, Journaled>,
    uncertain: BTreeMap<u64, UncertainKeys>,
}

/// A kind of [`Space`] on disk; all tables are one kind. The number is that of its keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpaceKind {
    Meta = 1,
    Changes = 2,
    Tokens = 3,
    Tables = 4,
}

impl RawFiles {
    /// Reads the journals. `is_closed` states whether the store was closed. Calls `lost` for each part that cannot be
    /// read.
    pub(crate) fn read(data: &Path, is_closed: bool, lost: &mut dyn FnMut(String)) -> Self {
        let mut journaled: BTreeMap<u64, Journaled> = BTreeMap::new();
        let journals = journal::journals(data).unwrap_or_else(|error| {
            lost(format!("the journals cannot be listed: {error}"));
            Vec::new()
        });
        let is_gone = journals.is_empty();
        if is_gone {
            let data = data.display();
            lost(format!(
                "no journal found, so the latest writes are missing: directory={data}"
            ));
        }
        let mut salvage = JournalSalvage::new(is_closed);
        for (_, path) in journals {
            let read = salvage.read(&path, |entry| {
                let keyspace = journaled.entry(entry.keyspace).or_default();
                keyspace.insert(entry.key, (entry.sequence, entry.value));
            });
            let shown = path.display();
            match read {
                Err(error) => lost(error.to_string()),
                Ok(parts) => {
                    for part in parts {
                        let (offset, bytes) = (part.offset, part.bytes);
                        lost(format!(
                            "a part of a journal is damaged, so its writes are lost: path={shown} offset={offset} \
                            bytes={bytes}"
                        ));
                    }
                }
            }
        }
        if salvage.is_empty() && !is_closed && !is_gone {
            let data = data.display();
            lost(format!(
                "no journal contains a write, so the latest writes may be missing: directory={data}"
            ));
        }
        Self {
            data: data.to_owned(),
            journaled,
            uncertain: by_key(salvage.into_uncertain_keys()),
        }
    }

    /// Iterates over all intact keys and values of a kind of space, ordered by space and key. Calls `lost` for each
    /// part that cannot be read.
    pub(crate) fn entries(&self, kind: SpaceKind, lost: &mut dyn FnMut(String)) -> RawEntries {
        let folder = self.data.join(KEYSPACES_FOLDER);
        let folder = folder.join((kind as u64).to_string());
        let mut sources: Vec<SortedFile> = Vec::new();
        for path in listed_files(&folder, lost) {
            match open_file(&path) {
                Ok(table) => sources.push(SortedFile::new(&table, path)),
                Err(what) => lost(format!(
                    "a sorted file cannot be read, so all its entries are lost: {what}: path={}",
                    path.display()
                )),
            }
        }
        for source in &mut sources {
            source.advance(lost);
        }
        let journaled = self.journaled.get(&(kind as u64)).cloned();
        let uncertain = self.uncertain.get(&(kind as u64)).cloned();
        RawEntries {
            kind,
            sources,
            uncertain: uncertain.unwrap_or_default(),
            journaled: journaled.unwrap_or_default().into_iter().peekable(),
        }
    }
}

/// Groups the uncertain keys by keyspace.
fn by_key(uncertain: Vec<UncertainKey>) -> BTreeMap<u64, UncertainKeys> {
    let mut by_key: BTreeMap<u64, UncertainKeys> = BTreeMap::new();
    for key in uncertain {
        let sequences = key.sequences;
        let keyspace = by_key.entry(key.keyspace).or_default();
        let all = keyspace.entry(key.key).or_insert_with(|| sequences.clone());
        *all = all.start.min(sequences.start)..all.end.max(sequences.end);
    }
    by_key
}

/// The sorted files of a keyspace: those in its list, or all existing files if the list is damaged.
fn listed_files(folder: &Path, lost: &mut dyn FnMut(String)) -> Vec<PathBuf> {
    let mut files = files::sorted_files(folder);
    match files::listed(folder) {
        Ok(listed) => {
            for id in listed
                .iter()
                .filter(|id| !files.iter().any(|(n, _)| n == *id))
            {
                lost(format!(
                    "a sorted file is missing, so all its entries are lost: path={}",
                    folder
                        .join(files::TABLES_FOLDER)
                        .join(id.to_string())
                        .display()
                ));
            }
            files.retain(|(id, _)| listed.contains(id));
        }
        Err(error) => lost(format!(
            "a list of files cannot be read, so all files are used, including replaced ones: {error}"
        )),
    }
    files.into_iter().map(|(_, path)| path).collect()
}

fn open_file(path: &Path) -> Result<Table, String> {
    let cache = Arc::new(Cache::with_capacity_bytes(CACHE_BYTES));
    let opened = guarded(|| {
        let checksum = Checksum::from_raw(0);
        Table::recover(path.to_owned(), checksum, 0, 0, cache, None, false, false)
    });
    opened?.map_err(|error| describe_files(&error))
}

/// Runs code of `lsm_tree`, which panics on some kinds of damage.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| "its content is damaged".to_owned())
}

/// The entries of one sorted file.
struct SortedFile {
    entries: Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>>>,
    path: PathBuf,
    /// The newest version of the next key.
    head: Option<InternalValue>,
    /// Whether blocks before the head are unreadable.
    gap: bool,
    /// The first and the last key.
    range: (Vec<u8>, Vec<u8>),
    /// The highest sequence number in the file.
    highest_sequence: u64,
    /// Number of blocks that may still fail. A file with an unreadable index fails forever.
    failures_left: u64,
}

impl SortedFile {
    fn new(table: &Table, path: PathBuf) -> Self {
        let blocks = table.metadata.data_block_count + table.metadata.index_block_count;
        Self {
            range: {
                let range = &table.metadata.key_range;
                (range.min().to_vec(), range.max().to_vec())
            },
            highest_sequence: table.get_highest_seqno(),
            entries: Box::new(table.iter()),
            path,
            head: None,
            gap: false,
            failures_left: blocks,
        }
    }

    /// Moves to the next key, past older versions of this one and past unreadable blocks.
    fn advance(&mut self, lost: &mut dyn FnMut(String)) {
        let last = self.head.take();
        self.gap = false;
        loop {
            let next = match guarded(|| self.entries.next()) {
                Ok(None) => return,
                Ok(Some(Ok(entry))) => Ok(entry),
                Ok(Some(Err(error))) => Err(describe_files(&error)),
                Err(what) => {
                    self.failures_left = 0;
                    Err(what)
                }
            };
            match next {
                Ok(entry) if is_of(last.as_ref(), &entry.key.user_key) => {}
                Ok(entry) => {
                    self.head = Some(entry);
                    return;
                }
                Err(what) => {
                    if !self.gap {
                        lost(format!(
                            "a block of a sorted file is damaged, so its keys are lost: {what}: path={}",
                            self.path.display()
                        ));
                    }
                    self.gap = true;
                    match self.failures_left.checked_sub(1) {
                        Some(left) => self.failures_left = left,
                        None => return,
                    }
                }
            }
        }
    }

    /// Whether an unreadable block may contain a newer version of a key.
    fn may_have_newer(&self, key: &[u8], sequence: u64) -> bool {
        let is_before_head = self
            .head
            .as_ref()
            .is_none_or(|head| *head.key.user_key > *key);
        let is_in_range = *self.range.0 <= *key && *key <= *self.range.1;
        self.gap && is_before_head && is_in_range && sequence <= self.highest_sequence
    }
}

fn is_of(entry: Option<&InternalValue>, key: &[u8]) -> bool {
    entry.is_some_and(|entry| *entry.key.user_key == *key)
}

/// An entry of a kind of space.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RawEntry {
    /// A key and its value.
    Entry(Space, Bytes, Bytes),
    /// A key whose newer version may be lost.
    Uncertain,
    /// A key of the catalog whose newer version may be lost from the journals: for a table, an outdated record is
    /// better than none.
    Outdated(Bytes, Bytes),
    /// A key that belongs to no table.
    Foreign,
}

/// An iterator over all intact entries.
pub(crate) struct RawEntries {
    kind: SpaceKind,
    sources: Vec<SortedFile>,
    uncertain: UncertainKeys,
    journaled: std::iter::Peekable<IntoIter<Vec<u8>, Version>>,
}

impl RawEntries {
    /// Returns the next entry. Calls `lost` for each part that cannot be read.
    pub(crate) fn next(&mut self, lost: &mut dyn FnMut(String)) -> Option<RawEntry> {
        loop {
            let heads = self
                .sources
                .iter()
                .filter_map(|source| source.head.as_ref());
            let heads = heads.map(|head| head.key.user_key.to_vec());
            let journaled = self.journaled.peek().map(|(key, _)| key.clone());
            let key = heads.chain(journaled).min()?;
            let mut newest: Option<Version> = self
                .journaled
                .next_if(|(journaled, _)| *journaled == key)
                .map(|(_, version)| version);
            for source in &self.sources {
                if let Some(head) = source
                    .head
                    .as_ref()
                    .filter(|head| *head.key.user_key == *key)
                    && newest
                        .as_ref()
                        .is_none_or(|(sequence, _)| *sequence < head.key.seqno)
                {
                    let value = (!head.key.value_type.is_tombstone()).then(|| head.value.to_vec());
                    newest = Some((head.key.seqno, value));
                }
            }
            let sequence = newest.as_ref().map_or(0, |(sequence, _)| *sequence);
            let is_uncertain = self
                .sources
                .iter()
                .any(|source| source.may_have_newer(&key, sequence));
            for source in &mut self.sources {
                if is_of(source.head.as_ref(), &key) {
                    source.advance(lost);
                }
            }
            let uncertain = self.uncertain.get(&key);
            let may_be_outdated = uncertain.is_some_and(|sequences| sequences.contains(&sequence));
            match newest.and_then(|(_, value)| value) {
                Some(_) if is_uncertain => return Some(RawEntry::Uncertain),
                Some(value) if may_be_outdated && self.kind == SpaceKind::Meta => {
                    return Some(RawEntry::Outdated(Space::Meta.key(&key), value.into()));
                }
                Some(_) if may_be_outdated => return Some(RawEntry::Uncertain),
                Some(value) => return Some(self.found(&key, value)),
                None => {}
            }
        }
    }

    fn found(&self, key: &[u8], value: Vec<u8>) -> RawEntry {
        let space = match self.kind {
            SpaceKind::Meta => Space::Meta,
            SpaceKind::Changes => Space::Changes,
            SpaceKind::Tokens => Space::Tokens,
            SpaceKind::Tables => {
                let parsed = TablePrefix::parse(key);
                let Some((id, rest)) =
                    parsed.and_then(|(id, len)| Some((id, key.get(usize::from(len)..)?)))
                else {
                    return RawEntry::Foreign;
                };
                let space = Space::Table(id);
                return RawEntry::Entry(space, space.key(rest), value.into());
            }
        };
        RawEntry::Entry(space, space.key(key), value.into())
    }
}
