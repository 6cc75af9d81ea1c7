//! The records of the catalog: each can be read, and they agree with each other.

use std::collections::BTreeMap;

use floe_store::Result;

use super::{Examiner, Finding, FindingKind, Stage, hex, walk};
use crate::group::Effect;
use crate::kv::{Bytes, Space};
use crate::layout::damaged;
use crate::layout::record::{
    self, Counts, Instance, JobRecord, MetaKey, ShardRecord, StreamRecord, TableRecord,
};

/// What the catalog says, as far as it can be read.
#[derive(Default)]
pub(super) struct Catalog {
    /// The ids given out.
    instance: Option<Instance>,
    /// How much is in the tables.
    pub(super) counts: BTreeMap<u32, Counts>,
    /// Work that is not done.
    pub(super) jobs: Vec<JobRecord>,
    /// The last sequence number given out.
    pub(super) sequence: u64,
    /// The last sequence number that was trimmed from any stream.
    pub(super) trimmed: u64,
    /// The streams.
    pub(super) streams: BTreeMap<u32, StreamRecord>,
    /// The shards of all streams, by stream and first sequence number.
    pub(super) shards: BTreeMap<u32, Vec<ShardRecord>>,
    /// The last sequence number that was trimmed from each stream.
    pub(super) trimmed_of: BTreeMap<u32, u64>,
    /// The keys of records that belong to a table.
    of_tables: Vec<(u32, Bytes)>,
    /// The keys of records that belong to a stream.
    of_streams: Vec<(u32, Bytes)>,
}

impl Catalog {
    /// Takes a record in.
    fn take(&mut self, key: &Bytes, value: &[u8]) -> Result<()> {
        match record::decode_meta_key(key)? {
            MetaKey::Instance => self.instance = Some(Instance::decode(value)?),
            // What tables there are, the moment says.
            MetaKey::Table => {
                let table = TableRecord::decode(value)?;
                if record::table_key(&table.definition.name) != **key {
                    return Err(damaged("table record under another name"));
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
    /// Reads the catalog and compares its records with each other.
    pub(super) fn examine_catalog(&mut self) -> Result<Catalog> {
        self.begin(Stage::Catalog, None);
        let mut catalog = Catalog::default();
        self.walk(Space::Meta, walk::everything(), |examiner, key, value| {
            examiner.report.checked.entries += 1;
            if let Err(error) = catalog.take(&key, &value) {
                let finding = Finding::new(FindingKind::Undecodable, error.to_string());
                examiner.find(finding.key(hex(&key)));
            }
            Ok(())
        })?;
        self.compare_ids(&catalog);
        self.compare_streams(&catalog);
        self.find_leftovers(&catalog)?;
        Ok(catalog)
    }

    /// Every id was given out once.
    fn compare_ids(&mut self, catalog: &Catalog) {
        let Some(instance) = &catalog.instance else {
            self.find(Finding::new(
                FindingKind::Catalog,
                "the record of the store itself is missing",
            ));
            return;
        };
        let mut ids = Vec::new();
        for table in &self.moment.tables {
            let record = table;
            ids.push(record.id);
            ids.extend(record.indexes.iter().map(|index| index.id));
            ids.extend(record.removing.iter().map(|(id, _)| *id));
            ids.extend(record.expiry);
        }
        ids.extend(catalog.streams.keys());
        ids.extend(catalog.jobs.iter().map(|job| job.id));
        ids.sort_unstable();
        let twice = ids.windows(2).filter(|pair| pair.first() == pair.last());
        let twice = twice
            .filter_map(|pair| pair.first())
            .map(|id| format!("an id was given out twice: id={id}"));
        let next = instance.next_id;
        let ahead = ids.iter().filter(|id| **id >= next);
        let ahead = ahead.map(|id| format!("an id was not given out yet: id={id} next={next}"));
        for what in twice.chain(ahead).collect::<Vec<_>>() {
            self.find(Finding::new(FindingKind::Catalog, what));
        }
    }

    /// A table whose stream is on has one, and a stream that is on has its table.
    fn compare_streams(&mut self, catalog: &Catalog) {
        let mut findings = Vec::new();
        let finding =
            |table: &str, what: String| Finding::new(FindingKind::Catalog, what).table(table);
        for table in &self.moment.tables {
            let record = table;
            let stream = record.latest_stream.and_then(|id| catalog.streams.get(&id));
            let on = stream
                .filter(|stream| stream.disabled.is_none())
                .map(|stream| stream.view);
            if record.definition.stream != on {
                let name = |view: Option<floe_store::table::StreamView>| {
                    view.map_or("off", |view| view.as_str())
                };
                findings.push(finding(
                    &record.definition.name,
                    format!(
                        "the stream of a table is not as its definition says: defined={} found={}",
                        name(record.definition.stream),
                        name(on),
                    ),
                ));
            }
        }
        for stream in catalog
            .streams
            .values()
            .filter(|stream| stream.disabled.is_none())
        {
            let mut tables = self.moment.tables.iter();
            if !tables.any(|table| table.latest_stream == Some(stream.id)) {
                let what = format!("a stream is on without a table: stream={}", stream.id);
                findings.push(finding(&stream.table_name, what));
            }
        }
        for finding in findings {
            self.find(finding);
        }
    }

    /// Records of tables and streams that are not there.
    fn find_leftovers(&mut self, catalog: &Catalog) -> Result<()> {
        let mut leftovers = Vec::new();
        for (id, key) in &catalog.of_tables {
            if !self.moment.has_table(*id) && !self.moment.removing.contains(id) {
                leftovers.push((
                    format!("a record belongs to no table: id={id}"),
                    key.clone(),
                ));
            }
        }
        for (id, key) in &catalog.of_streams {
            if !catalog.streams.contains_key(id) {
                leftovers.push((
                    format!("a record belongs to no stream: id={id}"),
                    key.clone(),
                ));
            }
        }
        for (what, key) in leftovers {
            let at = self.find(Finding::new(FindingKind::Catalog, what).key(hex(&key)));
            if let Some(committer) = self.repair {
                // No id is ever used again, so it will not belong to anything later.
                committer
                    .run(Effect::Frees, move |group| {
                        group.remove(Space::Meta, key);
                        Ok(())
                    })
                    .wait()?;
                self.report.set_repaired(at);
            }
        }
        Ok(())
    }
}
