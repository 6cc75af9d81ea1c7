//! The tables: what they are, where they are kept, and how much is in them.
//!
//! The catalog is read by every operation and changed by the committer alone, which publishes a new
//! [`Table`] after the change is durable. A [`Table`] never changes; one that has been replaced or
//! removed says so, and whoever still holds it looks again.

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

/// A table at one moment of its definition.
pub(crate) struct Table {
    /// What the catalog stores of it.
    pub(crate) record: TableRecord,
    /// How much is in it; shared by all its definitions.
    counts: Arc<Mutex<Counts>>,
    retired: AtomicBool,
}

impl Table {
    /// A table that is new to this run.
    pub(crate) fn new(record: TableRecord, counts: Counts) -> Self {
        Self {
            record,
            counts: Arc::new(Mutex::new(counts)),
            retired: AtomicBool::new(false),
        }
    }

    /// The same table under another record.
    pub(crate) fn with_record(&self, record: TableRecord) -> Self {
        Self {
            record,
            counts: self.counts.clone(),
            retired: AtomicBool::new(false),
        }
    }

    /// Its definition, without the indexes that are being removed.
    pub(crate) const fn definition(&self) -> &TableDef {
        &self.record.definition
    }

    /// Where its items, index entries and expiry entries are.
    pub(crate) const fn space(&self) -> Space {
        Space::Table(self.record.id)
    }

    /// Its id.
    pub(crate) const fn id(&self) -> u32 {
        self.record.id
    }

    /// Whether the catalog holds another definition by now, or none.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// The indexes with their ids, in the order of the definition.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = (&IndexDef, IndexRecord)> {
        let records = self.record.indexes.iter().copied();
        self.record.definition.indexes.iter().zip(records)
    }

    /// The id and state of an index of its definition.
    pub(crate) fn index_record(&self, name: &str) -> Option<IndexRecord> {
        let mut indexes = self.indexes();
        indexes.find_map(|(index, record)| (index.name == name).then_some(record))
    }

    /// The stream that changes enter, if it is switched on.
    pub(crate) fn stream(&self) -> Option<u32> {
        self.record.definition.stream?;
        self.record.latest_stream
    }

    /// How much is in it.
    pub(crate) fn counts(&self) -> Counts {
        lock(&self.counts).clone()
    }

    /// Sets how much is in it, after a commit.
    pub(crate) fn set_counts(&self, counts: Counts) {
        *lock(&self.counts) = counts;
    }

    /// Whether an index is being filled or removed.
    pub(crate) fn is_updating(&self) -> bool {
        !self.record.removing.is_empty() || self.record.indexes.iter().any(|index| index.filling)
    }

    /// The table as it stands, with its newest stream.
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
    /// The table of that name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Table>> {
        read(&self.tables).get(name).cloned()
    }

    /// The table of that id.
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

    /// Publishes a table; the one of the same name before it is retired.
    pub(crate) fn insert(&self, table: Arc<Table>) {
        let name = table.definition().name.clone();
        if let Some(before) = write(&self.tables).insert(name, table) {
            before.retired.store(true, Ordering::Release);
        }
    }

    /// Takes a table out and retires it.
    pub(crate) fn remove(&self, name: &str) {
        if let Some(table) = write(&self.tables).remove(name) {
            table.retired.store(true, Ordering::Release);
        }
    }

    /// Publishes other tables instead of these, which are retired.
    pub(crate) fn replace(&self, other: &Self) {
        let others = std::mem::take(&mut *write(&other.tables));
        let mut tables = write(&self.tables);
        for table in std::mem::replace(&mut *tables, others).into_values() {
            table.retired.store(true, Ordering::Release);
        }
    }
}
