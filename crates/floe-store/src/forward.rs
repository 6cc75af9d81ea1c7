//! Macros for engines that wrap another engine.
//!
//! - [`forward_to!`](crate::forward_to) writes methods of [`Engine`](crate::Engine) that only call the wrapped engine.
//! - [`each_operation!`](crate::each_operation) calls a macro of yours with the signatures of operations, to wrap all
//!   of them in the same way.
//!
//! Both take names of methods or of groups:
//!
//! | group | methods |
//! |---|---|
//! | `basics` | `capabilities`, `now`, `table_arn`, `health` (only for `forward_to!`) |
//! | `items` | `get_item` `batch_get_item` `transact_get_items` `write_item` `batch_write_item` `transact_write_items` `query` `scan` |
//! | `tables` | `create_table` `describe_table` `update_table` `delete_table` `list_tables` `update_time_to_live` `update_tags` |
//! | `streams` | `list_streams` `describe_stream` `get_shard_iterator` `get_records` `hold_changes` |
//! | `all` | all of these |

/// Writes methods of [`Engine`](crate::Engine) that forward the call to a field, which is an engine or a pointer to
/// one. Takes names of methods or of [groups](crate::forward).
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use floe_store::op::{GetItem, GetItemOutput};
/// use floe_store::{BoxFuture, Engine, Result, forward_to};
///
/// /// Counts the items that are read one by one.
/// struct Counting {
///     inner: Arc<dyn Engine>,
///     gets: AtomicU64,
/// }
///
/// impl Engine for Counting {
///     fn get_item(&self, input: GetItem) -> BoxFuture<'_, Result<GetItemOutput>> {
///         self.gets.fetch_add(1, Ordering::Relaxed);
///         self.inner.get_item(input)
///     }
///
///     forward_to!(self.inner; basics, tables, streams);
///     forward_to!(self.inner; batch_get_item, transact_get_items, query, scan);
///     forward_to!(self.inner; write_item, batch_write_item, transact_write_items);
/// }
///
/// /// Forwards every call.
/// struct Plain(Arc<dyn Engine>);
///
/// impl Engine for Plain {
///     forward_to!(self.0; all);
/// }
/// ```
#[macro_export]
macro_rules! forward_to {
    ($self:ident . $inner:tt; $($name:ident),* $(,)?) => {
        $( $crate::__forward! { $self.$inner; $name } )*
    };
}

/// Calls a macro with the signatures of operations and DynamoDB's names for them: `get_item(GetItem) -> GetItemOutput,
/// "GetItem";`. Takes names of methods or of [groups](crate::forward).
///
/// DynamoDB has several operations for [`write_item`](crate::Engine::write_item) and
/// [`update_tags`](crate::Engine::update_tags), and none for [`hold_changes`](crate::Engine::hold_changes). These have
/// the names `WriteItem`, `UpdateTags` and `HoldChanges`.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use floe_store::{BoxFuture, Engine, Result, each_operation, forward_to};
///
/// /// Records the names of all requests.
/// struct Recording {
///     inner: Arc<dyn Engine>,
///     requests: Mutex<Vec<&'static str>>,
/// }
///
/// macro_rules! record {
///     ($($operation:ident($input:ty) -> $output:ty, $name:literal;)*) => {$(
///         fn $operation(&self, input: $input) -> BoxFuture<'_, Result<$output>> {
///             self.requests.lock().unwrap().push($name);
///             self.inner.$operation(input)
///         }
///     )*};
/// }
///
/// impl Engine for Recording {
///     forward_to!(self.inner; basics);
///     each_operation!(record; all);
/// }
/// ```
#[macro_export]
macro_rules! each_operation {
    ($wrap:ident; $($name:ident),* $(,)?) => {
        $( $crate::__operation! { [$wrap] []; $name } )*
    };
}

