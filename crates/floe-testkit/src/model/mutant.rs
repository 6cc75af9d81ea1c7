//! Engines with one planted bug each, to show that the property run finds such bugs.
//!
//! A [`Mutant`] wraps an engine and bends what goes in or what comes out. Bugs that need more than the
//! operations (what happens at a sweep or when reopening) are planted by [`MutantHarness`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use floe_store::env::{ManualClock, Timestamp};
use floe_store::expr::{Condition, KeyOp};
use floe_store::limits::TOKEN_CHARS;
use floe_store::op::*;
use floe_store::table::TableDescription;
use floe_store::{BoxFuture, Capabilities, Engine, Error, Item, Result, Value};

use crate::Harness;

/// A bug to plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bug {
    /// A page that ends at the limit does not say where to go on.
    LastKeyMissingAtLimit,
    /// The limit counts items that passed the filter.
    FilterBeforeLimit,
    /// A page begins with the item at which the one before ended.
    StartKeyIncluded,
    /// Queries always go forward.
    BackwardIgnored,
    /// `BETWEEN` leaves out its upper end.
    BetweenExcludesTheEnd,
    /// Numbers in sort keys are ordered as texts.
    NumbersSortedAsText,
    /// Pages may be larger than a megabyte.
    PageWithoutMegabyte,
    /// The count tells how many items were read.
    CountBeforeFilter,
    /// A scan of several segments leaves out the last item of each.
    SegmentLosesAnItem,
    /// An index keeps the entries of items that are gone.
    IndexEntryNotRemoved,
    /// An index with all attributes returns only keys.
    IndexProjectionLost,
    /// The condition of a delete is not looked at.
    ConditionIgnoredOnDelete,
    /// The condition of a put on an item that is there is not looked at.
    ConditionIgnoredOnPut,
    /// A failed condition does not return the item.
    OldItemMissingOnFailure,
    /// A condition check in a transaction always holds.
    CheckIgnored,
    /// The actions of a transaction are applied one by one until one fails.
    TransactionNotAtomic,
    /// Only the first failed action of a transaction is told.
    ReasonsStopAtTheFirst,
    /// A transaction sent again with its token is applied again.
    TokenForgotten,
    /// A token used for another transaction is accepted.
    TokenMismatchAccepted,
    /// A single write sent again with its token is applied again.
    WriteTokenForgotten,
    /// The last write of a batch is not done.
    BatchWriteLosesTheLast,
    /// A batch read ignores projections.
    BatchGetIgnoresProjection,
    /// A read of one item ignores its projection.
    GetIgnoresProjection,
    /// An update returns the whole new item where only its changes were asked for.
    UpdatedReturnsAll,
    /// Writes to indexes cost nothing.
    IndexWritesFree,
    /// Reads cost the same whether they are consistent or not.
    EventualReadsCostTwice,
    /// The stream leaves out modifications.
    ChangeSkipped,
    /// Change records have no old image.
    OldImageMissing,
    /// Change records of expired items look like those of others.
    ExpiryWithoutIdentity,
    /// The number of items in a description never falls.
    ItemCountNeverFalls,
    /// Messages are in lower case.
    MessageInLowerCase,
    /// The name of a table is looked up before the request is checked.
    TableBeforeRequest,
    /// A listing of tables never says where to go on.
    ListTablesWithoutLast,
    /// Expired items are not swept.
    NothingExpires,
    /// The last item put before reopening is lost.
    LastPutLostOnReopen,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 35] = [
        Self::LastKeyMissingAtLimit,
        Self::FilterBeforeLimit,
        Self::StartKeyIncluded,
        Self::BackwardIgnored,
        Self::BetweenExcludesTheEnd,
        Self::NumbersSortedAsText,
        Self::PageWithoutMegabyte,
        Self::CountBeforeFilter,
        Self::SegmentLosesAnItem,
        Self::IndexEntryNotRemoved,
        Self::IndexProjectionLost,
        Self::ConditionIgnoredOnDelete,
        Self::ConditionIgnoredOnPut,
        Self::OldItemMissingOnFailure,
        Self::CheckIgnored,
        Self::TransactionNotAtomic,
        Self::ReasonsStopAtTheFirst,
        Self::TokenForgotten,
        Self::TokenMismatchAccepted,
        Self::WriteTokenForgotten,
        Self::BatchWriteLosesTheLast,
        Self::BatchGetIgnoresProjection,
        Self::GetIgnoresProjection,
        Self::UpdatedReturnsAll,
        Self::IndexWritesFree,
        Self::EventualReadsCostTwice,
        Self::ChangeSkipped,
        Self::OldImageMissing,
        Self::ExpiryWithoutIdentity,
        Self::ItemCountNeverFalls,
        Self::MessageInLowerCase,
        Self::TableBeforeRequest,
        Self::ListTablesWithoutLast,
        Self::NothingExpires,
        Self::LastPutLostOnReopen,
    ];
}

