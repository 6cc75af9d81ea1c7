//! How engines around engines are written, without the methods that only hand a call on.
//!
//! - [`forward_to!`](crate::forward_to) writes methods of [`Engine`](crate::Engine) that do nothing but call the engine inside.
//! - [`each_operation!`](crate::each_operation) calls a macro of one's own with the signatures of operations, for those that are
//!   all wrapped in the same way.
//!
//! Both take names of methods, or of groups of them:
//!
//! | group | methods |
//! |---|---|
//! | `basics` | `capabilities`, `now`, `table_arn`, `health` (of `forward_to!` alone) |
//! | `items` | `get_item` `batch_get_item` `transact_get_items` `write_item` `batch_write_item` `transact_write_items` `query` `scan` |
//! | `tables` | `create_table` `describe_table` `update_table` `delete_table` `list_tables` `update_time_to_live` `update_tags` |
//! | `streams` | `list_streams` `describe_stream` `get_shard_iterator` `get_records` `hold_changes` |
//! | `all` | all of these |

/// Writes methods of [`Engine`](crate::Engine) that hand the call on to a field, which is an engine or points to one.
/// The names are those of methods, or of [groups](crate::forward).
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
/// /// Does nothing of its own.
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

/// Calls a macro once for each of these operations, with its signature and the name that DynamoDB has for it:
/// `get_item(GetItem) -> GetItemOutput, "GetItem";`. The names are those of methods, or of [groups](crate::forward).
///
/// What [`write_item`](crate::Engine::write_item) and [`update_tags`](crate::Engine::update_tags) do has several names there, and
/// [`hold_changes`](crate::Engine::hold_changes) none: they are called `WriteItem`, `UpdateTags` and `HoldChanges`.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use floe_store::{BoxFuture, Engine, Result, each_operation, forward_to};
///
/// /// Notes what is asked for.
/// struct Noting {
///     inner: Arc<dyn Engine>,
///     asked: Mutex<Vec<&'static str>>,
/// }
///
/// macro_rules! note {
///     ($($operation:ident($input:ty) -> $output:ty, $name:literal;)*) => {$(
///         fn $operation(&self, input: $input) -> BoxFuture<'_, Result<$output>> {
///             self.asked.lock().unwrap().push($name);
///             self.inner.$operation(input)
///         }
///     )*};
/// }
///
/// impl Engine for Noting {
///     forward_to!(self.inner; basics);
///     each_operation!(note; all);
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

/// The method of one operation.
#[doc(hidden)]
#[macro_export]
macro_rules! __forwarded {
    ($self:ident . $inner:tt; $($operation:ident($input:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&$self, input: $input) -> $crate::BoxFuture<'_, $crate::Result<$output>> {
            $self.$inner.$operation(input)
        }
    )*};
}

