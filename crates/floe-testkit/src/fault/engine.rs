//! The wrapper as an engine.

use std::sync::Arc;

use floe_store::op::{
    BatchGetItem, BatchGetItemOutput, BatchWrite, BatchWriteItem, BatchWriteItemOutput,
    CreateTable, DescribeStream, GetItem, GetItemOutput, GetRecords, GetRecordsOutput,
    GetShardIterator, Page, Query, Scan, StreamDescription, TransactGetItems,
    TransactGetItemsOutput, TransactWriteItems, TransactWriteItemsOutput, UpdateTable,
    UpdateTimeToLive, WriteItem, WriteItemOutput,
};
use floe_store::table::TableDescription;
use floe_store::{BoxFuture, Capabilities, Engine, Item, Result, forward_to};

use super::FaultEngine;
use super::batch::{leave_keys, leave_writes};
use super::control::Attempt;
use super::kind::Operation;
use super::position::stream_of;

/// A request that is wrong in itself is left to the engine, which says so; no fault hides it.
macro_rules! pass_if_wrong {
    ($engine:ident.$operation:ident($input:ident)) => {
        if $input.validate().is_err() {
            return $engine.inner.$operation($input).await;
        }
    };
}

/// Operations that faults strike on their way there and back, each answered by a method of the wrapper.
macro_rules! struck {
    ($($operation:ident($input:ident: $type:ident) -> $output:ty, on $resources:expr, $index:expr => $answer:ident;)*) => {$(
        fn $operation(&self, $input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move {
                let attempt = self.control.arrive(Operation::$type, $resources, $index);
                pass_if_wrong!(self.$operation($input));
                attempt.refuse()?;
                let answer = self.$answer(&attempt, $input).await;
                attempt.answer(answer)
            })
        }
    )*};
}

