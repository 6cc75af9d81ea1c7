//! The implementation of `Engine`.

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
use super::batch::{take_unprocessed_keys, take_unprocessed_writes};
use super::control::Attempt;
use super::kind::Operation;
use super::position::stream_of;

/// Passes an invalid request to the engine, which rejects it: no fault hides a validation error.
macro_rules! pass_if_invalid {
    ($engine:ident.$operation:ident($input:ident)) => {
        if $input.validate().is_err() {
            return $engine.inner.$operation($input).await;
        }
    };
}

/// Implements operations that are rejected or lost by [`Attempt`] and otherwise handled by a method of the wrapper.
macro_rules! faulty {
    ($($operation:ident($input:ident: $type:ident) -> $output:ty, on $resources:expr, $index:expr => $run:ident;)*) => {$(
        fn $operation(&self, $input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move {
                let attempt = self.control.begin(Operation::$type, $resources, $index);
                pass_if_invalid!(self.$operation($input));
                attempt.reject()?;
                let response = self.$run(&attempt, $input).await;
                attempt.respond(response)
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

    faulty! {
        get_item(input: GetItem) -> GetItemOutput, on [&*input.table_name], None => stale_get;
        query(input: Query) -> Page, on [&*input.table_name], input.index_name.as_deref() => stale_query;
        scan(input: Scan) -> Page, on [&*input.table_name], input.index_name.as_deref() => stale_scan;
        describe_stream(input: DescribeStream) -> StreamDescription, on [&*input.stream_arn], None => describe_virtual_stream;
        get_shard_iterator(input: GetShardIterator) -> String, on [&*input.stream_arn], None => virtual_iterator;
        get_records(input: GetRecords) -> GetRecordsOutput, on stream_of(&input.iterator), None => virtual_records;
    }

    fn batch_get_item(&self, input: BatchGetItem) -> BoxFuture<'_, Result<BatchGetItemOutput>> {
        Box::pin(async move {
            let tables = input.requests.keys().map(String::as_str);
            let attempt = self.control.begin(Operation::BatchGetItem, tables, None);
            pass_if_invalid!(self.batch_get_item(input));
            attempt.reject()?;
            // The engine rejects a batch that does not match its tables as a whole, so no part may be left out.
            if !self.fits_batch_get(&input).await {
                return self.inner.batch_get_item(input).await;
            }
            let mut input = input;
            let left = take_unprocessed_keys(&attempt, &mut input);
            let mut response = self.stale_batch_get(&attempt, input).await;
            if let Ok(output) = &mut response {
                for (table, mut rest) in left {
                    match output.unprocessed.get_mut(&table) {
                        Some(unprocessed) => unprocessed.keys.append(&mut rest.keys),
                        None => drop(output.unprocessed.insert(table, rest)),
                    }
                }
            }
            attempt.respond(response)
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
                .begin(Operation::TransactGetItems, tables, None);
            pass_if_invalid!(self.transact_get_items(input));
            attempt.reject_transaction(input.gets.len())?;
            attempt.respond(self.inner.transact_get_items(input).await)
        })
    }

    fn write_item(&self, input: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>> {
        Box::pin(async move {
            let table = input.table_name();
            let attempt = self.control.begin(Operation::WriteItem, [table], None);
            pass_if_invalid!(self.write_item(input));
            attempt.reject()?;
            let written = vec![(input.table_name(), input.key_item())];
            let targets = self.targets(&attempt, written).await;
            let write = self.inner.write_item(input);
            attempt.respond(self.track_write(&attempt, targets, write).await)
        })
    }

    fn batch_write_item(
        &self,
        input: BatchWriteItem,
    ) -> BoxFuture<'_, Result<BatchWriteItemOutput>> {
        Box::pin(async move {
            let tables = input.requests.keys().map(String::as_str);
            let attempt = self.control.begin(Operation::BatchWriteItem, tables, None);
            pass_if_invalid!(self.batch_write_item(input));
            attempt.reject()?;
            if !self.fits_batch_write(&input).await {
                return self.inner.batch_write_item(input).await;
            }
            let mut input = input;
            let left = take_unprocessed_writes(&attempt, &mut input);
            let mut written = Vec::new();
            for (table, writes) in &input.requests {
                let writes = writes.iter().map(BatchWrite::key_item);
                written.extend(writes.map(|item| (table.as_str(), item)));
            }
            let targets = self.targets(&attempt, written).await;
            let write = self.inner.batch_write_item(input);
            let mut response = self.track_write(&attempt, targets, write).await;
            if let Ok(output) = &mut response {
                for (table, mut writes) in left {
                    let unprocessed = output.unprocessed.entry(table).or_default();
                    unprocessed.append(&mut writes);
                }
            }
            attempt.respond(response)
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
                .begin(Operation::TransactWriteItems, tables, None);
            pass_if_invalid!(self.transact_write_items(input));
            attempt.reject_transaction(input.actions.len())?;
            let actions = input.actions.iter();
            let written = actions.map(|action| (action.table_name(), action.key_item()));
            let targets = self.targets(&attempt, written.collect()).await;
            let write = self.inner.transact_write_items(input);
            attempt.respond(self.track_write(&attempt, targets, write).await)
        })
    }

    fn create_table(&self, input: CreateTable) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move {
            let name = input.table_name.clone();
            let response = self.inner.create_table(input).await;
            if response.is_ok() {
                self.tracker.table_replaced(&name);
            }
            response
        })
    }

    fn describe_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>> {
        self.inner.describe_table(table_name)
    }

    fn update_table(&self, input: UpdateTable) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move {
            let name = input.table_name.clone();
            let response = self.inner.update_table(input).await;
            self.tracker.table_changed(&name);
            response
        })
    }

    fn delete_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move {
            let response = self.inner.delete_table(table_name.clone()).await;
            if response.is_ok() {
                self.tracker.table_replaced(&table_name);
            }
            response
        })
    }

    fn update_time_to_live(
        &self,
        input: UpdateTimeToLive,
    ) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move {
            let name = input.table_name.clone();
            let response = self.inner.update_time_to_live(input).await;
            self.tracker.table_changed(&name);
            response
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

    /// The keys of the written items, if their versions must be recorded. The engine rejects items without a key,
    /// so they are left out.
    async fn targets(
        &self,
        attempt: &Attempt<'_>,
        written: Vec<(&str, &Item)>,
    ) -> Vec<(String, Item)> {
        let mut targets = Vec::new();
        if attempt.faults().keeps_versions() {
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
