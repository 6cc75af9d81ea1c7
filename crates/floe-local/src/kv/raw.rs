//! What is intact in the files of a store, read without opening it.
//!
//! Sorted files are read one by one and journals batch by batch, so that damage to one of them, or to the lists that
//! name them, costs nothing but what was in the damaged part. Of several versions of a key the newest is taken. Where a
//! damaged block may have held a newer one, the key is left out: an older version is not what was stored last.

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
use crate::journal::{self, Contents, Doubt};

/// Memory for blocks: each is read once.
const CACHE_BYTES: u64 = 1 << 20;

/// A version of a key: its sequence number, and its value or that it is removed.
type Version = (u64, Option<Vec<u8>>);

/// Keys that the journals set or remove, by keyspace.
type Journaled = BTreeMap<Vec<u8>, Version>;

/// Keys of which the journals may have lost a version, with the numbers of the versions that may be older.
type Doubts = BTreeMap<Vec<u8>, Range<u64>>;

/// The files of a store.
pub(crate) struct Raw {
    data: PathBuf,
    journaled: BTreeMap<u64, Journaled>,
    doubts: BTreeMap<u64, Doubts>,
}

/// A kind of [`Space`], as it is kept: the tables are together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Meta = 1,
    Changes = 2,
    Tokens = 3,
    Tables = 4,
}

impl Raw {
    /// Reads the journals of a store that was closed, or that was not. Reports to `lost` what of them cannot be read.
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
                "there is no journal, so the last writes are missing: directory={data}"
            ));
        }
        let mut contents = Contents::new(is_closed);
        for (_, path) in journals {
            let read = contents.read(&path, |entry| {
                let keyspace = journaled.entry(entry.keyspace).or_default();
                keyspace.insert(entry.key, (entry.sequence, entry.value));
            });
            let shown = path.display();
            match read {
                Err(error) => lost(error.to_string()),
                Ok(stretches) => {
                    for stretch in stretches {
                        let (offset, bytes) = (stretch.offset, stretch.bytes);
                        lost(format!(
                            "a part of a journal is damaged, so what it wrote last is older: path={shown} \
                             offset={offset} bytes={bytes}"
                        ));
                    }
                }
            }
        }
        if contents.is_empty() && !is_closed && !is_gone {
            let data = data.display();
            lost(format!(
                "no journal holds a write, so the last ones may be missing: directory={data}"
            ));
        }
        Self {
            data: data.to_owned(),
            journaled,
            doubts: by_key(contents.into_doubts()),
        }
    }

    /// All intact keys and values of a kind of space, in the order of spaces and keys. Tells `lost` what cannot be read.
    pub(crate) fn entries(&self, kept: Kept, lost: &mut dyn FnMut(String)) -> Entries {
        let folder = self.data.join(KEYSPACES_FOLDER);
        let folder = folder.join((kept as u64).to_string());
        let mut sources: Vec<Source> = Vec::new();
        for path in listed_files(&folder, lost) {
            match open_file(&path) {
                Ok(table) => sources.push(Source::new(&table, path)),
                Err(what) => lost(format!(
                    "a file of sorted keys cannot be read, so all in it is lost: {what}: path={}",
                    path.display()
                )),
            }
        }
        for source in &mut sources {
            source.advance(lost);
        }
        let journaled = self.journaled.get(&(kept as u64)).cloned();
        let doubts = self.doubts.get(&(kept as u64)).cloned();
        Entries {
            kept,
            sources,
            doubts: doubts.unwrap_or_default(),
            journaled: journaled.unwrap_or_default().into_iter().peekable(),
        }
    }
}

/// The doubts by keyspace and key.
fn by_key(doubts: Vec<Doubt>) -> BTreeMap<u64, Doubts> {
    let mut by_key: BTreeMap<u64, Doubts> = BTreeMap::new();
    for doubt in doubts {
        let numbers = doubt.numbers;
        let keyspace = by_key.entry(doubt.keyspace).or_default();
        let all = keyspace.entry(doubt.key).or_insert_with(|| numbers.clone());
        *all = all.start.min(numbers.start)..all.end.max(numbers.end);
    }
    by_key
}

