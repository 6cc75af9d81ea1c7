//! The operations, one file each: parsing the request, building the operation, and writing the response.
//!
//! All validate a request in DynamoDB's order: first the types of the whole body ([`read`](super::read)), then lengths,
//! ranges and enum values of its members, reported together, then forbidden combinations of parameters, then values,
//! then expressions. Checks that need the table are left to the engine.

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
