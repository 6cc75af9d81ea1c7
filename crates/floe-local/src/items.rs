//! Reads and writes of items, single and in batches.
//!
//! A read uses the published snapshot and runs on the caller's thread. A write is validated and encoded on that thread,
//! as far as it does not depend on stored data, and then sent to the committer.

use std::collections::BTreeMap;
use std::sync::Arc;

use floe_store::capacity::{
    Consistency, ConsumedCapacity, ReturnConsumedCapacity, WriteKind, read_cost, write_cost,
};
use floe_store::limits::BATCH_GET_BYTES_MAX;
use floe_store::op::{
    BatchGetItem, BatchGetItemOutput, BatchWrite, BatchWriteItem, BatchWriteItemOutput, GetItem,
    GetItemOutput, ItemCollectionMetrics, ReturnValues, WriteItem, WriteItemOutput, missing_table,
};
use floe_store::{Error, Item, Result, TableDef};

use crate::apply::ItemChange;
use crate::catalog::Table;
use crate::commit::Committer;
use crate::group::{DiskUse, Group};
use crate::kv::{Bytes, Snapshot};
use crate::layout::item::{decode_sized, encode_sized};
use crate::layout::key::{collection_key, item_key};
use crate::locks::lock;
use crate::request::Work;
use crate::response::PendingResponse;
use crate::shared::Shared;
use crate::stored::StoredItem;
use crate::tokens::WriteToken;
use floe_store::size::item_size;

impl Shared {
    /// The table with this name.
    pub(crate) fn table(&self, name: &str) -> Result<Arc<Table>> {
        self.catalog.get(name).ok_or_else(missing_table)
    }

    /// The existing tables that a request names.
    pub(crate) fn tables<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
    ) -> BTreeMap<String, Arc<Table>> {
        let mut tables = BTreeMap::new();
        for name in names {
            if !tables.contains_key(name)
                && let Some(table) = self.catalog.get(name)
            {
                tables.insert(name.to_owned(), table);
            }
        }
        tables
    }
}

/// Returns a lookup of table definitions, for validating a request on several tables.
pub(crate) fn definitions<'t>(
    tables: &'t BTreeMap<String, Arc<Table>>,
) -> impl Fn(&str) -> Option<&'t TableDef> {
    |name| tables.get(name).map(|table| table.definition())
}

/// The stored key of an item. A validated request always has one.
pub(crate) fn key_of(table: &Table, item: &Item) -> Result<Vec<u8>> {
    item_key(&table.definition().key, item)
        .ok_or_else(|| Error::validation("The provided key element does not match the schema"))
}

/// Reads the item under a key, with its size.
pub(crate) fn read(
    snapshot: &Snapshot,
    table: &Table,
    key: &[u8],
) -> Result<Option<(usize, Item)>> {
    let bytes = snapshot.get(table.space(), key)?;
    bytes.map(|bytes| decode_sized(&bytes)).transpose()
}

/// Reads one item.
pub(crate) fn get_item(shared: &Shared, get: &GetItem) -> Result<GetItemOutput> {
    get.validate()?;
    let table = shared.table(&get.table_name)?;
    get.check(table.definition())?;
    let key = key_of(&table, &get.key)?;
    let found = read(&shared.kv.snapshot(), &table, &key)?;
    let consumed = get.return_capacity.is_wanted().then(|| {
        let size = found.as_ref().map_or(0, |(size, _)| *size);
        read_cost(
            &get.table_name,
            [size],
            get.consistency(),
            get.return_capacity,
        )
    });
    Ok(GetItemOutput {
        item: found.map(|(_, item)| get.response_item(item)),
        consumed,
    })
}

