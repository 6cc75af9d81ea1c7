//! An engine around an engine that lets others run before and after each request: so that tasks get between each other,
//! and a future can be dropped with a request that was not sent, or was and is not known of.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use floe_store::op::*;
use floe_store::table::TableDescription;
use floe_store::{BoxFuture, Capabilities, Engine, Result, Timestamp};

pub(crate) struct Slow(pub(crate) Arc<dyn Engine>);

macro_rules! slowly {
    ($($operation:ident($type:ty) -> $output:ty;)*) => {$(
        fn $operation(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move {
                tokio::task::yield_now().await;
                let output = self.0.$operation(input).await;
                tokio::task::yield_now().await;
                output
            })
        }
    )*};
}

impl Engine for Slow {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    slowly! {
        get_item(GetItem) -> GetItemOutput;
        batch_get_item(BatchGetItem) -> BatchGetItemOutput;
        transact_get_items(TransactGetItems) -> TransactGetItemsOutput;
        write_item(WriteItem) -> WriteItemOutput;
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

/// Polls a future so often, and drops it.
pub(crate) async fn interrupt<F: Future>(future: F, polls: u64) -> Option<F::Output> {
    let (mut future, mut left) = (pin!(future), polls);
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        left -= 1;
        match left {
            0 => Poll::Ready(None),
            _ => Poll::Pending,
        }
    })
    .await
}
