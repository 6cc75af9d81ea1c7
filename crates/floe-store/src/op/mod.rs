//! The operations, one file each: what it means, input, output, validation.
//!
//! An input is validated in two steps, as DynamoDB does: `validate` looks at the request alone, and
//! the functions that take a [`TableDef`](crate::TableDef) look at it against the table.

mod batch_get_item;
mod batch_write_item;
mod constraint;
mod create_table;
mod delete_item;
mod fingerprint;
mod get_item;
mod keys;
mod list_tables;
mod plan;
mod put_item;
mod query;
mod references;
mod scan;
mod schema;
mod streams;
mod tags;
mod transact_get_items;
mod transact_write_items;
mod update_item;
mod update_table;
mod update_time_to_live;
mod values;
mod write_item;

pub use batch_get_item::{BatchGetItem, BatchGetItemOutput, KeysAndAttributes};
pub use batch_write_item::{BatchWrite, BatchWriteItem, BatchWriteItemOutput};
pub use constraint::validate_table_name;
pub use create_table::{CreateIndex, CreateTable, KeyRole, KeySchemaElement};
pub use delete_item::DeleteItem;
pub use get_item::{GetItem, GetItemOutput};
pub use list_tables::{ListTables, ListTablesOutput};
pub use plan::{ReadPlan, Returned};
pub use put_item::PutItem;
pub use query::{Page, Query, Select};
pub use scan::{Scan, Segment};
pub use streams::{
    ChangeKind, ChangeRecord, DescribeStream, GetRecords, GetRecordsOutput, GetShardIterator,
    HoldChanges, IteratorKind, ListStreams, ListStreamsOutput, ServiceIdentity, Shard,
    StreamDescription, StreamStatus, StreamSummary, missing_shard, missing_stream,
};
pub use tags::UpdateTags;
pub use transact_get_items::{TransactGet, TransactGetItems, TransactGetItemsOutput};
pub use transact_write_items::{
    ConditionCheck, TransactWrite, TransactWriteItems, TransactWriteItemsOutput,
};
pub use update_item::UpdateItem;
pub use update_table::{IndexUpdate, UpdateTable};
pub use update_time_to_live::UpdateTimeToLive;
pub use write_item::{Applied, ItemCollectionMetrics, ReturnValues, WriteItem, WriteItemOutput};

use crate::error::Error;

/// The error of an operation on items whose table is not there.
pub fn missing_table() -> Error {
    Error::ResourceNotFound("Requested resource not found".to_owned())
}

/// The error of an operation on a table that is not there.
pub fn missing_table_named(table_name: &str) -> Error {
    Error::ResourceNotFound(format!(
        "Requested resource not found: Table: {table_name} not found"
    ))
}