/// An engine with a planted bug.
pub struct Mutant {
    inner: Arc<dyn Engine>,
    bug: Bug,
    memory: Mutex<Memory>,
}

/// What some bugs need to remember.
#[derive(Default)]
struct Memory {
    /// Items that are gone, by table.
    ghosts: BTreeMap<String, Vec<Item>>,
    /// The most items that a table ever had.
    item_counts: BTreeMap<String, u64>,
    /// The last put that was done.
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
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn table(&self, name: &str) -> Option<TableDescription> {
        self.inner.describe_table(name.to_owned()).await.ok()
    }

    async fn item(&self, table_name: &str, key: Item) -> Option<Item> {
        let get = GetItem::new(table_name, key);
        self.inner.get_item(get).await.ok()?.item
    }

    /// Bends the errors of an operation.
    fn bend<T>(&self, result: Result<T>) -> Result<T> {
        match result {
            Err(Error::Validation(message)) if self.has(Bug::MessageInLowerCase) => {
                Err(Error::Validation(message.to_lowercase()))
            }
            Err(Error::ConditionalCheckFailed { .. }) if self.has(Bug::OldItemMissingOnFailure) => {
                Err(Error::ConditionalCheckFailed { item: None })
            }
            Err(Error::TransactionCanceled { mut reasons })
                if self.has(Bug::ReasonsStopAtTheFirst) =>
            {
                let none = floe_store::CancellationReason::none();
                let first = reasons.iter().position(|reason| *reason != none).unwrap_or(0);
                reasons.iter_mut().skip(first + 1).for_each(|reason| *reason = none.clone());
                Err(Error::TransactionCanceled { reasons })
            }
            other => other,
        }
    }

    async fn write(&self, mut write: WriteItem) -> Result<WriteItemOutput> {
        if self.has(Bug::TableBeforeRequest) && self.table(write.table_name()).await.is_none() {
            return Err(missing_table());
        }
        match &mut write {
            WriteItem::Delete(delete) if self.has(Bug::ConditionIgnoredOnDelete) => {
                forget_condition(&mut delete.condition);
            }
            WriteItem::Put(put) if self.has(Bug::ConditionIgnoredOnPut) => {
                forget_condition(&mut put.condition);
            }
            WriteItem::Update(update)
                if self.has(Bug::UpdatedReturnsAll)
                    && update.return_values == ReturnValues::UpdatedNew =>
            {
                update.return_values = ReturnValues::AllNew;
            }
            _ => {}
        }
        if self.has(Bug::WriteTokenForgotten) {
            match &mut write {
                WriteItem::Put(put) => forget_token(&mut put.token),
                WriteItem::Update(update) => forget_token(&mut update.token),
                WriteItem::Delete(delete) => forget_token(&mut delete.token),
            }
        }
        let before = self.before(&write).await;
        let mut output = self.inner.write_item(write.clone()).await?;
        self.remember(&write, before);
        if self.has(Bug::IndexWritesFree)
            && let Some(cost) = &mut output.consumed
        {
            cost.write = cost.table;
            cost.global_indexes.clear();
            cost.local_indexes.clear();
        }
        Ok(output)
    }

    /// The item before a delete, for the bug that needs it.
    async fn before(&self, write: &WriteItem) -> Option<Item> {
        match write {
            WriteItem::Delete(delete) if self.has(Bug::IndexEntryNotRemoved) => {
                self.item(&delete.table_name, delete.key.clone()).await
            }
            _ => None,
        }
    }

    fn remember(&self, write: &WriteItem, before: Option<Item>) {
        let mut memory = self.memory();
        if let Some(ghost) = before {
            memory.ghosts.entry(write.table_name().to_owned()).or_default().push(ghost);
        }
        if let WriteItem::Put(put) = write {
            memory.last_put = Some(put.clone());
        }
    }

