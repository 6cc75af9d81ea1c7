//! JSON to operations, and answers to JSON.
//!
//! A body is [read](read) straight into the members of a request, values into items, without a tree of JSON in
//! between. The file of each [operation](op) checks them in DynamoDB's order and makes an operation of `floe-store`
//! of them; the engine does it, and its output is written as the answer, or its error as a [refusal].

pub(crate) mod body;
mod echo;
mod expressions;
mod java;
mod legacy;
mod op;
mod page;
mod parameter;
mod projected;
mod read;
mod refusal;
mod single_write;
pub(crate) mod table;
mod value;
mod voice;
pub(crate) mod write;

use bytes::Bytes;
use floe_store::Engine;
use floe_store::json::Reader;

use crate::answer::Answer;
use crate::failure_log::FailureLog;

pub(crate) use body::{object, write_item_hashed, write_list, write_text};
pub(crate) use echo::{AsItem, AsList, AsNames, AsValues, OrNull, echo};
pub(crate) use expressions::{Parameters, Placeholders, check_condition_size, check_unmixed};
pub(crate) use legacy::{
    AttributeValueUpdate, attribute_updates, attributes_to_get_faults, without_expressions,
};
pub(crate) use page::{Int, PageMembers, Segments, write_page};
pub(crate) use parameter::{
    GivenNames, TableName, item_table_name_faults, length_faults, limit, limit_faults,
    older_table_name_faults, require, required_word_faults, return_capacity,
    return_capacity_faults, return_collection, return_collection_faults, word_faults,
};
pub(crate) use projected::{Projected, projection};
pub(crate) use read::{
    Ignored, Map, Members, Place, Read, Str, begin_structure, empty_request, member, members,
    request, request_and_layer, skip_null,
};
pub(crate) use refusal::{Refusal, Result};
pub(crate) use single_write::{WriteMembers, completed, send};
pub(crate) use value::{Attribute, Attributes, TransactAttribute, nameless};
pub(crate) use voice::Voice;
pub(crate) use write::{
    Split, room, write_collections, write_consumed, write_consumed_list, write_items,
};

/// Answers a call. Details of failures that are not for clients go to the log.
pub(crate) async fn answer(
    engine: &dyn Engine,
    failures: &FailureLog,
    endpoint: &str,
    target: &str,
    body: &[u8],
) -> Answer {
    match dispatch(engine, endpoint, target, body).await {
        Ok(body) => Answer {
            status: 200,
            body: Bytes::from(body),
        },
        Err(Refusal::UnknownOperation) => {
            refuse(target, body).unwrap_or_else(|| refused(&Refusal::UnknownOperation))
        }
        Err(refusal) => {
            if let Some(details) = refusal.hidden_details() {
                let operation = target.rsplit('.').next().unwrap_or(target);
                failures.record(&format!("{operation} failed: {details}"));
            }
            refused(&refusal)
        }
    }
}

/// What is wrong with a call before it matters who calls: DynamoDB parses the body first, then looks for the operation,
/// and only then at the signature.
pub(crate) fn refuse(target: &str, body: &[u8]) -> Option<Answer> {
    // Nothing at all is no broken JSON.
    if !body.is_empty() && !is_json(body) {
        return Some(refused(&Refusal::Serialization(None)));
    }
    (!is_known(target)).then(|| refused(&Refusal::UnknownOperation))
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

/// The names of all operations.
pub(crate) fn operations() -> impl Iterator<Item = &'static str> {
    TABLE_OPERATIONS.iter().chain(STREAM_OPERATIONS).copied()
}

/// Whether a call may read a megabyte and more, and so take as long as hundreds of others.
pub(crate) fn is_long(target: &str) -> bool {
    let operation = target.split_once('.').map(|(_, operation)| operation);
    matches!(
        operation,
        Some("BatchGetItem" | "GetRecords" | "Query" | "Scan" | "TransactGetItems")
    )
}

