//! Copies everything intact in a damaged store to a new one, and lists what is lost.
//!
//! The damaged store is only read: file by file, without relying on its lists of files, so that damage loses only the
//! damaged part. The doctor rebuilds derived data in the copy.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

use floe_store::{Error, Result};

use super::{Checked, DoctorProgress, Finding, Stage};
use crate::LocalEngine;
use crate::backup::{begin_journal, write_copy};
use crate::dir::{LOCK_FILE, SEAL_FILE, data_of};
use crate::engine::RunningEngine;
use crate::files::KEYSPACES_FOLDER;
use crate::kv::raw::{RawEntry, RawFiles, SpaceKind};
use crate::kv::{Bytes, Kv, Space, lock};
use crate::layout::key::{DEFINITION_KEY, EntryKind};
use crate::layout::record::{
    self, Counts, Instance, JobRecord, MetaKey, ShardRecord, StreamRecord, TableRecord, TokenRecord,
};
use crate::layout::{change, item};
use crate::options::Options;
use crate::private::LockedFile;
use crate::seal;

/// Maximum number of losses that a report lists.
const LOST_MAX: usize = 1000;

/// Number of entries between two progress reports.
const PROGRESS_ENTRIES: u64 = 10_000;

/// The result of a salvage: what was copied, and what is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Number of tables in the new store.
    pub tables: u64,
    /// Number of items in the new store.
    pub items: u64,
    /// Number of all copied entries: items, index entries, change records and everything else.
    pub entries: u64,
    /// Number of keys whose newer version may be lost. They are omitted, except records of the catalog, which may be
    /// outdated.
    pub uncertain: u64,
    /// What is lost: the first thousand.
    pub lost: Vec<String>,
    /// Total number of losses.
    pub lost_total: u64,
    /// Problems in the new store that could not be repaired: the first thousand.
    pub findings: Vec<Finding>,
}

impl SalvageReport {
    /// Whether nothing is lost.
    pub const fn is_complete(&self) -> bool {
        self.lost_total == 0 && self.uncertain == 0
    }

    fn record_loss(&mut self, what: String) {
        self.lost_total += 1;
        if self.lost.len() < LOST_MAX {
            self.lost.push(what);
        }
    }
}