    async fn transact(&self, mut transaction: TransactWriteItems) -> Result<TransactWriteItemsOutput> {
        if self.has(Bug::TokenForgotten) {
            forget_token(&mut transaction.token);
        }
        if self.has(Bug::CheckIgnored) && transaction.actions.len() > 1 {
            transaction.actions.retain(|action| !matches!(action, TransactWrite::Check(_)));
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

    async fn one_by_one(&self, transaction: TransactWriteItems) -> Result<TransactWriteItemsOutput> {
        let answer = self.inner.transact_write_items(transaction.clone()).await;
        if let Err(Error::TransactionCanceled { .. }) = answer {
            for action in transaction.actions {
                let alone = TransactWriteItems::new([action]);
                if self.inner.transact_write_items(alone).await.is_err() {
                    break;
                }
            }
        }
        answer
    }

    async fn batch_write(&self, mut batch: BatchWriteItem) -> Result<BatchWriteItemOutput> {
        if self.has(Bug::BatchWriteLosesTheLast)
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
        if self.has(Bug::BetweenExcludesTheEnd) {
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
        if self.has(Bug::PageWithoutMegabyte) && limit.is_none() {
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
        Ok(self.bend_page(page, limit))
    }

    /// Adds the next page to this one.
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

    /// Bends what queries and scans have in common.
    fn bend_page(&self, mut page: Page, limit: Option<usize>) -> Page {
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
        let mut page = self.bend_page(page, scan.limit);
        if self.has(Bug::SegmentLosesAnItem) && scan.segment.is_some_and(|s| s.total > 1) {
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
            let ghosts = self.memory().ghosts.get(&scan.table_name).cloned().unwrap_or_default();
            let held = ghosts.iter().filter(|ghost| index.holds(ghost));
            page.items.extend(held.map(|ghost| index.project(&table.definition.key, ghost)));
        }
        if self.has(Bug::IndexProjectionLost) {
            for item in &mut page.items {
                let key = |name: &str| table.definition.key.contains(name) || index.key.contains(name);
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
        if self.has(Bug::ItemCountNeverFalls) {
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
        // A page must keep a record, or it would look like the end of the shard.
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
        if self.has(Bug::ListTablesWithoutLast) {
            output.last_name = None;
        }
        Ok(output)
    }
}

/// Forgets a condition, but not that it is wrong: the bug is in evaluating it.
fn forget_condition(condition: &mut Option<Condition>) {
    if condition.as_ref().is_some_and(|condition| condition.check().is_ok()) {
        *condition = None;
    }
}

/// Forgets a token, but not that it is too long.
fn forget_token(token: &mut Option<String>) {
    if token.as_ref().is_some_and(|token| TOKEN_CHARS.contains(&token.len())) {
        *token = None;
    }
}

/// Passes operations on to a method of the mutant, or to the engine inside.
macro_rules! operations {
    ($($name:ident($type:ty) -> $output:ty => $method:ident;)*) => {$(
        fn $name(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move {
                let answer = self.$method(input).await;
                self.bend(answer)
            })
        }
    )*};
    (inner: $($name:ident($type:ty) -> $output:ty;)*) => {$(
        fn $name(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move {
                let answer = self.inner.$name(input).await;
                self.bend(answer)
            })
        }
    )*};
}

impl Engine for Mutant {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn now(&self) -> Timestamp {
        self.inner.now()
    }

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

    operations! { inner:
        transact_get_items(TransactGetItems) -> TransactGetItemsOutput;
        create_table(CreateTable) -> TableDescription;
        update_table(UpdateTable) -> TableDescription;
        delete_table(String) -> TableDescription;
        update_time_to_live(UpdateTimeToLive) -> TableDescription;
        update_tags(UpdateTags) -> ();
        list_streams(ListStreams) -> ListStreamsOutput;
        describe_stream(DescribeStream) -> StreamDescription;
        get_shard_iterator(GetShardIterator) -> String;
        hold_changes(HoldChanges) -> ();
    }
}

/// A harness whose engine has a planted bug.
pub struct MutantHarness<H> {
    inner: H,
    mutant: Arc<Mutant>,
    bug: Bug,
}

impl<H: Harness> MutantHarness<H> {
    /// Plants a bug in the engine of a harness.
    pub fn new(inner: H, bug: Bug) -> Self {
        let mutant = Arc::new(Mutant::new(inner.engine(), bug));
        Self { inner, mutant, bug }
    }
}

impl<H: Harness> Harness for MutantHarness<H> {
    fn engine(&self) -> Arc<dyn Engine> {
        self.mutant.clone()
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        self.inner.clock()
    }

    fn sweep(&self) -> BoxFuture<'_, Result<()>> {
        match self.bug {
            Bug::NothingExpires => Box::pin(async { Ok(()) }),
            _ => self.inner.sweep(),
        }
    }

    fn reopen(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            self.inner.reopen().await?;
            let last_put = self.mutant.memory().last_put.take();
            let mutant = Mutant::new(self.inner.engine(), self.bug);
            if let (Bug::LastPutLostOnReopen, Some(put)) = (self.bug, last_put) {
                mutant.lose(put).await;
            }
            self.mutant = Arc::new(mutant);
            Ok(())
        })
    }
}

impl Mutant {
    async fn lose(&self, put: PutItem) {
        let Some(table) = self.table(&put.table_name).await else {
            return;
        };
        let Some(key) = table.definition.key.key_of(&put.item) else {
            return;
        };
        // If the item is not there any more, the bug does nothing this time.
        let delete = DeleteItem::new(put.table_name, key);
        let _: Result<WriteItemOutput> = self.inner.write_item(delete.into()).await;
    }
}
