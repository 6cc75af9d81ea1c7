//! The tables: definition, id, and counts.
//!
//! Every operation reads the catalog. Only the committer changes it: it publishes a new [`Table`] after the change is
//! durable. A [`Table`] is immutable; one that was replaced or removed is marked as retired, and callers that hold it
//! look up the current one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use floe_store::TableDef;
use floe_store::table::{IndexDef, IndexDescription, StreamHandle, TableDescription, TableStatus};

use crate::kv::Space;
use crate::layout::record::{Count, Counts, IndexRecord, StreamRecord, TableRecord};
use crate::locks::{lock, read, write};
use crate::options::Options;
use crate::streams::{stream_arn, stream_label};

/// One version of a table's definition.
pub(crate) struct Table {
    /// The table's record in the catalog.
    pub(crate) record: TableRecord,
    /// Counts of items and bytes; shared by all versions of the definition.
    counts: Arc<Mutex<Counts>>,
    retired: AtomicBool,
}

impl Table {
    /// Creates a table that was not in the catalog before.
    pub(crate) fn new(record: TableRecord, counts: Counts) -> Self {
        Self {
            record,
            counts: Arc::new(Mutex::new(counts)),
            retired: AtomicBool::new(false),
        }
    }

    /// Returns the same table with another record.
    pub(crate) fn with_record(&self, record: TableRecord) -> Self {
        Self {
            record,
            counts: self.counts.clone(),
            retired: AtomicBool::new(false),
        }
    }

    /// The definition, without the indexes that are being removed.
    pub(crate) const fn definition(&self) -> &TableDef {
        &self.record.definition
    }

    /// The space of its items, index entries and expiry entries.
    pub(crate) const fn space(&self) -> Space {
        Space::Table(self.record.id)
    }

    /// The id of the table.
    pub(crate) const fn id(&self) -> u32 {
        self.record.id
    }

    /// Whether the catalog now holds another definition, or none.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// The indexes with their ids, in the order of the definition.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = (&IndexDef, IndexRecord)> {
        let records = self.record.indexes.iter().copied();
        self.record.definition.indexes.iter().zip(records)
    }

    /// The id and state of an index.
    pub(crate) fn index_record(&self, name: &str) -> Option<IndexRecord> {
        let mut indexes = self.indexes();
        indexes.find_map(|(index, record)| (index.name == name).then_some(record))
    }

    /// The stream that receives changes, if streams are enabled.
    pub(crate) fn stream(&self) -> Option<u32> {
        self.record.definition.stream?;
        self.record.latest_stream
    }

    /// The counts of items and bytes.
    pub(crate) fn counts(&self) -> Counts {
        lock(&self.counts).clone()
    }

    /// Sets the counts, after a commit.
    pub(crate) fn set_counts(&self, counts: Counts) {
        *lock(&self.counts) = counts;
    }

    /// Whether an index is being filled or removed.
    pub(crate) fn is_updating(&self) -> bool {
        !self.record.removing.is_empty() || self.record.indexes.iter().any(|index| index.filling)
    }

    /// Describes the table, with its latest stream.
    pub(crate) fn describe(
        &self,
        options: &Options,
        latest_stream: Option<&StreamRecord>,
    ) -> TableDescription {
        let counts = self.counts();
        let arn = options.table_arn(&self.definition().name);
        let describe_index = |index: &IndexDef, id: u32, status, backfilling| {
            let Count { items, bytes } = counts.indexes.get(&id).copied().unwrap_or_default();
            IndexDescription {
                name: index.name.clone(),
                status,
                backfilling,
                item_count: items,
                size_bytes: bytes,
                arn: format!("{arn}/index/{}", index.name),
            }
        };
        let mut definition = self.definition().clone();
        let mut indexes = Vec::new();
        for (index, record) in self.indexes() {
            let status = if record.filling {
                TableStatus::Creating
            } else {
                TableStatus::Active
            };
            indexes.push(describe_index(index, record.id, status, record.filling));
        }
        for (id, index) in &self.record.removing {
            definition.indexes.push(index.clone());
            indexes.push(describe_index(index, *id, TableStatus::Deleting, false));
        }
        TableDescription {
            status: if self.is_updating() {
                TableStatus::Updating
            } else {
                TableStatus::Active
            },
            definition,
            created: self.record.created,
            item_count: counts.table.items,
            size_bytes: counts.table.bytes,
            id: self.record.uuid.clone(),
            indexes,
            latest_stream: latest_stream.map(|stream| StreamHandle {
                arn: stream_arn(options, stream),
                label: stream_label(stream.created),
            }),
            history: self.record.history,
            arn,
        }
    }
}

/// All tables by name.
#[derive(Default)]
pub(crate) struct Catalog {
    tables: RwLock<HashMap<String, Arc<Table>>>,
}

impl Catalog {
    /// The table with this name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Table>> {
        read(&self.tables).get(name).cloned()
    }

    /// The table with this id.
    pub(crate) fn get_by_id(&self, id: u32) -> Option<Arc<Table>> {
        read(&self.tables)
            .values()
            .find(|table| table.id() == id)
            .cloned()
    }

    /// All tables, in no order.
    pub(crate) fn tables(&self) -> Vec<Arc<Table>> {
        read(&self.tables).values().cloned().collect()
    }

    /// The names of all tables, ascending.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = read(&self.tables).keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Publishes a table. A previous one with the same name is retired.
    pub(crate) fn insert(&self, table: Arc<Table>) {
        let name = table.definition().name.clone();
        if let Some(before) = write(&self.tables).insert(name, table) {
            before.retired.store(true, Ordering::Release);
        }
    }

    /// Removes a table and retires it.
    pub(crate) fn remove(&self, name: &str) {
        if let Some(table) = write(&self.tables).remove(name) {
            table.retired.store(true, Ordering::Release);
        }
    }

    /// Replaces all tables by those of another catalog, and retires the old ones.
    pub(crate) fn replace(&self, other: &Self) {
        let others = std::mem::take(&mut *write(&other.tables));
        let mut tables = write(&self.tables);
        for table in std::mem::replace(&mut *tables, others).into_values() {
            table.retired.store(true, Ordering::Release);
        }
    }
}
