//! The wire without HTTP: bodies of requests and the answers to them, operation by operation.
//!
//! Each file holds tables of requests with what DynamoDB answers, and one function that goes through them.

mod batch_get_item;
mod batch_write_item;
mod create_table;
mod delete_item;
mod get_item;
mod pages;
mod put_item;
mod query;
mod reads;
mod scan;
mod single_write;
mod streams;
mod tables;
mod tags;
mod time_to_live;
mod transact_get_items;
mod transact_write_items;
mod transact_write_order;
mod update_item;
mod update_table;
mod values;
mod world;