/// Copies everything intact in the store at `dir` to a new store at `target`. Changes nothing in `dir`, which need not
/// be a store that can be opened: `data/` with its files is enough.
///
/// # Errors
///
/// [`Error::Storage`] if `dir` contains no part of a store or is in use, or if the copy cannot be written. Unreadable
/// data is listed in the report.
pub fn salvage(
    dir: impl AsRef<Path>,
    target: impl AsRef<Path>,
    mut progress: impl FnMut(&DoctorProgress<'_>),
) -> Result<SalvageReport> {
    let (dir, target) = (dir.as_ref(), target.as_ref());
    let data = data_of(dir);
    if !data.join(KEYSPACES_FOLDER).is_dir() {
        return Err(Error::Storage(format!(
            "the directory contains no store: missing=data/{KEYSPACES_FOLDER} directory={}",
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
        let mut salvage = StoreSalvage {
            report: SalvageReport::default(),
            progress: &mut progress,
        };
        let is_closed = salvage.compare_with_seal(dir, &data);
        salvage.copy(&data, is_closed, &staging.data())?;
        Ok(salvage.report)
    })
}

struct StoreSalvage<'a> {
    report: SalvageReport,
    progress: &'a mut dyn FnMut(&DoctorProgress<'_>),
}

impl StoreSalvage<'_> {
    /// Reports how the journals have changed since the store was closed, which their remaining content may not show.
    /// Returns whether the store was closed.
    fn compare_with_seal(&mut self, dir: &Path, data: &Path) -> bool {
        let mismatches = match std::fs::read_to_string(dir.join(SEAL_FILE)) {
            Ok(seal) => seal::mismatches(&seal, data),
            Err(e) if e.kind() == ErrorKind::NotFound => return false,
            Err(e) => Err(Error::Storage(format!("the seal cannot be read: {e}"))),
        };
        match mismatches {
            Ok(mismatches) => {
                for mismatch in mismatches {
                    self.report.record_loss(format!(
                        "a journal has changed since the store was closed, so its latest writes may be lost: {mismatch}"
                    ));
                }
            }
            Err(error) => self
                .report
                .record_loss(format!("truncated journals cannot be detected: {error}")),
        }
        true
    }

    fn copy(&mut self, data: &Path, is_closed: bool, target: &Path) -> Result<()> {
        let raw = RawFiles::read(data, is_closed, &mut |what| self.report.record_loss(what));
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
        for kind in [SpaceKind::Changes, SpaceKind::Tokens, SpaceKind::Tables] {
            self.copy_entries(&raw, kind, &known, &kv)?;
        }
        begin_journal(&kv)?;
        kv.persist()?;
        self.repair(kv, options)
    }

    /// Copies the entries that can be decoded, and reports the number of others.
    fn copy_entries(
        &mut self,
        raw: &RawFiles,
        kind: SpaceKind,
        known: &KnownTables,
        kv: &Kv,
    ) -> Result<()> {
        let mut unknown_tables: BTreeMap<u32, u64> = BTreeMap::new();
        let mut undecodable: BTreeMap<String, u64> = BTreeMap::new();
        let mut entries = raw.entries(kind, &mut |what| self.report.record_loss(what));
        let next = std::iter::from_fn(|| {
            loop {
                let found = entries.next(&mut |what| self.report.record_loss(what))?;
                match found {
                    RawEntry::Entry(Space::Table(id), _, _) if known.removing.contains(&id) => {}
                    RawEntry::Entry(Space::Table(id), _, _) if !known.ids.contains(&id) => {
                        *unknown_tables.entry(id).or_default() += 1;
                    }
                    RawEntry::Entry(space, key, value) => {
                        if let Err(error) = check(space, &key, &value) {
                            *undecodable.entry(error.to_string()).or_default() += 1;
                            continue;
                        }
                        self.count(space, &key);
                        return Some(Ok((space, key, value)));
                    }
                    RawEntry::Uncertain | RawEntry::Outdated(..) => self.report.uncertain += 1,
                    RawEntry::Foreign => {
                        *undecodable
                            .entry("a key is damaged".to_owned())
                            .or_default() += 1;
                    }
                }
            }
        });
        kv.load(next)?;
        for (what, count) in undecodable {
            self.report.record_loss(format!("{what}: entries={count}"));
        }
        for (id, count) in unknown_tables {
            self.report.record_loss(format!(
                "the definition of a table is lost, so its entries are lost: table_id={id} entries={count}"
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
            (self.progress)(&DoctorProgress {
                stage: Stage::Salvage,
                table: None,
                checked,
            });
        }
    }

    /// Rebuilds derived data in the copy.
    fn repair(&mut self, kv: Kv, options: Options) -> Result<()> {
        let running = RunningEngine::start(kv, options, None, None)?;
        let engine = LocalEngine { running };
        let repaired = engine.doctor_with(true, |examined| (self.progress)(examined))?;
        engine.close()?;
        let findings = repaired.findings.into_iter();
        self.report.findings = findings.filter(|finding| !finding.repaired).collect();
        Ok(())
    }

    /// Reads the catalog, and the copies of table records that are stored with their items.
    fn read_catalog(&mut self, raw: &RawFiles) -> Catalog {
        let mut catalog = Catalog::default();
        let mut entries = raw.entries(SpaceKind::Meta, &mut |what| self.report.record_loss(what));
        while let Some(found) = entries.next(&mut |what| self.report.record_loss(what)) {
            if let RawEntry::Outdated(..) = &found {
                self.report.uncertain += 1;
            }
            match found {
                RawEntry::Entry(_, key, value) | RawEntry::Outdated(key, value) => {
                    if let Err(error) = catalog.add_record(&key, &value) {
                        self.report
                            .record_loss(format!("a catalog record is damaged: {error}"));
                    }
                }
                RawEntry::Uncertain => self.report.uncertain += 1,
                RawEntry::Foreign => {}
            }
        }
        // Unreadable parts are reported when the tables are copied.
        let mut entries = raw.entries(SpaceKind::Tables, &mut |_| {});
        while let Some(found) = entries.next(&mut |_| {}) {
            if let RawEntry::Entry(Space::Table(id), key, value) = found {
                catalog.note_id(id);
                if *key == DEFINITION_KEY
                    && let Ok(copy) = TableRecord::decode(&value)
                {
                    catalog.add_copy(copy);
                }
            }
        }
        catalog.drop_streams_without_shards(&mut |what| self.report.record_loss(what));
        catalog
    }
}

/// The tables in the catalog.
struct KnownTables {
    ids: BTreeSet<u32>,
    /// Deleted tables whose data was being removed.
    removing: BTreeSet<u32>,
}

/// Checks that an entry can be decoded.
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
            // Derived entries are compared with the items afterwards.
            Some(_) => Ok(()),
            None if *key == DEFINITION_KEY => Ok(()),
            None => Err(crate::layout::damaged("key of unknown kind")),
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
    /// Deleted tables whose data was being removed.
    removing: BTreeSet<u32>,
    other_records: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Greater than every id found so far.
    next_id: u32,
}

impl Catalog {
    fn add_record(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
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
                self.note_id(id);
                self.streams.insert(id, StreamRecord::decode(value)?);
            }
            MetaKey::Shard(stream) => {
                ShardRecord::decode(value)?;
                self.with_shards.insert(stream);
                self.keep(key, value);
            }
            MetaKey::Job => {
                let job = JobRecord::decode(value)?;
                self.note_id(job.id);
                if job.kind == record::JobKind::RemoveTable {
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

    /// Records an id that is in use.
    fn note_id(&mut self, id: u32) {
        self.next_id = self.next_id.max(id.saturating_add(1));
    }

    fn insert(&mut self, table: TableRecord) {
        for id in table.ids().chain(table.latest_stream) {
            self.note_id(id);
        }
        self.tables.insert(table.definition.name.clone(), table);
    }

    fn keep(&mut self, key: &[u8], value: &[u8]) {
        self.other_records.insert(key.to_vec(), value.to_vec());
    }

    /// Adds the copy of a table's record if the catalog lost the record itself. A deleted table also leaves a copy,
    /// until its data is removed.
    fn add_copy(&mut self, copy: TableRecord) {
        let is_known = self.tables.values().any(|table| table.id == copy.id);
        let is_removed = self.removing.contains(&copy.id);
        if !is_known && !is_removed && !self.tables.contains_key(&copy.definition.name) {
            self.insert(copy);
        }
    }

    /// Removes enabled streams without shards, and disables streams of tables whose stream was removed.
    fn drop_streams_without_shards(&mut self, lost: &mut dyn FnMut(String)) {
        let with_shards = &self.with_shards;
        self.streams.retain(|id, stream| {
            let is_whole = stream.disabled.is_some() || with_shards.contains(id);
            if !is_whole {
                lost(format!(
                    "the shards of a change stream are lost, so the stream is disabled: table={}",
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

    /// The records of the new catalog, ordered by key.
    fn into_entries(mut self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let options = Options::new();
        let mut instance = self.instance.unwrap_or_else(|| Instance::new(&options.env));
        instance.next_id = instance.next_id.max(self.next_id);
        self.other_records
            .insert(record::INSTANCE_KEY.to_vec(), instance.encode());
        for (name, table) in self.tables {
            self.other_records
                .insert(record::table_key(&name), table.encode());
        }
        for (id, stream) in self.streams {
            self.other_records
                .insert(record::stream_key(id), stream.encode());
        }
        self.other_records
    }
}
