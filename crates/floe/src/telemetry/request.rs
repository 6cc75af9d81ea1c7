//! What telemetry records of requests and responses: names and numbers, never keys or values.

use std::collections::BTreeSet;

use floe_store::capacity::{ConsumedCapacity, ReturnConsumedCapacity};
use floe_store::op::{
    BatchGetItem, BatchGetItemOutput, BatchWriteItem, BatchWriteItemOutput, CreateTable,
    DescribeStream, GetItem, GetItemOutput, GetRecords, GetRecordsOutput, GetShardIterator,
    HoldChanges, ListStreams, ListStreamsOutput, ListTables, ListTablesOutput, Page, Query, Scan,
    StreamDescription, TransactGetItems, TransactGetItemsOutput, TransactWriteItems,
    TransactWriteItemsOutput, UpdateTable, UpdateTags, UpdateTimeToLive, WriteItem,
    WriteItemOutput,
};
use floe_store::table::TableDescription;

/// A request of an engine.
pub(super) trait Request {
    /// DynamoDB's name for it, given the name of the operation.
    fn named(&self, name: &'static str) -> &'static str {
        name
    }

    /// Its tables, each once.
    fn tables(&self) -> Vec<&str> {
        Vec::new()
    }

    fn index(&self) -> Option<&str> {
        None
    }

    fn is_consistent(&self) -> Option<bool> {
        None
    }

    /// Requests the consumed capacity. Returns whether the caller had requested it.
    fn request_consumed(&mut self) -> bool {
        true
    }
}

/// A response of an engine.
pub(super) trait Response {
    fn consumed(&self) -> &[ConsumedCapacity] {
        &[]
    }

    /// Removes the consumed capacity.
    fn remove_consumed(&mut self) {}

    /// How many items it contains, and how many were scanned.
    fn counts(&self) -> (Option<usize>, Option<usize>) {
        (None, None)
    }
}

macro_rules! of_one_table {
    ($($request:ty { $($methods:tt)* })*) => {$(
        impl Request for $request {
            fn tables(&self) -> Vec<&str> {
                vec![&self.table_name]
            }

            $($methods)*
        }
    )*};
}

macro_rules! of_many_tables {
    ($($request:ty => |$self:ident| $tables:expr;)*) => {$(
        impl Request for $request {
            fn tables(&$self) -> Vec<&str> {
                let tables: BTreeSet<&str> = $tables.collect();
                tables.into_iter().collect()
            }

            fn request_consumed(&mut $self) -> bool {
                request_capacity(&mut $self.return_capacity)
            }
        }
    )*};
}

macro_rules! reads_one_table {
    () => {
        fn is_consistent(&self) -> Option<bool> {
            Some(self.consistent)
        }

        fn request_consumed(&mut self) -> bool {
            request_capacity(&mut self.return_capacity)
        }
    };
}

macro_rules! reads_pages {
    () => {
        fn index(&self) -> Option<&str> {
            self.index_name.as_deref()
        }

        reads_one_table!();
    };
}

of_one_table! {
    GetItem { reads_one_table!(); }
    Query { reads_pages!(); }
    Scan { reads_pages!(); }
    CreateTable {}
    UpdateTable {}
    UpdateTimeToLive {}
    UpdateTags {}
}

of_many_tables! {
    BatchGetItem => |self| self.requests.keys().map(String::as_str);
    BatchWriteItem => |self| self.requests.keys().map(String::as_str);
    TransactGetItems => |self| self.gets.iter().map(|get| get.table_name.as_str());
    TransactWriteItems => |self| self.actions.iter().map(|action| action.table_name());
}

impl Request for WriteItem {
    fn named(&self, _name: &'static str) -> &'static str {
        self.operation()
    }

    fn tables(&self) -> Vec<&str> {
        vec![self.table_name()]
    }

    fn request_consumed(&mut self) -> bool {
        request_capacity(self.return_capacity_mut())
    }
}

/// The name of a table to describe or delete.
impl Request for String {
    fn tables(&self) -> Vec<&str> {
        vec![self]
    }
}

impl Request for ListStreams {
    fn tables(&self) -> Vec<&str> {
        self.table_name.iter().map(String::as_str).collect()
    }
}

impl Request for ListTables {}
impl Request for DescribeStream {}
impl Request for GetShardIterator {}
impl Request for GetRecords {}
impl Request for HoldChanges {}

fn request_capacity(detail: &mut ReturnConsumedCapacity) -> bool {
    let is_requested = detail.is_wanted();
    if !is_requested {
        *detail = ReturnConsumedCapacity::Total;
    }
    is_requested
}

macro_rules! charged {
    ($($response:ty => |$self:ident| $counts:expr;)*) => {$(
        impl Response for $response {
            fn consumed(&self) -> &[ConsumedCapacity] {
                self.consumed.as_slice()
            }

            fn remove_consumed(&mut self) {
                self.consumed = Default::default();
            }

            fn counts(&$self) -> (Option<usize>, Option<usize>) {
                $counts
            }
        }
    )*};
}

charged! {
    GetItemOutput => |self| (Some(usize::from(self.item.is_some())), None);
    BatchGetItemOutput => |self| (Some(self.items.values().map(Vec::len).sum()), None);
    TransactGetItemsOutput => |self| (Some(self.items.iter().flatten().count()), None);
    WriteItemOutput => |self| (None, None);
    BatchWriteItemOutput => |self| (None, None);
    TransactWriteItemsOutput => |self| (None, None);
    Page => |self| (Some(self.count), Some(self.scanned_count));
}

impl Response for GetRecordsOutput {
    fn counts(&self) -> (Option<usize>, Option<usize>) {
        (Some(self.records.len()), None)
    }
}

impl Response for TableDescription {}
impl Response for ListTablesOutput {}
impl Response for ListStreamsOutput {}
impl Response for StreamDescription {}
impl Response for String {}
impl Response for () {}
