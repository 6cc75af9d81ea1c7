//! Copies everything that is intact in a damaged store into a new one, and lists what is lost.
//!
//! The damaged store is only read: file by file, without the help of the lists that name its files, so that damage
//! anywhere costs what was in the damaged part and nothing else. The doctor rebuilds derived data in the copy.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

use floe_store::{Error, Result};

use super::{Checked, Finding, Progress, Stage};
use crate::LocalEngine;
use crate::backup::{begin_journal, write_copy};
use crate::dir::{LOCK_FILE, SEAL_FILE, data_of};
use crate::engine::Running;
use crate::files::KEYSPACES_FOLDER;
use crate::kv::raw::{Found, Kept, Raw};
use crate::kv::{Bytes, Kv, Space, lock};
use crate::layout::key::{DEFINITION_KEY, EntryKind};
use crate::layout::record::{
    self, Counts, Instance, JobRecord, MetaKey, ShardRecord, StreamRecord, TableRecord, TokenRecord,
};
use crate::layout::{change, item};
use crate::options::Options;
use crate::private::LockedFile;
use crate::seal;

/// The most losses that a report lists one by one.
const LOST_MAX: usize = 1000;

/// How many entries lie between two reports of progress.
const PROGRESS_ENTRIES: u64 = 10_000;

/// What a salvage copied, and what is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Tables in the new store.
    pub tables: u64,
    /// Items in the new store.
    pub items: u64,
    /// All entries that were copied: items, index entries, change records and all else.
    pub entries: u64,
    /// Keys of which a newer version may be lost. They were left out, but for records of the catalog, which may be older.
    pub uncertain: u64,
    /// What is lost: the first thousand.
    pub lost: Vec<String>,
    /// How many losses there are in all.
    pub lost_total: u64,
    /// What is wrong in the new store and could not be put right: the first thousand.
    pub findings: Vec<Finding>,
}

impl SalvageReport {
    /// Whether nothing is lost.
    pub const fn is_complete(&self) -> bool {
        self.lost_total == 0 && self.uncertain == 0
    }

    fn lose(&mut self, what: String) {
        self.lost_total += 1;
        if self.lost.len() < LOST_MAX {
            self.lost.push(what);
        }
    }
}

/// Copies everything that is intact in the store at `dir` into a new store at `target`. Nothing in `dir` is changed, and
/// it need not be a store that can be opened: `data/` with its files is enough.
///
/// # Errors
///
/// [`Error::Storage`] when there is nothing of a store in `dir`, when it is in use, or when the copy cannot be written.
/// What cannot be read is in the report.
pub fn salvage(
    dir: impl AsRef<Path>,
    target: impl AsRef<Path>,
    mut progress: impl FnMut(&Progress<'_>),
) -> Result<SalvageReport> {
    let (dir, target) = (dir.as_ref(), target.as_ref());
    let data = data_of(dir);
    if !data.join(KEYSPACES_FOLDER).is_dir() {
        return Err(Error::Storage(format!(
            "there is nothing of a store in the directory: missing=data/{KEYSPACES_FOLDER} directory={}",
            dir.display()
        )));
    }
    let in_use = |_| {
        Error::Storage(format!(
            "the directory is in use: directory={}",
            dir.display()
        ))
    };
    let _locked = (
        LockedFile::share(&dir.join(LOCK_FILE)).map_err(in_use)?,
        lock::share(&data)?,
    );
    write_copy(target, Some(dir), |staging| {
        let mut salvage = Salvage {
            report: SalvageReport::default(),
            progress: &mut progress,
        };
        let is_closed = salvage.compare_with_seal(dir, &data);
        salvage.copy(&data, is_closed, &staging.data())?;
        Ok(salvage.report)
    })
}

struct Salvage<'a> {
    report: SalvageReport,
    progress: &'a mut dyn FnMut(&Progress<'_>),
}