/// Calls a macro with the signature of an operation, or with those of a group.
#[doc(hidden)]
#[macro_export]
macro_rules! __operation {
    ([$($wrap:tt)*] [$($first:tt)*]; all) => {
        $crate::__operation! { [$($wrap)*] [$($first)*]; items }
        $crate::__operation! { [$($wrap)*] [$($first)*]; tables }
        $crate::__operation! { [$($wrap)*] [$($first)*]; streams }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; items) => {
        $crate::__operation! { [$($wrap)*] [$($first)*]; get_item }
        $crate::__operation! { [$($wrap)*] [$($first)*]; batch_get_item }
        $crate::__operation! { [$($wrap)*] [$($first)*]; transact_get_items }
        $crate::__operation! { [$($wrap)*] [$($first)*]; write_item }
        $crate::__operation! { [$($wrap)*] [$($first)*]; batch_write_item }
        $crate::__operation! { [$($wrap)*] [$($first)*]; transact_write_items }
        $crate::__operation! { [$($wrap)*] [$($first)*]; query }
        $crate::__operation! { [$($wrap)*] [$($first)*]; scan }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; tables) => {
        $crate::__operation! { [$($wrap)*] [$($first)*]; create_table }
        $crate::__operation! { [$($wrap)*] [$($first)*]; describe_table }
        $crate::__operation! { [$($wrap)*] [$($first)*]; update_table }
        $crate::__operation! { [$($wrap)*] [$($first)*]; delete_table }
        $crate::__operation! { [$($wrap)*] [$($first)*]; list_tables }
        $crate::__operation! { [$($wrap)*] [$($first)*]; update_time_to_live }
        $crate::__operation! { [$($wrap)*] [$($first)*]; update_tags }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; streams) => {
        $crate::__operation! { [$($wrap)*] [$($first)*]; list_streams }
        $crate::__operation! { [$($wrap)*] [$($first)*]; describe_stream }
        $crate::__operation! { [$($wrap)*] [$($first)*]; get_shard_iterator }
        $crate::__operation! { [$($wrap)*] [$($first)*]; get_records }
        $crate::__operation! { [$($wrap)*] [$($first)*]; hold_changes }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; get_item) => {
        $($wrap)* ! {
            $($first)* get_item($crate::op::GetItem) -> $crate::op::GetItemOutput, "GetItem";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; batch_get_item) => {
        $($wrap)* ! {
            $($first)* batch_get_item($crate::op::BatchGetItem) -> $crate::op::BatchGetItemOutput, "BatchGetItem";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; transact_get_items) => {
        $($wrap)* ! {
            $($first)* transact_get_items($crate::op::TransactGetItems) -> $crate::op::TransactGetItemsOutput, "TransactGetItems";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; write_item) => {
        $($wrap)* ! {
            $($first)* write_item($crate::op::WriteItem) -> $crate::op::WriteItemOutput, "WriteItem";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; batch_write_item) => {
        $($wrap)* ! {
            $($first)* batch_write_item($crate::op::BatchWriteItem) -> $crate::op::BatchWriteItemOutput, "BatchWriteItem";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; transact_write_items) => {
        $($wrap)* ! {
            $($first)* transact_write_items($crate::op::TransactWriteItems) -> $crate::op::TransactWriteItemsOutput, "TransactWriteItems";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; query) => {
        $($wrap)* ! {
            $($first)* query($crate::op::Query) -> $crate::op::Page, "Query";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; scan) => {
        $($wrap)* ! {
            $($first)* scan($crate::op::Scan) -> $crate::op::Page, "Scan";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; create_table) => {
        $($wrap)* ! {
            $($first)* create_table($crate::op::CreateTable) -> $crate::table::TableDescription, "CreateTable";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; describe_table) => {
        $($wrap)* ! {
            $($first)* describe_table(::std::string::String) -> $crate::table::TableDescription, "DescribeTable";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; update_table) => {
        $($wrap)* ! {
            $($first)* update_table($crate::op::UpdateTable) -> $crate::table::TableDescription, "UpdateTable";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; delete_table) => {
        $($wrap)* ! {
            $($first)* delete_table(::std::string::String) -> $crate::table::TableDescription, "DeleteTable";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; list_tables) => {
        $($wrap)* ! {
            $($first)* list_tables($crate::op::ListTables) -> $crate::op::ListTablesOutput, "ListTables";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; update_time_to_live) => {
        $($wrap)* ! {
            $($first)* update_time_to_live($crate::op::UpdateTimeToLive) -> $crate::table::TableDescription, "UpdateTimeToLive";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; update_tags) => {
        $($wrap)* ! {
            $($first)* update_tags($crate::op::UpdateTags) -> (), "UpdateTags";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; list_streams) => {
        $($wrap)* ! {
            $($first)* list_streams($crate::op::ListStreams) -> $crate::op::ListStreamsOutput, "ListStreams";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; describe_stream) => {
        $($wrap)* ! {
            $($first)* describe_stream($crate::op::DescribeStream) -> $crate::op::StreamDescription, "DescribeStream";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; get_shard_iterator) => {
        $($wrap)* ! {
            $($first)* get_shard_iterator($crate::op::GetShardIterator) -> ::std::string::String, "GetShardIterator";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; get_records) => {
        $($wrap)* ! {
            $($first)* get_records($crate::op::GetRecords) -> $crate::op::GetRecordsOutput, "GetRecords";
        }
    };
    ([$($wrap:tt)*] [$($first:tt)*]; hold_changes) => {
        $($wrap)* ! {
            $($first)* hold_changes($crate::op::HoldChanges) -> (), "HoldChanges";
        }
    };
}