/// Reads many items independently, up to 16 MB in total.
pub(crate) fn batch_get_item(
    shared: &Shared,
    mut batch: BatchGetItem,
) -> Result<BatchGetItemOutput> {
    batch.validate()?;
    let tables = shared.tables(batch.requests.keys().map(String::as_str));
    batch.check(definitions(&tables))?;
    let snapshot = shared.kv.snapshot();
    let mut output = BatchGetItemOutput::default();
    let mut room = BATCH_GET_BYTES_MAX;
    for (name, mut request) in std::mem::take(&mut batch.requests) {
        let table = tables.get(&name).ok_or_else(missing_table)?;
        let items = output.items.entry(name.clone()).or_default();
        let (mut sizes, mut unread) = (Vec::new(), Vec::new());
        for key in std::mem::take(&mut request.keys) {
            let found = if room == 0 {
                None
            } else {
                Some(read(&snapshot, table, &key_of(table, &key)?)?)
            };
            match found {
                Some(None) => sizes.push(0),
                Some(Some((size, item))) if size <= room => {
                    room -= size;
                    sizes.push(size);
                    items.push(request.response_item(item));
                }
                _ => {
                    room = 0;
                    unread.push(key);
                }
            }
        }
        if batch.return_capacity.is_wanted() {
            let cost = read_cost(&name, sizes, request.consistency(), batch.return_capacity);
            output.consumed.push(cost);
        }
        if !unread.is_empty() {
            request.keys = unread;
            output.unprocessed.insert(name, request);
        }
    }
    Ok(output)
}

/// Puts, updates or deletes one item.
pub(crate) fn write_item(
    committer: &Committer,
    write: WriteItem,
) -> Result<PendingResponse<WriteItemOutput>> {
    write.validate()?;
    let table = committer.shared.table(write.table_name())?;
    write.check(table.definition())?;
    let token = write.token();
    let token = token.map(|text| WriteToken::new(text, write.fingerprint()));
    Ok(committer.submit(ItemWrite {
        key: key_of(&table, write.key_item())?,
        encoded: match &write {
            WriteItem::Put(put) => Some(encode(&put.item)),
            _ => None,
        },
        table,
        token,
        write,
    }))
}

fn encode(item: &Item) -> (Bytes, usize) {
    let size = item_size(item);
    (encode_sized(item, size).into(), size)
}

/// A write that was validated against its table.
struct ItemWrite {
    write: WriteItem,
    table: Arc<Table>,
    token: Option<WriteToken>,
    key: Vec<u8>,
    /// The item of a put, encoded on the caller's thread to relieve the committer.
    encoded: Option<(Bytes, usize)>,
}

impl Work for ItemWrite {
    type Output = WriteItemOutput;

    fn disk_use(&self) -> DiskUse {
        match &self.write {
            WriteItem::Delete(_) => DiskUse::Frees,
            _ => DiskUse::Grows,
        }
    }

    fn run(&mut self, group: &mut Group<'_>) -> Result<WriteItemOutput> {
        self.revalidate(group)?;
        match self.token.take() {
            Some(token) => self.write_once(group, token),
            None => self.write(group).map(|done| done.output),
        }
    }
}

/// The result of a write.
struct WriteResult {
    output: WriteItemOutput,
    /// The larger of the item's sizes before and after.
    size: usize,
}

impl ItemWrite {
    /// Validates the request again if the table has changed since.
    fn revalidate(&mut self, group: &Group<'_>) -> Result<()> {
        if self.table.is_retired() {
            self.table = group.shared().table(self.write.table_name())?;
            self.write.check(self.table.definition())?;
            self.key = key_of(&self.table, self.write.key_item())?;
        }
        Ok(())
    }

    /// Applies the write only once, even if it is sent repeatedly.
    fn write_once(&mut self, group: &mut Group<'_>, token: WriteToken) -> Result<WriteItemOutput> {
        let detail = self.write.return_capacity();
        let uptime = group.token_time().uptime;
        let tokens = &group.shared().write_tokens;
        if let Some(written) = lock(tokens).find(token, uptime)? {
            let (name, sizes) = (self.write.table_name(), std::iter::once(written.size));
            let cost = || read_cost(name, sizes, Consistency::Strong, detail);
            return Ok(WriteItemOutput {
                consumed: detail.is_wanted().then(cost),
                attributes: written.returned.as_deref().cloned(),
                collection: None,
            });
        }
        let written = self.write(group)?;
        let returned = written.output.attributes.clone();
        lock(tokens).record(token, uptime, written.size, returned);
        Ok(written.output)
    }

