//! The protocol without HTTP: request and response bodies, by operation.
//!
//! Each file contains tables of requests with DynamoDB's responses, and a function that checks them.

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
mod test_service;
mod time_to_live;
mod transact_get_items;
mod transact_write_items;
mod transact_write_order;
mod update_item;
mod update_table;
mod values;
