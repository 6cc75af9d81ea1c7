//! Table administration: creates, updates, describes and deletes tables.
//!
//! Each change runs on the committer as an exclusive group and is published once it is durable. If an index is added to
//! a table with items, or removed from it, the [background](crate::background) thread fills or removes its entries
//! afterwards.

use std::sync::Arc;

use floe_store::op::{
    CreateTable, ListTables, ListTablesOutput, UpdateTable, UpdateTags, UpdateTimeToLive,
    missing_table_named,
};
use floe_store::table::{TableDescription, TableHistory, TableStatus};
use floe_store::{Error, Result, TableDef};

use crate::catalog::Table;
use crate::commit::Committer;
use crate::group::{DiskUse, Group};
use crate::kv::Space;
use crate::layout::key::DEFINITION_KEY;
use crate::layout::record::{self, Counts, IndexRecord, JobKind, StreamRecord, TableRecord};
use crate::response::PendingResponse;
use crate::shared::Shared;

/// Describes a table.
pub(crate) fn describe_table(shared: &Shared, name: &str) -> Result<TableDescription> {
    let table = shared.named_table(name)?;
    Ok(shared.describe(&table))
}

/// Lists the names of tables.
pub(crate) fn list_tables(shared: &Shared, list: &ListTables) -> Result<ListTablesOutput> {
    list.validate()?;
    Ok(list.page(shared.catalog.names()))
}

/// Creates a table.
pub(crate) fn create_table(
    committer: &Committer,
    create: &CreateTable,
) -> Result<PendingResponse<TableDescription>> {
    create.validate()?;
    let definition = create.definition()?;
    Ok(committer.run(DiskUse::Grows, move |group| group.create_table(definition)))
}

/// Updates a table.
pub(crate) fn update_table(
    committer: &Committer,
    update: UpdateTable,
) -> Result<PendingResponse<TableDescription>> {
    update.validate()?;
    Ok(committer.run(DiskUse::Grows, move |group| {
        let table = group.idle_table(&update.table_name)?;
        let definition = update.apply(table.definition())?;
        group.change_table(&table, definition)
    }))
}

/// Enables or disables expiry.
pub(crate) fn update_time_to_live(
    committer: &Committer,
    update: UpdateTimeToLive,
) -> Result<PendingResponse<TableDescription>> {
    update.validate()?;
    Ok(committer.run(DiskUse::Grows, move |group| {
        let table = group.shared().named_table(&update.table_name)?;
        let definition = update.apply(table.definition())?;
        group.change_table(&table, definition)
    }))
}

/// Adds and removes tags.
pub(crate) fn update_tags(
    committer: &Committer,
    update: UpdateTags,
) -> Result<PendingResponse<()>> {
    update.validate()?;
    Ok(committer.run(DiskUse::Grows, move |group| {
        let table = group.shared().named_table(&update.table_name)?;
        let definition = update.apply(table.definition())?;
        group.change_table(&table, definition).map(drop)
    }))
}

/// Deletes a table with all its data.
pub(crate) fn delete_table(
    committer: &Committer,
    name: String,
) -> PendingResponse<TableDescription> {
    committer.run(DiskUse::Frees, move |group| group.delete_table(&name))
}

impl Shared {
    fn named_table(&self, name: &str) -> Result<Arc<Table>> {
        let table = self.catalog.get(name);
        table.ok_or_else(|| missing_table_named(name))
    }

    fn describe(&self, table: &Table) -> TableDescription {
        let stream = table
            .record
            .latest_stream
            .and_then(|id| self.streams.get(id));
        table.describe(&self.options, stream.as_deref())
    }
}