/// One method of [`forward_to!`](crate::forward_to), or a group.
#[doc(hidden)]
#[macro_export]
macro_rules! __forward {
    ($self:ident . $inner:tt; all) => {
        $crate::forward_to!($self.$inner; basics, items, tables, streams);
    };
    ($self:ident . $inner:tt; basics) => {
        $crate::forward_to!($self.$inner; capabilities, now, table_arn, health);
    };
    ($self:ident . $inner:tt; capabilities) => {
        fn capabilities(&$self) -> $crate::Capabilities {
            $self.$inner.capabilities()
        }
    };
    ($self:ident . $inner:tt; now) => {
        fn now(&$self) -> $crate::Timestamp {
            $self.$inner.now()
        }
    };
    ($self:ident . $inner:tt; health) => {
        fn health(&$self) -> $crate::Health {
            $self.$inner.health()
        }
    };
    ($self:ident . $inner:tt; table_arn) => {
        fn table_arn(&$self, table_name: &str) -> ::std::option::Option<::std::string::String> {
            $self.$inner.table_arn(table_name)
        }
    };
    ($self:ident . $inner:tt; $name:ident) => {
        $crate::__operation! { [$crate::__forwarded] [$self.$inner;]; $name }
    };
}

/// Forwards one operation.
#[doc(hidden)]
#[macro_export]
macro_rules! __forwarded {
    ($self:ident . $inner:tt; $($operation:ident($input:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&$self, input: $input) -> $crate::BoxFuture<'_, $crate::Result<$output>> {
            $self.$inner.$operation(input)
        }
    )*};
}

/// Generates [`__operation!`](crate::__operation) from a table of all operations. `$d` is the dollar sign of the
/// generated macro.
macro_rules! operations {
    (($d:tt) $( $group:ident { $( $name:ident($input:ident) -> $output:ident, $label:literal; )* } )*) => {
        /// Calls a macro with the signature of an operation, or with those of a group.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! __operation {
            ([$d($d wrap:tt)*] [$d($d first:tt)*]; all) => {
                $( $crate::__operation! { [$d($d wrap)*] [$d($d first)*]; $group } )*
            };
            $(
                ([$d($d wrap:tt)*] [$d($d first:tt)*]; $group) => {
                    $( $crate::__operation! { [$d($d wrap)*] [$d($d first)*]; $name } )*
                };
                $(
                    ([$d($d wrap:tt)*] [$d($d first:tt)*]; $name) => {
                        $d($d wrap)* ! {
                            $d($d first)*
                            $name($crate::forward::types::$input) -> $crate::forward::types::$output, $label;
                        }
                    };
                )*
            )*
        }
    };
}

operations! { ($)
    items {
        get_item(GetItem) -> GetItemOutput, "GetItem";
        batch_get_item(BatchGetItem) -> BatchGetItemOutput, "BatchGetItem";
        transact_get_items(TransactGetItems) -> TransactGetItemsOutput, "TransactGetItems";
        write_item(WriteItem) -> WriteItemOutput, "WriteItem";
        batch_write_item(BatchWriteItem) -> BatchWriteItemOutput, "BatchWriteItem";
        transact_write_items(TransactWriteItems) -> TransactWriteItemsOutput, "TransactWriteItems";
        query(Query) -> Page, "Query";
        scan(Scan) -> Page, "Scan";
    }
    tables {
        create_table(CreateTable) -> TableDescription, "CreateTable";
        describe_table(String) -> TableDescription, "DescribeTable";
        update_table(UpdateTable) -> TableDescription, "UpdateTable";
        delete_table(String) -> TableDescription, "DeleteTable";
        list_tables(ListTables) -> ListTablesOutput, "ListTables";
        update_time_to_live(UpdateTimeToLive) -> TableDescription, "UpdateTimeToLive";
        update_tags(UpdateTags) -> Nothing, "UpdateTags";
    }
    streams {
        list_streams(ListStreams) -> ListStreamsOutput, "ListStreams";
        describe_stream(DescribeStream) -> StreamDescription, "DescribeStream";
        get_shard_iterator(GetShardIterator) -> String, "GetShardIterator";
        get_records(GetRecords) -> GetRecordsOutput, "GetRecords";
        hold_changes(HoldChanges) -> Nothing, "HoldChanges";
    }
}

/// The types in the table of operations, under one path.
#[doc(hidden)]
pub mod types {
    pub use std::string::String;

    pub use crate::op::*;
    pub use crate::table::TableDescription;

    /// The output of an operation that returns nothing.
    pub type Nothing = ();
}
