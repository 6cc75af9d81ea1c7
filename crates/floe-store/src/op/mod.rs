//! The operations, one file each: meaning, input, output, validation.
//!
//! Nothing here does I/O. An engine passes each request through the same steps, in DynamoDB's order, so that all
//! engines reject a request with several faults with the same error:
//!
//! 1. `validate` checks the request alone.
//! 2. The engine looks up the table, or returns [`missing_table`].
//! 3. `check` checks the request against the table. For a query or scan, `plan` does so and returns what to read
//!    ([`ReadPlan`]).
//! 4. For a write, the engine reads the item with the `key` and calls `apply`, which evaluates the condition and
//!    returns the item after the write ([`AppliedWrite`]).
//!
//! ```
//! use floe_store::expr::{Condition, Path, Update};
//! use floe_store::op::{UpdateItem, WriteItem};
//! use floe_store::table::KeyKind;
//! use floe_store::{Item, TableDef};
//!
//! let table = TableDef::builder("Counters", "id", KeyKind::S).build()?;
//! let key = Item::new().with("id", "visits");
//! let mut write: WriteItem = UpdateItem::new("Counters", key.clone(), Update::new().add("n", 1))
//!     .condition(Condition::lt(Path::attribute("n"), 10))
//!     .into();
//!
//! write.validate()?;
//! write.check(&table)?;
//! assert_eq!(write.key(&table)?, key);
//! let old = key.clone().with("n", 9);
//! let applied = write.apply(&table, Some(&old))?;
//! assert_eq!(applied.new, Some(key.with("n", 10)));
//! assert!(write.apply(&table, applied.new.as_ref()).is_err());
//! # Ok::<(), floe_store::Error>(())
//! ```
//!
//! In a transaction, a fault of one action for its table or item is not an error but a
//! [reason](crate::CancellationReason) for cancellation; see [`TransactWrite`].
//!
//! Messages are DynamoDB's, word for word. Where DynamoDB wraps an error of a single write in `1 validation error
//! detected: …`, so does this module. Where it prints a whole list or map of the request, the message here omits it.

mod batch_get_item;
mod batch_write_item;
mod constraint;
mod create_table;
mod delete_item;
mod fingerprint;
mod get_item;
mod keys;
mod list_tables;
mod meter;
mod plan;
mod put_item;
mod query;
mod references;
mod scan;
mod schema;
mod settings;
mod streams;
mod tags;
mod transact_get_items;
mod transact_write_items;
mod update_item;
mod update_table;
mod update_time_to_live;
mod values;
mod write;
mod write_item;

pub use batch_get_item::{
    BatchGetItem, BatchGetItemOutput, KeysAndAttributes, TABLE_NAMES_CONSTRAINT,
};
pub use batch_write_item::{BatchWrite, BatchWriteItem, BatchWriteItemOutput, WRITES_CONSTRAINT};
pub use constraint::{
    Faults, as_constraint_error, invalid, is_valid_name, length_at_least, length_at_most,
    validate_table_name,
};
pub use create_table::CreateTable;
pub use delete_item::DeleteItem;
pub use get_item::{GetItem, GetItemOutput};
pub use list_tables::{ListTables, ListTablesOutput};
pub use meter::Meter;
pub use plan::{ReadPlan, ReturnedAttributes, Segment, Select};
pub use put_item::PutItem;
pub use query::{Page, Query};
pub use scan::Scan;
pub use schema::CreateIndex;
pub use settings::ScalingUpdate;
pub use streams::{
    ChangeKind, ChangeRecord, DescribeStream, GetRecords, GetRecordsOutput, GetShardIterator,
    HoldChanges, IteratorKind, ListStreams, ListStreamsOutput, ServiceIdentity, Shard,
    StreamDescription, StreamStatus, StreamSummary, missing_shard, missing_stream,
};
pub use tags::{UpdateTags, check_tag_key};
pub use transact_get_items::{TransactGet, TransactGetItems, TransactGetItemsOutput};
pub use transact_write_items::{
    ConditionCheck, TransactWrite, TransactWriteItems, TransactWriteItemsOutput,
};
pub use update_item::UpdateItem;
pub use update_table::{IndexUpdate, UpdateTable};
pub use update_time_to_live::UpdateTimeToLive;
pub use write::{AppliedWrite, ReturnValues};
pub use write_item::{ItemCollectionMetrics, WriteItem, WriteItemOutput};

pub use crate::table::{KeyRole, KeySchemaElement};

use crate::error::Error;

/// The error for an operation on items of a table that does not exist.
pub fn missing_table() -> Error {
    Error::ResourceNotFound("Requested resource not found".to_owned())
}

/// The error for an operation on a table that does not exist.
pub fn missing_table_named(table_name: &str) -> Error {
    Error::ResourceNotFound(format!(
        "Requested resource not found: Table: {table_name} not found"
    ))
}