    fn write(&mut self, group: &mut Group<'_>) -> Result<WriteResult> {
        let old = group.get(self.table.space(), &self.key)?;
        if self.is_plain() {
            return self.write_plain(group, old.as_ref());
        }
        let old = old.map(StoredItem::decode).transpose()?;
        let (detail, wants_collection) =
            (self.write.return_capacity(), self.write.return_collection());
        let collection = if wants_collection {
            Collection::load(group, &self.table, self.write.key_item())?
        } else {
            None
        };
        let definition = self.table.definition();
        let applied = self
            .write
            .apply(definition, old.as_ref().map(|old| &old.item))?;
        let new = applied.new.map(|item| match self.encoded.take() {
            Some((bytes, size)) => StoredItem { item, bytes, size },
            None => StoredItem::encode(item),
        });
        let (before, after) = (old.as_ref(), new.as_ref());
        let key = std::mem::take(&mut self.key);
        let change = ItemChange::prepare(group, &self.table, key, before, after, None)?;
        let (old_item, new_item) = (before.map(|old| &old.item), after.map(|new| &new.item));
        let cost = || write_cost(definition, old_item, new_item, WriteKind::Plain, detail);
        let consumed = detail.is_wanted().then(cost);
        if let Some(change) = change {
            change.write(group);
        }
        Ok(WriteResult {
            size: before
                .map_or(0, |s| s.size)
                .max(after.map_or(0, |s| s.size)),
            output: WriteItemOutput {
                attributes: applied.returned,
                consumed,
                collection: collection.and_then(|collection| collection.metrics(group)),
            },
        })
    }

    /// Whether neither the request nor the table needs the old item: no condition, no return values, no index, stream
    /// or expiry.
    fn is_plain(&self) -> bool {
        let table = &self.table;
        let (condition, returned) = match &self.write {
            WriteItem::Put(put) => (&put.condition, put.return_values),
            WriteItem::Delete(delete) => (&delete.condition, delete.return_values),
            WriteItem::Update(_) => return false,
        };
        condition.is_none()
            && returned == ReturnValues::None
            && self.write.return_capacity() == ReturnConsumedCapacity::None
            && !self.write.return_collection()
            && table.definition().indexes.is_empty()
            && table.stream().is_none()
            && table.record.expiry.is_none()
    }

    fn write_plain(&mut self, group: &mut Group<'_>, old: Option<&Bytes>) -> Result<WriteResult> {
        let old_size = old.map_or(Ok(0), |old| crate::layout::item::decode_size(old))?;
        let new_size = self.encoded.as_ref().map_or(0, |(_, size)| *size);
        let (key, new) = (std::mem::take(&mut self.key), self.encoded.take());
        let change = ItemChange::plain(&self.table, key, old, new)?;
        if let Some(change) = change {
            change.write(group);
        }
        Ok(WriteResult {
            size: old_size.max(new_size),
            output: WriteItemOutput::default(),
        })
    }
}

/// Puts and deletes many items independently.
pub(crate) fn batch_write_item(
    committer: &Committer,
    batch: BatchWriteItem,
) -> Result<PendingResponse<BatchWriteItemOutput>> {
    batch.validate()?;
    let tables = committer
        .shared
        .tables(batch.requests.keys().map(String::as_str));
    batch.check(definitions(&tables))?;
    Ok(committer.submit(WriteBatch { batch, tables }))
}

struct WriteBatch {
    batch: BatchWriteItem,
    tables: BTreeMap<String, Arc<Table>>,
}

impl Work for WriteBatch {
    type Output = BatchWriteItemOutput;

    fn disk_use(&self) -> DiskUse {
        let mut requests = self.batch.requests.values().flatten();
        if requests.all(|request| matches!(request, BatchWrite::Delete(_))) {
            DiskUse::Frees
        } else {
            DiskUse::Grows
        }
    }

    fn run(&mut self, group: &mut Group<'_>) -> Result<BatchWriteItemOutput> {
        self.revalidate(group)?;
        run_batch(group, &self.tables, std::mem::take(&mut self.batch))
    }
}

