//! An engine without permission to write items.

use std::sync::Arc;

use floe_store::op::*;
use floe_store::table::TableDescription;
use floe_store::{BoxFuture, Capabilities, Engine, Error, Result, Timestamp};

/// An engine that denies writes of single items.
pub(crate) struct ReadOnly(pub(crate) Arc<dyn Engine>);

macro_rules! forwarded {
    ($($operation:ident($type:ty) -> $output:ty;)*) => {$(
        fn $operation(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            self.0.$operation(input)
        }
    )*};
}

impl Engine for ReadOnly {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn write_item(&self, _: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>> {
        let denied = Error::AccessDenied("not authorized to perform: dynamodb:PutItem".to_owned());
        Box::pin(async { Err(denied) })
    }

    forwarded! {
        get_item(GetItem) -> GetItemOutput;
        batch_get_item(BatchGetItem) -> BatchGetItemOutput;
        transact_get_items(TransactGetItems) -> TransactGetItemsOutput;
        batch_write_item(BatchWriteItem) -> BatchWriteItemOutput;
        transact_write_items(TransactWriteItems) -> TransactWriteItemsOutput;
        query(Query) -> Page;
        scan(Scan) -> Page;
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
    }
}
