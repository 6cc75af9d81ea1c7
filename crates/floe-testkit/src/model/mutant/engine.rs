//! Planted bugs in the operations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use floe_store::expr::{Condition, KeyOp};
use floe_store::limits::TOKEN_CHARS;
use floe_store::op::*;
use floe_store::table::TableDescription;
use floe_store::{BoxFuture, Engine, Error, Item, Result, Value, each_operation, forward_to};

use super::Bug;
use crate::lock::lock;

/// An engine with a planted bug.
pub struct Mutant {
    inner: Arc<dyn Engine>,
    bug: Bug,
    memory: Mutex<Memory>,
}

/// State that some bugs need.
#[derive(Default)]
struct Memory {
    /// Deleted items, by table.
    deleted_items: BTreeMap<String, Vec<Item>>,
    /// The largest number of items that each table had.
    item_counts: BTreeMap<String, u64>,
    /// The last successful put.
    last_put: Option<PutItem>,
}

impl Mutant {
    /// Plants a bug in an engine.
    pub fn new(inner: Arc<dyn Engine>, bug: Bug) -> Self {
        Self {
            inner,
            bug,
            memory: Mutex::default(),
        }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    async fn table(&self, name: &str) -> Option<TableDescription> {
        self.inner.describe_table(name.to_owned()).await.ok()
    }

    async fn item(&self, table_name: &str, key: Item) -> Option<Item> {
        let get = GetItem::new(table_name, key);
        self.inner.get_item(get).await.ok()?.item
    }

    /// Plants bugs in the errors of an operation.
    fn alter_result<T>(&self, result: Result<T>) -> Result<T> {
        match result {
            Err(Error::Validation(message)) if self.has(Bug::MessageInLowerCase) => {
                Err(Error::Validation(message.to_lowercase()))
            }
            Err(Error::ConditionalCheckFailed { .. }) if self.has(Bug::OldItemMissingOnFailure) => {
                Err(Error::ConditionalCheckFailed { item: None })
            }
            Err(Error::TransactionCanceled { mut reasons }) if self.has(Bug::OnlyFirstReason) => {
                let none = floe_store::CancellationReason::none();
                let first = reasons
                    .iter()
                    .position(|reason| *reason != none)
                    .unwrap_or(0);
                reasons
                    .iter_mut()
                    .skip(first + 1)
                    .for_each(|reason| *reason = none.clone());
                Err(Error::TransactionCanceled { reasons })
            }
            other => other,
        }
    }

    async fn write(&self, mut write: WriteItem) -> Result<WriteItemOutput> {
        if self.has(Bug::TableCheckedBeforeRequest)
            && self.table(write.table_name()).await.is_none()
        {
            return Err(missing_table());
        }
        match &mut write {
            WriteItem::Delete(delete) if self.has(Bug::ConditionIgnoredOnDelete) => {
                drop_valid_condition(&mut delete.condition);
            }
            WriteItem::Put(put) if self.has(Bug::ConditionIgnoredOnPut) => {
                drop_valid_condition(&mut put.condition);
            }
            WriteItem::Update(update)
                if self.has(Bug::UpdatedReturnsAll)
                    && update.return_values == ReturnValues::UpdatedNew =>
            {
                update.return_values = ReturnValues::AllNew;
            }
            _ => {}
        }
        if self.has(Bug::WriteTokenIgnored) {
            match &mut write {
                WriteItem::Put(put) => drop_valid_token(&mut put.token),
                WriteItem::Update(update) => drop_valid_token(&mut update.token),
                WriteItem::Delete(delete) => drop_valid_token(&mut delete.token),
            }
        }
        let before = self.before(&write).await;
        let mut output = self.inner.write_item(write.clone()).await?;
        self.record_write(&write, before);
        if self.has(Bug::IndexWritesFree)
            && let Some(cost) = &mut output.consumed
        {
            cost.write = cost.table;
            cost.global_indexes.clear();
            cost.local_indexes.clear();
        }
        Ok(output)
    }

    /// The item before a delete, if the bug needs it.
    async fn before(&self, write: &WriteItem) -> Option<Item> {
        match write {
            WriteItem::Delete(delete) if self.has(Bug::IndexEntryNotRemoved) => {
                self.item(&delete.table_name, delete.key.clone()).await
            }
            _ => None,
        }
    }

    fn record_write(&self, write: &WriteItem, before: Option<Item>) {
        let mut memory = self.memory();
        if let Some(deleted) = before {
            memory
                .deleted_items
                .entry(write.table_name().to_owned())
                .or_default()
                .push(deleted);
        }
        if let WriteItem::Put(put) = write {
            memory.last_put = Some(put.clone());
        }
    }

    async fn transact(
        &self,
        mut transaction: TransactWriteItems,
    ) -> Result<TransactWriteItemsOutput> {
        if self.has(Bug::TokenIgnored) {
            drop_valid_token(&mut transaction.token);
        }
        if self.has(Bug::CheckIgnored) && transaction.actions.len() > 1 {
            transaction
                .actions
                .retain(|action| !matches!(action, TransactWrite::Check(_)));
        }
        if self.has(Bug::TransactionNotAtomic) {
            return self.one_by_one(transaction).await;
        }
        match self.inner.transact_write_items(transaction).await {
            Err(Error::IdempotentParameterMismatch) if self.has(Bug::TokenMismatchAccepted) => {
                Ok(TransactWriteItemsOutput::default())
            }
            other => other,
        }
    }

    async fn one_by_one(
        &self,
        transaction: TransactWriteItems,
    ) -> Result<TransactWriteItemsOutput> {
        let response = self.inner.transact_write_items(transaction.clone()).await;
        if let Err(Error::TransactionCanceled { .. }) = response {
            for action in transaction.actions {
                let alone = TransactWriteItems::new([action]);
                if self.inner.transact_write_items(alone).await.is_err() {
                    break;
                }
            }
        }
        response
    }

    async fn batch_write(&self, mut batch: BatchWriteItem) -> Result<BatchWriteItemOutput> {
        if self.has(Bug::BatchWriteDropsLast)
            && let Some(mut last) = batch.requests.last_entry()
            && last.get().len() > 1
        {
            last.get_mut().pop();
        }
        self.inner.batch_write_item(batch).await
    }

    async fn read_page(&self, mut query: Query) -> Result<Page> {
        if self.has(Bug::BackwardIgnored) {
            query.forward = true;
        }
        let limit = query.limit;
        if self.has(Bug::FilterBeforeLimit) && query.filter.is_some() {
            query.limit = None;
        }
        let mut page = self.inner.query(query.clone()).await?;
        if query.limit != limit
            && let Some(limit) = limit
        {
            page.items.truncate(limit);
            page.count = page.count.min(limit);
            page.scanned_count = page.scanned_count.min(limit);
        }
        if self.has(Bug::BetweenExcludesEnd) {
            for (name, op) in &query.key_condition.terms {
                if let KeyOp::Between(_, high) = op {
                    page.items.retain(|item| item.get(name) != Some(high));
                }
            }
        }
        if self.has(Bug::NumbersSortedAsText) {
            let number = |item: &Item| item.get("sk").and_then(Value::as_n).map(|n| n.to_string());
            if query.forward && query.limit.is_none() {
                page.items.sort_by_key(number);
            }
        }
        if self.has(Bug::PageBytesUnlimited) && limit.is_none() {
            self.append_next(&query, &mut page).await;
        }
        if self.has(Bug::StartKeyIncluded)
            && let Some(start) = &query.start_key
            && query.index_name.is_none()
            && let Some(item) = self.item(&query.table_name, start.clone()).await
        {
            page.items.insert(0, item);
            page.count += 1;
        }
        Ok(self.alter_page(page, limit))
    }

    /// Appends the next page to this one.
    async fn append_next(&self, query: &Query, page: &mut Page) {
        let Some(start) = page.last_key.clone() else {
            return;
        };
        let next = self.inner.query(query.clone().start_key(Some(start))).await;
        if let Ok(next) = next {
            page.count += next.count;
            page.scanned_count += next.scanned_count;
            page.items.extend(next.items);
            page.last_key = next.last_key;
        }
    }

    /// Plants the bugs that queries and scans share.
    fn alter_page(&self, mut page: Page, limit: Option<usize>) -> Page {
        if self.has(Bug::LastKeyMissingAtLimit) && limit == Some(page.scanned_count) {
            page.last_key = None;
        }
        if self.has(Bug::CountBeforeFilter) {
            page.count = page.scanned_count;
        }
        page
    }

    async fn scan_page(&self, scan: Scan) -> Result<Page> {
        let page = self.inner.scan(scan.clone()).await?;
        let mut page = self.alter_page(page, scan.limit);
        if self.has(Bug::SegmentDropsItem) && scan.segment.is_some_and(|s| s.total > 1) {
            page.items.pop();
        }
        let Some(index_name) = &scan.index_name else {
            return Ok(page);
        };
        let Some(table) = self.table(&scan.table_name).await else {
            return Ok(page);
        };
        let Some(index) = table.definition.index(index_name) else {
            return Ok(page);
        };
        if self.has(Bug::IndexEntryNotRemoved) && page.last_key.is_none() {
            let deleted_items = self
                .memory()
                .deleted_items
                .get(&scan.table_name)
                .cloned()
                .unwrap_or_default();
            let held = deleted_items.iter().filter(|deleted| index.holds(deleted));
            page.items
                .extend(held.map(|deleted| index.project(&table.definition.key, deleted)));
        }
        if self.has(Bug::IndexProjectionLost) {
            for item in &mut page.items {
                let key =
                    |name: &str| table.definition.key.contains(name) || index.key.contains(name);
                let kept = item.clone().into_iter().filter(|(name, _)| key(name));
                *item = kept.collect();
            }
        }
        Ok(page)
    }

    async fn get(&self, mut get: GetItem) -> Result<GetItemOutput> {
        if self.has(Bug::GetIgnoresProjection) {
            get.projection = None;
        }
        if self.has(Bug::EventualReadsCostTwice) {
            get.consistent = true;
        }
        self.inner.get_item(get).await
    }

    async fn batch_get(&self, mut batch: BatchGetItem) -> Result<BatchGetItemOutput> {
        if self.has(Bug::BatchGetIgnoresProjection) {
            for request in batch.requests.values_mut() {
                request.projection = None;
            }
        }
        self.inner.batch_get_item(batch).await
    }

    async fn describe(&self, name: String) -> Result<TableDescription> {
        let mut table = self.inner.describe_table(name.clone()).await?;
        if self.has(Bug::ItemCountNeverDecreases) {
            let mut memory = self.memory();
            let most = memory.item_counts.entry(name).or_default();
            *most = (*most).max(table.item_count);
            table.item_count = *most;
        }
        Ok(table)
    }

    async fn records(&self, input: GetRecords) -> Result<GetRecordsOutput> {
        let mut output = self.inner.get_records(input).await?;
        for record in &mut output.records {
            if self.has(Bug::OldImageMissing) {
                record.old_image = None;
            }
            if self.has(Bug::ExpiryWithoutIdentity) {
                record.identity = None;
            }
        }
        // Keep at least one record: an empty page would look like the end of the shard.
        if self.has(Bug::ChangeSkipped) && output.records.len() > 1 {
            let first = output.records.first().map(|record| record.sequence.clone());
            output.records.retain(|record| {
                record.kind != ChangeKind::Modify || Some(&record.sequence) == first.as_ref()
            });
        }
        Ok(output)
    }

    async fn list(&self, input: ListTables) -> Result<ListTablesOutput> {
        let mut output = self.inner.list_tables(input).await?;
        if self.has(Bug::ListTablesWithoutLastName) {
            output.last_name = None;
        }
        Ok(output)
    }

    /// Deletes the item of the last put.
    pub(super) async fn delete_last_put(&self, put: PutItem) {
        let Some(table) = self.table(&put.table_name).await else {
            return;
        };
        let Some(key) = table.definition.key.key_of(&put.item) else {
            return;
        };
        // If the item no longer exists, the bug has no effect.
        let delete = DeleteItem::new(put.table_name, key);
        let _: Result<WriteItemOutput> = self.inner.write_item(delete.into()).await;
    }

    /// The last successful put.
    pub(super) fn take_last_put(&self) -> Option<PutItem> {
        self.memory().last_put.take()
    }
}

/// Removes a valid condition. An invalid one stays, because the bug is in the evaluation.
fn drop_valid_condition(condition: &mut Option<Condition>) {
    if condition
        .as_ref()
        .is_some_and(|condition| condition.check().is_ok())
    {
        *condition = None;
    }
}

/// Removes a valid token. An invalid one stays, because the bug is in the lookup.
fn drop_valid_token(token: &mut Option<String>) {
    if token
        .as_ref()
        .is_some_and(|token| TOKEN_CHARS.contains(&token.len()))
    {
        *token = None;
    }
}

/// Forwards operations to methods of the mutant.
macro_rules! operations {
    ($($name:ident($type:ty) -> $output:ty => $method:ident;)*) => {$(
        fn $name(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move {
                let response = self.$method(input).await;
                self.alter_result(response)
            })
        }
    )*};
}

