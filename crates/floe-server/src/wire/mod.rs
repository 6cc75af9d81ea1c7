//! Converts JSON to operations, and their results to JSON.
//!
//! A body is [parsed](read) directly into the members of a request, and values into items, without a JSON tree in
//! between. The file of each [operation](op) validates the members in DynamoDB's order and builds an operation of
//! `floe-store`. The engine executes it, and its output, or its error ([`request_error`]), is written as the response.

pub(crate) mod body;
mod echo;
mod error_style;
mod expressions;
mod get_members;
mod java;
mod legacy;
mod op;
mod page;
mod parameter;
mod read;
mod request_error;
mod single_write;
pub(crate) mod table;
mod value;
pub(crate) mod write;

use bytes::Bytes;
use floe_store::Engine;
use floe_store::json::Reader;

use crate::api_response::ApiResponse;
use crate::failure_log::FailureLog;

pub(crate) use body::{object, write_item_hashed, write_list, write_text};
pub(crate) use echo::{AsItem, AsList, AsNames, AsValues, OrNull, echo};
pub(crate) use error_style::ErrorStyle;
pub(crate) use expressions::{Parameters, Placeholders, check_condition_size, check_unmixed};
pub(crate) use get_members::{GetMembers, projection};
pub(crate) use legacy::{
    AttributeValueUpdate, attribute_updates, attributes_to_get_faults, reword_for_attribute_updates,
};
pub(crate) use page::{Int, PageMembers, Segments, write_page};
pub(crate) use parameter::{
    RequestTableNames, TableName, enum_faults, item_table_name_faults, length_faults, limit,
    limit_faults, older_table_name_faults, require, required_enum_faults, return_capacity,
    return_capacity_faults, return_collection, return_collection_faults,
};
pub(crate) use read::{
    Ignored, Map, Members, Read, Str, ValueContext, begin_structure, empty_request, member,
    members, request, request_and_layer, skip_null,
};
pub(crate) use request_error::{RequestError, Result};
pub(crate) use single_write::{WriteMembers, apply_write, with_common_members};
pub(crate) use value::{Attribute, Attributes, TransactAttribute, empty_name_error};
pub(crate) use write::{
    ListedUnits, estimated_bytes, write_collections, write_consumed, write_consumed_list,
    write_items,
};

/// Executes a call. Details of failures that are not for clients are logged.
pub(crate) async fn handle(
    engine: &dyn Engine,
    failures: &FailureLog,
    endpoint: &str,
    target: &str,
    body: &[u8],
) -> ApiResponse {
    match dispatch(engine, endpoint, target, body).await {
        Ok(body) => ApiResponse {
            status: 200,
            body: Bytes::from(body),
        },
        Err(RequestError::UnknownOperation) => precheck(target, body)
            .unwrap_or_else(|| error_response(&RequestError::UnknownOperation)),
        Err(error) => {
            if let Some(details) = error.hidden_details() {
                let operation = target.rsplit('.').next().unwrap_or(target);
                failures.record(&format!("{operation} failed: {details}"));
            }
            error_response(&error)
        }
    }
}

/// Returns the error of a call that is rejected before its signature matters: DynamoDB parses the body first, then
/// looks up the operation, and then checks the signature.
pub(crate) fn precheck(target: &str, body: &[u8]) -> Option<ApiResponse> {
    // An empty body does not count as invalid JSON.
    if !body.is_empty() && !is_json(body) {
        return Some(error_response(&RequestError::Serialization(None)));
    }
    (!is_known(target)).then(|| error_response(&RequestError::UnknownOperation))
}

fn is_json(body: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(body) else {
        return false;
    };
    let mut reader = Reader::new(text);
    reader.skip().and_then(|()| reader.finish()).is_ok()
}

fn is_known(target: &str) -> bool {
    match target.split_once('.') {
        Some((TABLES, operation)) => TABLE_OPERATIONS.contains(&operation),
        Some((STREAMS, operation)) => STREAM_OPERATIONS.contains(&operation),
        _ => false,
    }
}

/// Returns the names of all operations.
pub(crate) fn operations() -> impl Iterator<Item = &'static str> {
    TABLE_OPERATIONS.iter().chain(STREAM_OPERATIONS).copied()
}

/// Whether a call may read a megabyte or more, and take as long as hundreds of others.
pub(crate) fn is_long(target: &str) -> bool {
    let operation = target.split_once('.').map(|(_, operation)| operation);
    matches!(
        operation,
        Some("BatchGetItem" | "GetRecords" | "Query" | "Scan" | "TransactGetItems")
    )
}