fn refused(refusal: &Refusal) -> Answer {
    Answer {
        status: refusal.status(),
        body: Bytes::from(refusal.to_json()),
    }
}

async fn dispatch(
    engine: &dyn Engine,
    endpoint: &str,
    target: &str,
    body: &[u8],
) -> Result<Vec<u8>> {
    let (service, operation) = target.split_once('.').ok_or(Refusal::UnknownOperation)?;
    let body = std::str::from_utf8(body).map_err(|_| Refusal::Serialization(None));
    match service {
        TABLES => call(operation, engine, endpoint, body?).await,
        STREAMS => call_streams(operation, engine, body?).await,
        _ => Err(Refusal::UnknownOperation),
    }
}

/// The services, as a target names them before the operation.
const TABLES: &str = "DynamoDB_20120810";
const STREAMS: &str = "DynamoDBStreams_20120810";

/// Declares the operations of a service: their names, and what answers a call of each.
macro_rules! operations {
    ($names:ident, $call:ident($($given:ident: $type:ty),*) { $($name:literal => $answer:expr,)* }) => {
        const $names: &[&str] = &[$($name),*];

        async fn $call(operation: &str, $($given: $type),*) -> Result<Vec<u8>> {
            match operation {
                $($name => $answer,)*
                _ => Err(Refusal::UnknownOperation),
            }
        }
    };
}

operations! {
    TABLE_OPERATIONS, call(engine: &dyn Engine, endpoint: &str, body: &str) {
        "BatchGetItem" => op::batch_get_item::answer(engine, body).await,
        "BatchWriteItem" => op::batch_write_item::answer(engine, body).await,
        "CreateTable" => op::create_table::answer(engine, body).await,
        "DeleteItem" => op::delete_item::answer(engine, body).await,
        "DeleteTable" => op::delete_table::answer(engine, body).await,
        "DescribeContinuousBackups" => op::describe_continuous_backups::answer(engine, body).await,
        "DescribeEndpoints" => op::describe_endpoints::answer(endpoint, body),
        "DescribeLimits" => op::describe_limits::answer(body),
        "DescribeTable" => op::describe_table::answer(engine, body).await,
        "DescribeTimeToLive" => op::describe_time_to_live::answer(engine, body).await,
        "GetItem" => op::get_item::answer(engine, body).await,
        "ListTables" => op::list_tables::answer(engine, body).await,
        "ListTagsOfResource" => op::list_tags_of_resource::answer(engine, body).await,
        "PutItem" => op::put_item::answer(engine, body).await,
        "Query" => op::query::answer(engine, body).await,
        "Scan" => op::scan::answer(engine, body).await,
        "TagResource" => op::tag_resource::answer(engine, body).await,
        "TransactGetItems" => op::transact_get_items::answer(engine, body).await,
        "TransactWriteItems" => op::transact_write_items::answer(engine, body).await,
        "UntagResource" => op::untag_resource::answer(engine, body).await,
        "UpdateContinuousBackups" => op::update_continuous_backups::answer(engine, body).await,
        "UpdateItem" => op::update_item::answer(engine, body).await,
        "UpdateTable" => op::update_table::answer(engine, body).await,
        "UpdateTimeToLive" => op::update_time_to_live::answer(engine, body).await,
    }
}

operations! {
    STREAM_OPERATIONS, call_streams(engine: &dyn Engine, body: &str) {
        "DescribeStream" => op::describe_stream::answer(engine, body).await,
        "GetRecords" => op::get_records::answer(engine, body).await,
        "GetShardIterator" => op::get_shard_iterator::answer(engine, body).await,
        "ListStreams" => op::list_streams::answer(engine, body).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_comes_before_the_operation() {
        let unknown = Some(refused(&Refusal::UnknownOperation));
        let broken = Some(refused(&Refusal::Serialization(None)));
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
                refuse(target, body.as_bytes()),
                *expected,
                "{target} {body}"
            );
        }
    }
}
