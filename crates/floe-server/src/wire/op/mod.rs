//! The operations, one file each: the request as it is read, the operation that it asks for, the answer as it is
//! written.
//!
//! Each takes a request through the same steps, in DynamoDB's order: the shape of the whole body first
//! ([`read`](super::read)), then lengths, ranges and words of its members, reported together, then parameters that
//! cannot be mixed, then values, then expressions. What needs the table is left to the engine.

pub(super) mod batch_get_item;
pub(super) mod batch_write_item;
pub(super) mod create_table;
pub(super) mod delete_item;
pub(super) mod delete_table;
pub(super) mod describe_continuous_backups;
pub(super) mod describe_endpoints;
pub(super) mod describe_limits;
pub(super) mod describe_stream;
pub(super) mod describe_table;
pub(super) mod describe_time_to_live;
pub(super) mod get_item;
pub(super) mod get_records;
pub(super) mod get_shard_iterator;
pub(super) mod list_streams;
pub(super) mod list_tables;
pub(super) mod list_tags_of_resource;
pub(super) mod put_item;
pub(super) mod query;
pub(super) mod scan;
pub(super) mod tag_resource;
pub(super) mod transact_get_items;
pub(super) mod transact_write_items;
pub(super) mod untag_resource;
pub(super) mod update_continuous_backups;
pub(super) mod update_item;
pub(super) mod update_table;
pub(super) mod update_time_to_live;