impl WriteBatch {
    fn revalidate(&mut self, group: &Group<'_>) -> Result<()> {
        if self.tables.values().any(|table| table.is_retired()) {
            let names = self.batch.requests.keys().map(String::as_str);
            self.tables = group.shared().tables(names);
            self.batch.check(definitions(&self.tables))?;
        }
        Ok(())
    }
}

/// Prepares all changes before it writes any, so that an unreadable item does not leave a batch half applied. Each key
/// occurs in a batch only once.
fn run_batch(
    group: &mut Group<'_>,
    tables: &BTreeMap<String, Arc<Table>>,
    batch: BatchWriteItem,
) -> Result<BatchWriteItemOutput> {
    let mut output = BatchWriteItemOutput::default();
    let mut changes = Vec::new();
    let mut collections = Vec::new();
    for (name, writes) in batch.requests {
        let table = tables.get(&name).ok_or_else(missing_table)?;
        let mut consumed = ConsumedCapacity::new(&name, batch.return_capacity);
        for write in writes {
            if batch.return_collection {
                collections.extend(Collection::load(group, table, write.key_item())?);
            }
            let (cost, change) = prepare_batch_write(group, table, write, batch.return_capacity)?;
            changes.extend(change);
            if let Some(cost) = cost {
                consumed.merge(&cost);
            }
        }
        if batch.return_capacity.is_wanted() {
            output.consumed.push(consumed);
        }
    }
    for change in changes {
        change.write(group);
    }
    output.collections = collection_metrics(group, collections);
    Ok(output)
}

fn prepare_batch_write(
    group: &mut Group<'_>,
    table: &Arc<Table>,
    write: BatchWrite,
    detail: ReturnConsumedCapacity,
) -> Result<(Option<ConsumedCapacity>, Option<ItemChange>)> {
    let key = key_of(table, write.key_item())?;
    let old = group.get(table.space(), &key)?;
    let old = old.map(StoredItem::decode).transpose()?;
    let new = write.apply().map(StoredItem::encode);
    let cost = || {
        let (old, new) = (old.as_ref().map(|s| &s.item), new.as_ref().map(|s| &s.item));
        write_cost(table.definition(), old, new, WriteKind::Plain, detail)
    };
    let cost = detail.is_wanted().then(cost);
    let change = ItemChange::prepare(group, table, key, old.as_ref(), new.as_ref(), None)?;
    Ok((cost, change))
}

/// An item collection whose size a request asks for.
pub(crate) struct Collection {
    table: Arc<Table>,
    key: Bytes,
    partition: Item,
}

impl Collection {
    /// Loads the collection of an item before anything is written, so that reporting its size cannot fail. `None` in a
    /// table without local indexes.
    pub(crate) fn load(
        group: &mut Group<'_>,
        table: &Arc<Table>,
        item: &Item,
    ) -> Result<Option<Self>> {
        let schema = &table.definition().key;
        let (Some(_), Some(key)) = (
            table.definition().local_indexes().next(),
            collection_key(schema, item),
        ) else {
            return Ok(None);
        };
        let key = Bytes::from(key);
        group.load_collection(table, &key)?;
        Ok(Some(Self {
            partition: item.pick(schema.partition.iter().map(|attribute| &attribute.name)),
            table: table.clone(),
            key,
        }))
    }

    fn metrics(&self, group: &Group<'_>) -> Option<ItemCollectionMetrics> {
        let bytes = group.loaded_collection(&self.table, &self.key)?;
        ItemCollectionMetrics::estimate(self.table.definition(), &self.partition, bytes)
    }
}

/// The sizes of the collections by table, without duplicates.
pub(crate) fn collection_metrics(
    group: &Group<'_>,
    collections: Vec<Collection>,
) -> BTreeMap<String, Vec<ItemCollectionMetrics>> {
    let mut by_table: BTreeMap<String, Vec<ItemCollectionMetrics>> = BTreeMap::new();
    for collection in collections {
        if let Some(metrics) = collection.metrics(group) {
            let name = collection.table.definition().name.clone();
            let known = by_table.entry(name).or_default();
            if !known.iter().any(|known| known.key == metrics.key) {
                known.push(metrics);
            }
        }
    }
    by_table
}