/// The sorted files that belong to a keyspace: those that its list names, or all that are there if it is damaged.
fn listed_files(folder: &Path, lost: &mut dyn FnMut(String)) -> Vec<PathBuf> {
    let mut files = files::sorted_files(folder);
    match files::listed(folder) {
        Ok(listed) => {
            for id in listed
                .iter()
                .filter(|id| !files.iter().any(|(n, _)| n == *id))
            {
                lost(format!(
                    "a file of sorted keys is missing, so all in it is lost: path={}",
                    folder
                        .join(files::TABLES_FOLDER)
                        .join(id.to_string())
                        .display()
                ));
            }
            files.retain(|(id, _)| listed.contains(id));
        }
        Err(error) => lost(format!(
            "a list of files cannot be read, so all files are taken, also those that were replaced: {error}"
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

/// Runs code of the store below, which panics on some kinds of damage.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| "its content is damaged".to_owned())
}

/// The entries of one sorted file.
struct Source {
    entries: Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>>>,
    path: PathBuf,
    /// The newest version of the key that comes next.
    head: Option<InternalValue>,
    /// Whether blocks before the head could not be read.
    gap: bool,
    /// The first and the last key.
    range: (Vec<u8>, Vec<u8>),
    /// No version in the file is newer.
    highest_sequence: u64,
    /// How many blocks may fail yet. A file whose index cannot be read fails for ever.
    failures_left: u64,
}

impl Source {
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

    /// Moves to the next key, over older versions of this one and over blocks that cannot be read.
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
                            "a block of sorted keys is damaged, so the keys in it are lost: {what}: path={}",
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

    /// Whether a block that cannot be read may hold a newer version of a key.
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

/// What the entries of a kind of space are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A key and its value.
    Entry(Space, Bytes, Bytes),
    /// A key of which a newer version may be lost.
    Uncertain,
    /// A key of the catalog of which the journals may have lost a newer version: an older record of a table is worth
    /// more than none.
    Older(Bytes, Bytes),
    /// A key that belongs nowhere.
    Foreign,
}

/// A walk over all intact entries.
pub(crate) struct Entries {
    kept: Kept,
    sources: Vec<Source>,
    doubts: Doubts,
    journaled: std::iter::Peekable<IntoIter<Vec<u8>, Version>>,
}

impl Entries {
    /// The next key. Tells `lost` what cannot be read on the way.
    pub(crate) fn next(&mut self, lost: &mut dyn FnMut(String)) -> Option<Found> {
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
            let doubt = self.doubts.get(&key);
            let is_doubted = doubt.is_some_and(|numbers| numbers.contains(&sequence));
            match newest.and_then(|(_, value)| value) {
                Some(_) if is_uncertain => return Some(Found::Uncertain),
                Some(value) if is_doubted && self.kept == Kept::Meta => {
                    return Some(Found::Older(Space::Meta.key(&key), value.into()));
                }
                Some(_) if is_doubted => return Some(Found::Uncertain),
                Some(value) => return Some(self.found(&key, value)),
                None => {}
            }
        }
    }

    fn found(&self, key: &[u8], value: Vec<u8>) -> Found {
        let space = match self.kept {
            Kept::Meta => Space::Meta,
            Kept::Changes => Space::Changes,
            Kept::Tokens => Space::Tokens,
            Kept::Tables => {
                let parsed = TablePrefix::parse(key);
                let Some((id, rest)) =
                    parsed.and_then(|(id, len)| Some((id, key.get(usize::from(len)..)?)))
                else {
                    return Found::Foreign;
                };
                let space = Space::Table(id);
                return Found::Entry(space, space.key(rest), value.into());
            }
        };
        Found::Entry(space, space.key(key), value.into())
    }
}
