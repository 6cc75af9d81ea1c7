//! The model as an engine.

use std::sync::{Mutex, MutexGuard, PoisonError};

use floe_store::env::{Env, Timestamp};
use floe_store::op::*;
use floe_store::table::TableDescription;
use floe_store::{BoxFuture, Capabilities, Engine, Item, Result};

use super::state::State;

/// An engine that is slow and obviously right. Keeps everything in memory, under one lock.
#[derive(Debug)]
pub struct ModelEngine {
    state: Mutex<State>,
}

impl ModelEngine {
    /// An empty model that takes time and ids from here.
    pub fn new(env: Env) -> Self {
        Self {
            state: Mutex::new(State::new(env)),
        }
    }

    /// Removes all items that have expired by now.
    pub fn sweep(&self) {
        self.state().sweep();
    }

    /// A page of a scan that finds the entries in this order, given by their keys. Scans go in the
    /// order of the engine, so another engine's order must be known to compare its pages.
    pub(super) fn scan_in_order(&self, scan: &Scan, order: &[Item]) -> Result<Page> {
        self.state().scan_in_order(scan, order)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is only ever changed after everything that could fail.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Implements operations by the methods of [`State`] of the same name.
macro_rules! operations {
    ($($name:ident($input:ident: $type:ty) -> $output:ty;)*) => {$(
        fn $name(&self, $input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move { self.state().$name(&$input) })
        }
    )*};
}

impl Engine for ModelEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }

    fn now(&self) -> Timestamp {
        self.state().env.now()
    }

    operations! {
        get_item(input: GetItem) -> GetItemOutput;
        batch_get_item(input: BatchGetItem) -> BatchGetItemOutput;
        transact_get_items(input: TransactGetItems) -> TransactGetItemsOutput;
        write_item(input: WriteItem) -> WriteItemOutput;
        batch_write_item(input: BatchWriteItem) -> BatchWriteItemOutput;
        transact_write_items(input: TransactWriteItems) -> TransactWriteItemsOutput;
        query(input: Query) -> Page;
        scan(input: Scan) -> Page;
        create_table(input: CreateTable) -> TableDescription;
        describe_table(table_name: String) -> TableDescription;
        update_table(input: UpdateTable) -> TableDescription;
        delete_table(table_name: String) -> TableDescription;
        list_tables(input: ListTables) -> ListTablesOutput;
        update_time_to_live(input: UpdateTimeToLive) -> TableDescription;
        update_tags(input: UpdateTags) -> ();
        list_streams(input: ListStreams) -> ListStreamsOutput;
        describe_stream(input: DescribeStream) -> StreamDescription;
        get_shard_iterator(input: GetShardIterator) -> String;
        get_records(input: GetRecords) -> GetRecordsOutput;
        hold_changes(input: HoldChanges) -> ();
    }
}