impl Engine for FaultEngine {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.loses_responses = true;
        capabilities.consistent_indexes = false;
        capabilities
    }

    forward_to!(self.inner; now, table_arn, health, list_tables, update_tags, list_streams, hold_changes);

    struck! {
        get_item(input: GetItem) -> GetItemOutput, on [&*input.table_name], None => stale_get;
        query(input: Query) -> Page, on [&*input.table_name], input.index_name.as_deref() => stale_query;
        scan(input: Scan) -> Page, on [&*input.table_name], input.index_name.as_deref() => stale_scan;
        describe_stream(input: DescribeStream) -> StreamDescription, on [&*input.stream_arn], None => shown_stream;
        get_shard_iterator(input: GetShardIterator) -> String, on [&*input.stream_arn], None => shown_iterator;
        get_records(input: GetRecords) -> GetRecordsOutput, on stream_of(&input.iterator), None => shown_records;
    }

    fn batch_get_item(&self, input: BatchGetItem) -> BoxFuture<'_, Result<BatchGetItemOutput>> {
        Box::pin(async move {
            let tables = input.requests.keys().map(String::as_str);
            let attempt = self.control.arrive(Operation::BatchGetItem, tables, None);
            pass_if_wrong!(self.batch_get_item(input));
            attempt.refuse()?;
            // A batch that is wrong for its tables is refused as a whole, so no part may be left out of it.
            if !self.fits_batch_get(&input).await {
                return self.inner.batch_get_item(input).await;
            }
            let mut input = input;
            let left = leave_keys(&attempt, &mut input);
            let mut answer = self.stale_batch_get(&attempt, input).await;
            if let Ok(output) = &mut answer {
                for (table, mut rest) in left {
                    match output.unprocessed.get_mut(&table) {
                        Some(unprocessed) => unprocessed.keys.append(&mut rest.keys),
                        None => drop(output.unprocessed.insert(table, rest)),
                    }
                }
            }
            attempt.answer(answer)
        })
    }

    fn transact_get_items(
        &self,
        input: TransactGetItems,
    ) -> BoxFuture<'_, Result<TransactGetItemsOutput>> {
        Box::pin(async move {
            let tables = input.gets.iter().map(|get| get.table_name.as_str());
            let attempt = self
                .control
                .arrive(Operation::TransactGetItems, tables, None);
            pass_if_wrong!(self.transact_get_items(input));
            attempt.refuse_transaction(input.gets.len())?;
            attempt.answer(self.inner.transact_get_items(input).await)
        })
    }

    fn write_item(&self, input: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>> {
        Box::pin(async move {
            let table = input.table_name();
            let attempt = self.control.arrive(Operation::WriteItem, [table], None);
            pass_if_wrong!(self.write_item(input));
            attempt.refuse()?;
            let written = vec![(input.table_name(), input.key_item())];
            let targets = self.targets(&attempt, written).await;
            let write = self.inner.write_item(input);
            attempt.answer(self.watched(&attempt, targets, write).await)
        })
    }

    fn batch_write_item(
        &self,
        input: BatchWriteItem,
    ) -> BoxFuture<'_, Result<BatchWriteItemOutput>> {
        Box::pin(async move {
            let tables = input.requests.keys().map(String::as_str);
            let attempt = self.control.arrive(Operation::BatchWriteItem, tables, None);
            pass_if_wrong!(self.batch_write_item(input));
            attempt.refuse()?;
            if !self.fits_batch_write(&input).await {
                return self.inner.batch_write_item(input).await;
            }
            let mut input = input;
            let left = leave_writes(&attempt, &mut input);
            let mut written = Vec::new();
            for (table, writes) in &input.requests {
                let writes = writes.iter().map(BatchWrite::key_item);
                written.extend(writes.map(|item| (table.as_str(), item)));
            }
            let targets = self.targets(&attempt, written).await;
            let write = self.inner.batch_write_item(input);
            let mut answer = self.watched(&attempt, targets, write).await;
            if let Ok(output) = &mut answer {
                for (table, mut writes) in left {
                    let unprocessed = output.unprocessed.entry(table).or_default();
                    unprocessed.append(&mut writes);
                }
            }
            attempt.answer(answer)
        })
    }

    fn transact_write_items(
        &self,
        input: TransactWriteItems,
    ) -> BoxFuture<'_, Result<TransactWriteItemsOutput>> {
        Box::pin(async move {
            let tables = input.actions.iter().map(|action| action.table_name());
            let attempt = self
                .control
                .arrive(Operation::TransactWriteItems, tables, None);
            pass_if_wrong!(self.transact_write_items(input));
            attempt.refuse_transaction(input.actions.len())?;
            let actions = input.actions.iter();
            let written = actions.map(|action| (action.table_name(), action.key_item()));
            let targets = self.targets(&attempt, written.collect()).await;
            let write = self.inner.transact_write_items(input);
            attempt.answer(self.watched(&attempt, targets, write).await)
        })
    }

    fn create_table(&self, input: CreateTable) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move {
            let name = input.table_name.clone();
            let answer = self.inner.create_table(input).await;
            if answer.is_ok() {
                self.watch.table_replaced(&name);
            }
            answer
        })
    }

    fn describe_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>> {
        self.inner.describe_table(table_name)
    }

    fn update_table(&self, input: UpdateTable) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move {
            let name = input.table_name.clone();
            let answer = self.inner.update_table(input).await;
            self.watch.table_changed(&name);
            answer
        })
    }

    fn delete_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move {
            let answer = self.inner.delete_table(table_name.clone()).await;
            if answer.is_ok() {
                self.watch.table_replaced(&table_name);
            }
            answer
        })
    }

    fn update_time_to_live(
        &self,
        input: UpdateTimeToLive,
    ) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move {
            let name = input.table_name.clone();
            let answer = self.inner.update_time_to_live(input).await;
            self.watch.table_changed(&name);
            answer
        })
    }
}

impl FaultEngine {
    async fn fits_batch_get(&self, input: &BatchGetItem) -> bool {
        let tables = self.definitions(&input.requests).await;
        tables.is_some_and(|tables| {
            let table = |name: &str| tables.get(name).map(Arc::as_ref);
            input.check(table).is_ok()
        })
    }

    async fn fits_batch_write(&self, input: &BatchWriteItem) -> bool {
        let tables = self.definitions(&input.requests).await;
        tables.is_some_and(|tables| {
            let table = |name: &str| tables.get(name).map(Arc::as_ref);
            input.check(table).is_ok()
        })
    }

    /// The keys of the items that a write is about, if it must be watched. An item without a key is
    /// refused by the engine, so there is nothing to watch.
    async fn targets(
        &self,
        attempt: &Attempt<'_>,
        written: Vec<(&str, &Item)>,
    ) -> Vec<(String, Item)> {
        let mut targets = Vec::new();
        if attempt.faults().keeps_past() {
            for (table, item) in written {
                let definition = self.definition(table).await;
                if let Some(key) = definition.and_then(|table| table.key.key_of(item)) {
                    targets.push((table.to_owned(), key));
                }
            }
        }
        targets
    }
}