impl Salvage<'_> {
    /// Reports how the journals differ from what they were when the store was closed, and whether it was: what is left of
    /// them need not show it.
    fn compare_with_seal(&mut self, dir: &Path, data: &Path) -> bool {
        let mismatches = match std::fs::read_to_string(dir.join(SEAL_FILE)) {
            Ok(seal) => seal::mismatches(&seal, data),
            Err(e) if e.kind() == ErrorKind::NotFound => return false,
            Err(e) => Err(Error::Storage(format!("the seal cannot be read: {e}"))),
        };
        match mismatches {
            Ok(mismatches) => {
                for mismatch in mismatches {
                    self.report.lose(format!(
                        "a journal was changed since the store was closed, so what it wrote last is older: {mismatch}"
                    ));
                }
            }
            Err(error) => self.report.lose(format!(
                "a journal that lost its end would not be noticed: {error}"
            )),
        }
        true
    }

    fn copy(&mut self, data: &Path, is_closed: bool, target: &Path) -> Result<()> {
        let raw = Raw::read(data, is_closed, &mut |what| self.report.lose(what));
        let catalog = self.read_catalog(&raw);
        let options = Options::new().background(false);
        let kv = Kv::create(target, &options.kv)?;
        self.report.tables = catalog.tables.len() as u64;
        let known = KnownTables {
            ids: catalog.tables.values().map(|table| table.id).collect(),
            removing: catalog.removing.clone(),
        };
        let meta = catalog.into_entries();
        let meta = meta.into_iter().map(|(key, value)| {
            let key = Space::Meta.key(&key);
            Ok((Space::Meta, key, Bytes::from(value)))
        });
        kv.load(meta)?;
        for kept in [Kept::Changes, Kept::Tokens, Kept::Tables] {
            self.copy_entries(&raw, kept, &known, &kv)?;
        }
        begin_journal(&kv)?;
        kv.persist()?;
        self.repair(kv, options)
    }

    /// Copies what decodes, and counts what does not.
    fn copy_entries(&mut self, raw: &Raw, kept: Kept, known: &KnownTables, kv: &Kv) -> Result<()> {
        let mut strangers: BTreeMap<u32, u64> = BTreeMap::new();
        let mut undecodable: BTreeMap<String, u64> = BTreeMap::new();
        let mut entries = raw.entries(kept, &mut |what| self.report.lose(what));
        let next = std::iter::from_fn(|| {
            loop {
                let found = entries.next(&mut |what| self.report.lose(what))?;
                match found {
                    Found::Entry(Space::Table(id), _, _) if known.removing.contains(&id) => {}
                    Found::Entry(Space::Table(id), _, _) if !known.ids.contains(&id) => {
                        *strangers.entry(id).or_default() += 1;
                    }
                    Found::Entry(space, key, value) => {
                        if let Err(error) = check(space, &key, &value) {
                            *undecodable.entry(error.to_string()).or_default() += 1;
                            continue;
                        }
                        self.count(space, &key);
                        return Some(Ok((space, key, value)));
                    }
                    Found::Uncertain | Found::Older(..) => self.report.uncertain += 1,
                    Found::Foreign => {
                        *undecodable
                            .entry("a key is damaged".to_owned())
                            .or_default() += 1;
                    }
                }
            }
        });
        kv.load(next)?;
        for (what, count) in undecodable {
            self.report.lose(format!("{what}: entries={count}"));
        }
        for (id, count) in strangers {
            self.report.lose(format!(
                "the definition of a table is lost, so its keys cannot be read: table_id={id} entries={count}"
            ));
        }
        Ok(())
    }

    fn count(&mut self, space: Space, key: &[u8]) {
        self.report.entries += 1;
        let is_table = matches!(space, Space::Table(_));
        if is_table && EntryKind::of(key) == Some(EntryKind::Item) {
            self.report.items += 1;
        }
        if self.report.entries.is_multiple_of(PROGRESS_ENTRIES) {
            let checked = Checked {
                entries: self.report.entries,
                items: self.report.items,
                ..Checked::default()
            };
            (self.progress)(&Progress {
                stage: Stage::Salvage,
                table: None,
                checked,
            });
        }
    }

    /// Makes anew in the copy what follows from the items.
    fn repair(&mut self, kv: Kv, options: Options) -> Result<()> {
        let running = Running::start(kv, options, None, None)?;
        let engine = LocalEngine { running };
        let repaired = engine.doctor_with(true, |examined| (self.progress)(examined))?;
        engine.close()?;
        let findings = repaired.findings.into_iter();
        self.report.findings = findings.filter(|finding| !finding.repaired).collect();
        Ok(())
    }

    /// Reads the catalog, and what the tables say of themselves.
    fn read_catalog(&mut self, raw: &Raw) -> Catalog {
        let mut catalog = Catalog::default();
        let mut entries = raw.entries(Kept::Meta, &mut |what| self.report.lose(what));
        while let Some(found) = entries.next(&mut |what| self.report.lose(what)) {
            if let Found::Older(..) = &found {
                self.report.uncertain += 1;
            }
            match found {
                Found::Entry(_, key, value) | Found::Older(key, value) => {
                    if let Err(error) = catalog.take(&key, &value) {
                        self.report
                            .lose(format!("a record of the catalog: {error}"));
                    }
                }
                Found::Uncertain => self.report.uncertain += 1,
                Found::Foreign => {}
            }
        }
        // What cannot be read is reported when it is copied.
        let mut entries = raw.entries(Kept::Tables, &mut |_| {});
        while let Some(found) = entries.next(&mut |_| {}) {
            if let Found::Entry(Space::Table(id), key, value) = found {
                catalog.see(id);
                if *key == DEFINITION_KEY
                    && let Ok(copy) = TableRecord::decode(&value)
                {
                    catalog.take_copy(copy);
                }
            }
        }
        catalog.drop_streams_without_shards(&mut |what| self.report.lose(what));
        catalog
    }
}

