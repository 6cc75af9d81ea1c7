//! An engine around the engine that notes what each operation has consumed.
//!
//! The engine is always asked for it; who did not ask is not told.

use std::sync::Arc;

use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::op::{
    BatchGetItem, BatchGetItemOutput, BatchWriteItem, BatchWriteItemOutput, CreateTable,
    DescribeStream, GetItem, GetItemOutput, GetRecords, GetRecordsOutput, GetShardIterator,
    HoldChanges, ListStreams, ListStreamsOutput, ListTables, ListTablesOutput, Page, Query, Scan,
    StreamDescription, TransactGetItems, TransactGetItemsOutput, TransactWriteItems,
    TransactWriteItemsOutput, UpdateTable, UpdateTags, UpdateTimeToLive, WriteItem,
    WriteItemOutput,
};
use floe_store::table::TableDescription;
use floe_store::{BoxFuture, Capabilities, Engine, Result, Timestamp};

use super::Metrics;

pub(crate) struct MeasuredEngine {
    inner: Arc<dyn Engine>,
    metrics: Arc<Metrics>,
}

impl MeasuredEngine {
    pub(crate) fn new(inner: Arc<dyn Engine>, metrics: Arc<Metrics>) -> Self {
        Self { inner, metrics }
    }
}

/// Asks what is consumed. Whether the caller wants to know, too.
fn ask(detail: &mut ReturnConsumedCapacity) -> bool {
    let is_asked = *detail != ReturnConsumedCapacity::None;
    if !is_asked {
        *detail = ReturnConsumedCapacity::Total;
    }
    is_asked
}

macro_rules! charge {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, mut input: $type) -> BoxFuture<'_, Result<$output>> {
            let is_asked = ask(&mut input.return_capacity);
            Box::pin(async move {
                let mut output = self.inner.$operation(input).await?;
                self.metrics.charge($name, &output.consumed);
                if !is_asked {
                    output.consumed = Default::default();
                }
                Ok(output)
            })
        }
    )*};
}

macro_rules! forward {
    ($($operation:ident($type:ty) -> $output:ty;)*) => {$(
        fn $operation(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            self.inner.$operation(input)
        }
    )*};
}

impl Engine for MeasuredEngine {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn table_arn(&self, table_name: &str) -> Option<String> {
        self.inner.table_arn(table_name)
    }

    fn write_item(&self, mut input: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>> {
        let (operation, detail) = match &mut input {
            WriteItem::Put(put) => ("PutItem", &mut put.return_capacity),
            WriteItem::Update(update) => ("UpdateItem", &mut update.return_capacity),
            WriteItem::Delete(delete) => ("DeleteItem", &mut delete.return_capacity),
        };
        let is_asked = ask(detail);
        Box::pin(async move {
            let mut output = self.inner.write_item(input).await?;
            self.metrics.charge(operation, &output.consumed);
            if !is_asked {
                output.consumed = None;
            }
            Ok(output)
        })
    }

    charge! {
        get_item(GetItem) -> GetItemOutput, "GetItem";
        batch_get_item(BatchGetItem) -> BatchGetItemOutput, "BatchGetItem";
        transact_get_items(TransactGetItems) -> TransactGetItemsOutput, "TransactGetItems";
        batch_write_item(BatchWriteItem) -> BatchWriteItemOutput, "BatchWriteItem";
        transact_write_items(TransactWriteItems) -> TransactWriteItemsOutput, "TransactWriteItems";
        query(Query) -> Page, "Query";
        scan(Scan) -> Page, "Scan";
    }

    forward! {
        create_table(CreateTable) -> TableDescription;
        describe_table(String) -> TableDescription;
        update_table(UpdateTable) -> TableDescription;
        delete_table(String) -> TableDescription;
        list_tables(ListTables) -> ListTablesOutput;
        update_time_to_live(UpdateTimeToLive) -> TableDescription;
        update_tags(UpdateTags) -> ();
        list_streams(ListStreams) -> ListStreamsOutput;
        describe_stream(DescribeStream) -> StreamDescription;
        get_shard_iterator(GetShardIterator) -> String;
        get_records(GetRecords) -> GetRecordsOutput;
        hold_changes(HoldChanges) -> ();
    }
}
