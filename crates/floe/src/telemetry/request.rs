//! What requests and their answers tell about themselves: names and numbers, never keys or values.

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
    /// The name that DynamoDB has for it, given that of the operation.
    fn named(&self, name: &'static str) -> &'static str {
        name
    }

    /// The tables that it is about, each once.
    fn tables(&self) -> Vec<&str> {
        Vec::new()
    }

    fn index(&self) -> Option<&str> {
        None
    }

    fn is_consistent(&self) -> Option<bool> {
        None
    }

    /// Asks what it consumes. Whether the caller wants to know, too.
    fn ask_consumed(&mut self) -> bool {
        true
    }
}

/// An answer of an engine.
pub(super) trait Answer {
    fn consumed(&self) -> &[ConsumedCapacity] {
        &[]
    }

    /// Takes out what was consumed.
    fn forget_consumed(&mut self) {}

    /// How many items it holds, and how many were looked at for them.
    fn counts(&self) -> (Option<usize>, Option<usize>) {
        (None, None)
    }
}

macro_rules! of_one_table {
    ($($request:ty { $($besides:tt)* })*) => {$(
        impl Request for $request {
            fn tables(&self) -> Vec<&str> {
                vec![&self.table_name]
            }

            $($besides)*
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

            fn ask_consumed(&mut $self) -> bool {
                ask(&mut $self.return_capacity)
            }
        }
    )*};
}

macro_rules! reads_one_table {
    () => {
        fn is_consistent(&self) -> Option<bool> {
            Some(self.consistent)
        }

        fn ask_consumed(&mut self) -> bool {
            ask(&mut self.return_capacity)
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

    fn ask_consumed(&mut self) -> bool {
        ask(self.return_capacity_mut())
    }
}

/// The name of a table, which is described or removed.
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

fn ask(detail: &mut ReturnConsumedCapacity) -> bool {
    let is_asked = detail.is_wanted();
    if !is_asked {
        *detail = ReturnConsumedCapacity::Total;
    }
    is_asked
}

macro_rules! charged {
    ($($answer:ty => |$self:ident| $counts:expr;)*) => {$(
        impl Answer for $answer {
            fn consumed(&self) -> &[ConsumedCapacity] {
                self.consumed.as_slice()
            }

            fn forget_consumed(&mut self) {
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

impl Answer for GetRecordsOutput {
    fn counts(&self) -> (Option<usize>, Option<usize>) {
        (Some(self.records.len()), None)
    }
}

impl Answer for TableDescription {}
impl Answer for ListTablesOutput {}
impl Answer for ListStreamsOutput {}
impl Answer for StreamDescription {}
impl Answer for String {}
impl Answer for () {}