/// The tables that the catalog names.
struct KnownTables {
    ids: BTreeSet<u32>,
    /// Those that were deleted and whose keys were being removed.
    removing: BTreeSet<u32>,
}

/// Checks that an entry can be read.
fn check(space: Space, key: &[u8], value: &[u8]) -> Result<()> {
    match space {
        Space::Meta => Ok(()),
        Space::Changes => {
            let (_, sequence) = change::decode_key(key)?;
            change::decode(value, sequence, 0).map(drop)
        }
        Space::Tokens => TokenRecord::decode(value).map(drop),
        Space::Table(_) => match EntryKind::of(key) {
            Some(EntryKind::Item) => item::decode_sized(value).map(drop),
            // What follows from items is compared with them afterwards.
            Some(_) => Ok(()),
            None if *key == DEFINITION_KEY => Ok(()),
            None => Err(crate::layout::damaged("key of no kind")),
        },
    }
}

/// The intact records of the catalog.
#[derive(Default)]
struct Catalog {
    tables: BTreeMap<String, TableRecord>,
    instance: Option<Instance>,
    streams: BTreeMap<u32, StreamRecord>,
    /// Streams that have a shard.
    with_shards: BTreeSet<u32>,
    /// Tables that were deleted and whose keys were being removed.
    removing: BTreeSet<u32>,
    others: BTreeMap<Vec<u8>, Vec<u8>>,
    /// More than every id that was seen.
    next_id: u32,
}

impl Catalog {
    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match record::decode_meta_key(key)? {
            MetaKey::Instance => {
                let instance = Instance::decode(value)?;
                self.next_id = self.next_id.max(instance.next_id);
                self.instance = Some(instance);
            }
            MetaKey::Table => {
                let table = TableRecord::decode(value)?;
                self.insert(table);
            }
            MetaKey::Stream(id) => {
                self.see(id);
                self.streams.insert(id, StreamRecord::decode(value)?);
            }
            MetaKey::Shard(stream) => {
                ShardRecord::decode(value)?;
                self.with_shards.insert(stream);
                self.keep(key, value);
            }
            MetaKey::Job => {
                let job = JobRecord::decode(value)?;
                self.see(job.id);
                if job.work == record::Work::RemoveTable {
                    self.removing.insert(job.table);
                }
                self.keep(key, value);
            }
            MetaKey::Counts(_) => {
                Counts::decode(value)?;
                self.keep(key, value);
            }
            MetaKey::Sequence | MetaKey::Hold(_) | MetaKey::Trimmed(_) => {
                record::decode_sequence(value)?;
                self.keep(key, value);
            }
        }
        Ok(())
    }

    /// Takes note of an id that was given out.
    fn see(&mut self, id: u32) {
        self.next_id = self.next_id.max(id.saturating_add(1));
    }

    fn insert(&mut self, table: TableRecord) {
        for id in table.ids().chain(table.latest_stream) {
            self.see(id);
        }
        self.tables.insert(table.definition.name.clone(), table);
    }

    fn keep(&mut self, key: &[u8], value: &[u8]) {
        self.others.insert(key.to_vec(), value.to_vec());
    }

    /// Takes the copy of a table's record if the catalog lost the record itself. A table that was deleted leaves a copy
    /// until its keys are removed.
    fn take_copy(&mut self, copy: TableRecord) {
        let is_known = self.tables.values().any(|table| table.id == copy.id);
        let is_removed = self.removing.contains(&copy.id);
        if !is_known && !is_removed && !self.tables.contains_key(&copy.definition.name) {
            self.insert(copy);
        }
    }

    /// A stream that is on needs a shard, and a table whose stream is on needs the stream.
    fn drop_streams_without_shards(&mut self, lost: &mut dyn FnMut(String)) {
        let with_shards = &self.with_shards;
        self.streams.retain(|id, stream| {
            let is_whole = stream.disabled.is_some() || with_shards.contains(id);
            if !is_whole {
                lost(format!(
                    "the shards of a change stream are lost, so it is switched off: table={}",
                    stream.table_name
                ));
            }
            is_whole
        });
        for table in self.tables.values_mut() {
            let stream = table.latest_stream.and_then(|id| self.streams.get(&id));
            let is_on = stream.is_some_and(|stream| stream.disabled.is_none());
            if table.definition.stream.is_some() && !is_on {
                table.definition.stream = None;
            }
            if stream.is_none() {
                table.latest_stream = None;
            }
        }
    }

    /// The records of the new catalog, in the order of their keys.
    fn into_entries(mut self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let options = Options::new();
        let mut instance = self.instance.unwrap_or_else(|| Instance::new(&options.env));
        instance.next_id = instance.next_id.max(self.next_id);
        self.others
            .insert(record::INSTANCE_KEY.to_vec(), instance.encode());
        for (name, table) in self.tables {
            self.others.insert(record::table_key(&name), table.encode());
        }
        for (id, stream) in self.streams {
            self.others.insert(record::stream_key(id), stream.encode());
        }
        self.others
    }
}