/// Forwards operations to the wrapped engine.
macro_rules! forwarded {
    ($($name:ident($type:ty) -> $output:ty, $known:literal;)*) => {$(
        fn $name(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move {
                let response = self.inner.$name(input).await;
                self.alter_result(response)
            })
        }
    )*};
}

impl Engine for Mutant {
    forward_to!(self.inner; basics);

    operations! {
        get_item(GetItem) -> GetItemOutput => get;
        batch_get_item(BatchGetItem) -> BatchGetItemOutput => batch_get;
        write_item(WriteItem) -> WriteItemOutput => write;
        batch_write_item(BatchWriteItem) -> BatchWriteItemOutput => batch_write;
        transact_write_items(TransactWriteItems) -> TransactWriteItemsOutput => transact;
        query(Query) -> Page => read_page;
        scan(Scan) -> Page => scan_page;
        describe_table(String) -> TableDescription => describe;
        list_tables(ListTables) -> ListTablesOutput => list;
        get_records(GetRecords) -> GetRecordsOutput => records;
    }

    each_operation!(forwarded; transact_get_items, create_table, update_table, delete_table);
    each_operation!(forwarded; update_time_to_live, update_tags, list_streams, describe_stream);
    each_operation!(forwarded; get_shard_iterator, hold_changes);
}
