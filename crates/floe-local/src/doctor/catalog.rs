//! Checks the records of the catalog: each can be read, and they agree with each other.

use std::collections::BTreeMap;

use floe_store::Result;
use floe_store::table::StreamView;

use super::{Examiner, Finding, FindingKind, Stage, hex, visit};
use crate::kv::{Bytes, Space};
use crate::layout::damaged;
use crate::layout::record::{
    self, Counts, Instance, JobRecord, MetaKey, ShardRecord, StreamRecord, TableRecord,
};

/// The readable content of the catalog.
#[derive(Default)]
pub(super) struct Catalog {
    /// The ids assigned so far.
    instance: Option<Instance>,
    /// The counts of the tables.
    pub(super) counts: BTreeMap<u32, Counts>,
    /// Unfinished jobs.
    pub(super) jobs: Vec<JobRecord>,
    /// The latest sequence number that was assigned.
    pub(super) sequence: u64,
    /// The latest sequence number that was trimmed from any stream.
    pub(super) trimmed: u64,
    /// The streams.
    pub(super) streams: BTreeMap<u32, StreamRecord>,
    /// The shards of all streams, by stream and first sequence number.
    shards: BTreeMap<u32, Vec<ShardRecord>>,
    /// The latest sequence number that was trimmed from each stream.
    pub(super) trimmed_of: BTreeMap<u32, u64>,
    /// The keys of records that belong to a table.
    of_tables: Vec<(u32, Bytes)>,
    /// The keys of records that belong to a stream.
    of_streams: Vec<(u32, Bytes)>,
}

impl Catalog {
    /// The name of the table of a stream.
    pub(super) fn table_name(&self, stream: u32) -> Option<String> {
        let stream = self.streams.get(&stream)?;
        Some(stream.table_name.clone())
    }

    /// The shards of a stream.
    pub(super) fn shards_of(&self, stream: u32) -> &[ShardRecord] {
        self.shards.get(&stream).map_or(&[], Vec::as_slice)
    }

    /// Adds a record.
    fn add_record(&mut self, key: &Bytes, value: &[u8]) -> Result<()> {
        match record::decode_meta_key(key)? {
            MetaKey::Instance => self.instance = Some(Instance::decode(value)?),
            // The tables themselves are in the snapshot.
            MetaKey::Table => {
                let table = TableRecord::decode(value)?;
                if record::table_key(&table.definition.name) != **key {
                    return Err(damaged("table record under another table's key"));
                }
            }
            MetaKey::Counts(table) => {
                self.of_tables.push((table, key.clone()));
                self.counts.insert(table, Counts::decode(value)?);
            }
            MetaKey::Job => {
                let job = JobRecord::decode(value)?;
                self.of_tables.push((job.table, key.clone()));
                self.jobs.push(job);
            }
            MetaKey::Sequence => self.sequence = record::decode_sequence(value)?,
            MetaKey::Stream(id) => _ = self.streams.insert(id, StreamRecord::decode(value)?),
            MetaKey::Shard(stream) => {
                self.of_streams.push((stream, key.clone()));
                self.shards
                    .entry(stream)
                    .or_default()
                    .push(ShardRecord::decode(value)?);
            }
            MetaKey::Hold(stream) => {
                self.of_streams.push((stream, key.clone()));
                record::decode_sequence(value)?;
            }
            MetaKey::Trimmed(None) => self.trimmed = record::decode_sequence(value)?,
            MetaKey::Trimmed(Some(stream)) => {
                self.of_streams.push((stream, key.clone()));
                self.trimmed_of
                    .insert(stream, record::decode_sequence(value)?);
            }
        }
        Ok(())
    }
}

impl Examiner<'_> {
    /// Reads the catalog and checks that its records agree.
    pub(super) fn examine_catalog(&mut self) -> Result<Catalog> {
        self.begin(Stage::Catalog, None);
        let mut catalog = Catalog::default();
        self.visit_entries(Space::Meta, visit::unbounded(), |examiner, key, value| {
            examiner.report.checked.entries += 1;
            if let Err(error) = catalog.add_record(&key, &value) {
                let finding = Finding::new(FindingKind::Undecodable, error.to_string());
                examiner.record(finding.key(hex(&key)));
            }
            Ok(())
        })?;
        self.compare_ids(&catalog);
        self.compare_streams(&catalog);
        self.find_leftovers(&catalog)?;
        Ok(catalog)
    }

    /// Checks that every id is unique and was assigned.
    fn compare_ids(&mut self, catalog: &Catalog) {
        let Some(instance) = &catalog.instance else {
            self.record(Finding::new(
                FindingKind::Catalog,
                "the instance record is missing",
            ));
            return;
        };
        let mut ids: Vec<u32> = self
            .store
            .tables
            .iter()
            .flat_map(TableRecord::ids)
            .collect();
        ids.extend(catalog.streams.keys());
        ids.extend(catalog.jobs.iter().map(|job| job.id));
        ids.sort_unstable();
        for pair in ids.windows(2) {
            if let [id, same] = pair
                && id == same
            {
                let what = format!("an id is used twice: id={id}");
                self.record(Finding::new(FindingKind::Catalog, what));
            }
        }
        let next = instance.next_id;
        for id in ids.into_iter().filter(|id| *id >= next) {
            let what = format!("an id was never assigned: id={id} next={next}");
            self.record(Finding::new(FindingKind::Catalog, what));
        }
    }

    /// Checks that a table with streams enabled has a stream, and that an enabled stream has a table.
    fn compare_streams(&mut self, catalog: &Catalog) {
        let Self { store, report, .. } = self;
        let name = |view: Option<StreamView>| view.map_or("off", StreamView::as_str);
        let on = |stream: &&StreamRecord| stream.disabled.is_none();
        for table in &store.tables {
            let stream = table.latest_stream.and_then(|id| catalog.streams.get(&id));
            let (defined, found) = (
                table.definition.stream,
                stream.filter(on).map(|stream| stream.view),
            );
            if defined != found {
                let what = format!(
                    "the stream of a table differs from its definition: defined={} found={}",
                    name(defined),
                    name(found),
                );
                let finding = Finding::new(FindingKind::Catalog, what);
                report.add(finding.table(&table.definition.name));
            }
        }
        for stream in catalog.streams.values().filter(on) {
            let mut tables = store.tables.iter();
            if !tables.any(|table| table.latest_stream == Some(stream.id)) {
                let what = format!("an enabled stream has no table: stream={}", stream.id);
                report.add(Finding::new(FindingKind::Catalog, what).table(&stream.table_name));
            }
        }
    }

    /// Finds records of tables and streams that do not exist.
    fn find_leftovers(&mut self, catalog: &Catalog) -> Result<()> {
        let store = &self.store;
        let is_gone = |id: u32| !store.has_table(id) && !store.removing.contains(&id);
        let of_tables = catalog.of_tables.iter().filter(|(id, _)| is_gone(*id));
        let of_streams = catalog.of_streams.iter();
        let of_streams = of_streams.filter(|(id, _)| !catalog.streams.contains_key(id));
        let leftovers = of_tables.map(|left| ("table", left));
        let leftovers = leftovers.chain(of_streams.map(|left| ("stream", left)));
        for (owner, (id, key)) in leftovers.collect::<Vec<_>>() {
            let what = format!("a record belongs to no {owner}: id={id}");
            let at = self.record(Finding::new(FindingKind::Catalog, what).key(hex(key)));
            // Ids are never reused, so it cannot belong to anything later.
            self.remove_keys(Space::Meta, vec![(at, key.clone())])?;
        }
        Ok(())
    }
}