fn error_response(error: &RequestError) -> ApiResponse {
    ApiResponse {
        status: error.status(),
        body: Bytes::from(error.to_json()),
    }
}

async fn dispatch(
    engine: &dyn Engine,
    endpoint: &str,
    target: &str,
    body: &[u8],
) -> Result<Vec<u8>> {
    let (service, operation) = target
        .split_once('.')
        .ok_or(RequestError::UnknownOperation)?;
    let body = std::str::from_utf8(body).map_err(|_| RequestError::Serialization(None));
    match service {
        TABLES => call(operation, engine, endpoint, body?).await,
        STREAMS => call_streams(operation, engine, body?).await,
        _ => Err(RequestError::UnknownOperation),
    }
}

/// The services, as named in the target before the operation.
const TABLES: &str = "DynamoDB_20120810";
const STREAMS: &str = "DynamoDBStreams_20120810";

/// Declares the operations of a service: their names and handlers.
macro_rules! operations {
    ($names:ident, $call:ident($($given:ident: $type:ty),*) { $($name:literal => $handler:expr,)* }) => {
        const $names: &[&str] = &[$($name),*];

        async fn $call(operation: &str, $($given: $type),*) -> Result<Vec<u8>> {
            match operation {
                $($name => $handler,)*
                _ => Err(RequestError::UnknownOperation),
            }
        }
    };
}

operations! {
    TABLE_OPERATIONS, call(engine: &dyn Engine, endpoint: &str, body: &str) {
        "BatchGetItem" => op::batch_get_item::handle(engine, body).await,
        "BatchWriteItem" => op::batch_write_item::handle(engine, body).await,
        "CreateTable" => op::create_table::handle(engine, body).await,
        "DeleteItem" => op::delete_item::handle(engine, body).await,
        "DeleteTable" => op::delete_table::handle(engine, body).await,
        "DescribeContinuousBackups" => op::describe_continuous_backups::handle(engine, body).await,
        "DescribeEndpoints" => op::describe_endpoints::handle(endpoint, body),
        "DescribeLimits" => op::describe_limits::handle(body),
        "DescribeTable" => op::describe_table::handle(engine, body).await,
        "DescribeTimeToLive" => op::describe_time_to_live::handle(engine, body).await,
        "GetItem" => op::get_item::handle(engine, body).await,
        "ListTables" => op::list_tables::handle(engine, body).await,
        "ListTagsOfResource" => op::list_tags_of_resource::handle(engine, body).await,
        "PutItem" => op::put_item::handle(engine, body).await,
        "Query" => op::query::handle(engine, body).await,
        "Scan" => op::scan::handle(engine, body).await,
        "TagResource" => op::tag_resource::handle(engine, body).await,
        "TransactGetItems" => op::transact_get_items::handle(engine, body).await,
        "TransactWriteItems" => op::transact_write_items::handle(engine, body).await,
        "UntagResource" => op::untag_resource::handle(engine, body).await,
        "UpdateContinuousBackups" => op::update_continuous_backups::handle(engine, body).await,
        "UpdateItem" => op::update_item::handle(engine, body).await,
        "UpdateTable" => op::update_table::handle(engine, body).await,
        "UpdateTimeToLive" => op::update_time_to_live::handle(engine, body).await,
    }
}

operations! {
    STREAM_OPERATIONS, call_streams(engine: &dyn Engine, body: &str) {
        "DescribeStream" => op::describe_stream::handle(engine, body).await,
        "GetRecords" => op::get_records::handle(engine, body).await,
        "GetShardIterator" => op::get_shard_iterator::handle(engine, body).await,
        "ListStreams" => op::list_streams::handle(engine, body).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_checked_before_the_operation() {
        let unknown = Some(error_response(&RequestError::UnknownOperation));
        let broken = Some(error_response(&RequestError::Serialization(None)));
        for (target, body, expected) in [
            ("", "", &unknown),
            ("", "{}", &unknown),
            ("", "hi", &broken),
            ("whatever", "{}", &unknown),
            ("DynamoDB_20120810.ListTable", "{}", &unknown),
            ("DynamoDB_20120810.ListTable", "{}}", &broken),
            ("DynamoDB_20120810.ListTables", "{", &broken),
            ("DynamoDB_20120810.ListTables", "", &None),
            ("DynamoDB_20120810.ListTables", "{}", &None),
            ("DynamoDB_20120810.ListStreams", "{}", &unknown),
            ("DynamoDBStreams_20120810.ListStreams", "{}", &None),
        ] {
            assert_eq!(
                precheck(target, body.as_bytes()),
                *expected,
                "{target} {body}"
            );
        }
    }
}