impl Group<'_> {
    /// Returns a table, unless one of its indexes is being filled or removed.
    fn idle_table(&self, name: &str) -> Result<Arc<Table>> {
        let table = self.shared().named_table(name)?;
        if table.is_updating() {
            return Err(Error::ResourceInUse(format!(
                "Attempt to change a resource which is still in use: Table is being updated: {name}"
            )));
        }
        Ok(table)
    }

    fn create_table(&mut self, definition: TableDef) -> Result<TableDescription> {
        let shared = self.shared();
        let name = definition.name.clone();
        if shared.catalog.get(&name).is_some() {
            return Err(Error::ResourceInUse(format!(
                "Table already exists: {name}"
            )));
        }
        let id = self.new_id();
        let indexes = definition.indexes.iter().map(|_| IndexRecord {
            id: self.new_id(),
            filling: false,
        });
        let indexes = indexes.collect();
        let mut record = TableRecord {
            id,
            uuid: shared.options.env.uuid(),
            created: self.now(),
            indexes,
            removing: Vec::new(),
            expiry: definition.ttl_attribute.as_ref().map(|_| self.new_id()),
            latest_stream: None,
            history: TableHistory::for_new_table(&definition, self.now()),
            definition,
        };
        let stream = self.switch_stream(None, &mut record);
        let table = Table::new(record, Counts::default());
        Ok(self.publish(table, stream))
    }

    /// Changes the definition of a table, and with it streams, indexes and expiry.
    fn change_table(&mut self, table: &Table, definition: TableDef) -> Result<TableDescription> {
        let before = table.record.clone();
        let history = before.history;
        let mut record = TableRecord {
            history: history.after(&before.definition, &definition, self.now()),
            definition,
            ..before.clone()
        };
        let is_empty = table.counts().table.items == 0;
        self.change_indexes(&before, &mut record, is_empty);
        self.change_expiry(&before, &mut record, is_empty);
        let stream = if before.definition.stream == record.definition.stream {
            None
        } else {
            let enabled = before.definition.stream.and(before.latest_stream);
            self.switch_stream(enabled, &mut record)
        };
        Ok(self.publish(table.with_record(record), stream))
    }

    /// Assigns ids to new indexes, and adds jobs that fill them from existing items and remove the entries of deleted
    /// indexes.
    fn change_indexes(&mut self, before: &TableRecord, record: &mut TableRecord, is_empty: bool) {
        let known = |name: &str| {
            let mut indexes = before.definition.indexes.iter().zip(&before.indexes);
            indexes.find_map(|(index, known)| (index.name == name).then_some(*known))
        };
        let mut indexes = Vec::with_capacity(record.definition.indexes.len());
        for index in &record.definition.indexes {
            indexes.push(known(&index.name).unwrap_or_else(|| {
                let id = self.new_id();
                if !is_empty {
                    self.add_job(record.id, JobKind::FillIndex(id));
                }
                IndexRecord {
                    id,
                    filling: !is_empty,
                }
            }));
        }
        record.indexes = indexes;
        for (index, known) in before.definition.indexes.iter().zip(&before.indexes) {
            if record.definition.index(&index.name).is_none() {
                record.removing.push((known.id, index.clone()));
                self.add_job(record.id, JobKind::RemoveIndex(known.id));
            }
        }
    }

    /// Starts a new generation of expiry entries if the expiry attribute changes.
    fn change_expiry(&mut self, before: &TableRecord, record: &mut TableRecord, is_empty: bool) {
        if before.definition.ttl_attribute == record.definition.ttl_attribute {
            return;
        }
        if let Some(generation) = before.expiry {
            self.add_job(record.id, JobKind::RemoveExpiry(generation));
        }
        record.expiry = record.definition.ttl_attribute.as_ref().map(|_| {
            let generation = self.new_id();
            if !is_empty {
                self.add_job(record.id, JobKind::FillExpiry(generation));
            }
            generation
        });
    }

    /// Closes the previous stream, if any, and opens one if the definition has one. Returns the new stream.
    fn switch_stream(
        &mut self,
        enabled: Option<u32>,
        record: &mut TableRecord,
    ) -> Option<StreamRecord> {
        if let Some(stream) = enabled {
            self.close_stream(stream);
        }
        let view = record.definition.stream?;
        let name = &record.definition.name;
        let stream = StreamRecord {
            id: self.new_id(),
            table: record.id,
            table_name: name.clone(),
            key: record.definition.key.clone(),
            view,
            created: self.shared().streams.unique_creation_time(name, self.now()),
            disabled: None,
        };
        record.latest_stream = Some(stream.id);
        let now = self.now();
        let (key, value) = self.sequences().open(&stream, now);
        self.put(Space::Meta, key, value);
        self.write_stream(stream.clone());
        Some(stream)
    }

    fn close_stream(&mut self, id: u32) {
        if let Some((key, value)) = self.sequences().close(id) {
            self.put(Space::Meta, key, value);
        }
        if let Some(stream) = self.shared().streams.get(id) {
            self.write_stream(StreamRecord {
                disabled: Some(self.now()),
                ..(*stream).clone()
            });
        }
    }

    fn write_stream(&mut self, stream: StreamRecord) {
        let key = record::stream_key(stream.id);
        self.put(Space::Meta, key, stream.encode());
        self.on_commit(|shared| shared.streams.insert(stream));
    }

    /// Writes a table to the catalog, and publishes it once that is durable.
    pub(crate) fn publish(
        &mut self,
        table: Table,
        new_stream: Option<StreamRecord>,
    ) -> TableDescription {
        let shared = self.shared();
        let key = record::table_key(&table.definition().name);
        let record = table.record.encode();
        self.put(table.space(), DEFINITION_KEY, record.clone());
        self.put(Space::Meta, key, record);
        let description = match new_stream {
            Some(stream) => table.describe(&shared.options, Some(&stream)),
            None => shared.describe(&table),
        };
        self.on_commit(|shared| {
            shared.catalog.insert(Arc::new(table));
            shared.background.notify();
        });
        description
    }

    fn delete_table(&mut self, name: &str) -> Result<TableDescription> {
        let table = self.shared().named_table(name)?;
        if table.definition().deletion_protection {
            return Err(Error::validation(
                "Resource cannot be deleted as it is currently protected against deletion. Disable \
                 deletion protection first.",
            ));
        }
        if table.is_updating() {
            return Err(Error::ResourceInUse(
                "Attempt to change a resource which is still in use: Cannot delete table while \
                 indexes are being created, updated, or deleted."
                    .to_owned(),
            ));
        }
        let shared = self.shared();
        for job in shared.jobs.of_table(table.id()) {
            self.remove_job(job);
        }
        if let Some(stream) = table.stream() {
            self.close_stream(stream);
        }
        self.remove(Space::Meta, record::table_key(name));
        self.remove(Space::Meta, record::counts_key(table.id()));
        let mut description = shared.describe(&table);
        description.status = TableStatus::Deleting;
        self.add_job(table.id(), JobKind::RemoveTable);
        let name = name.to_owned();
        self.on_commit(move |shared| {
            shared.catalog.remove(&name);
            shared.background.notify();
        });
        Ok(description)
    }
}
