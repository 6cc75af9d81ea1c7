//! JSON to operations, and answers to JSON.
//!
//! A body is [read](read) straight into the members of a request, values into items, without a tree of JSON in
//! between. The file of each [operation](op) checks them in DynamoDB's order and makes an operation of `floe-store`
//! of them; the engine does it, and its output is written as the answer, or its error as a [refusal].

mod echo;
mod expressions;
mod java;
mod legacy;
mod op;
mod page;
mod parameter;
pub(crate) mod read;
pub(crate) mod refusal;
mod refuse;
mod single_write;
pub(crate) mod table;
pub(crate) mod value;
mod voice;
pub(crate) mod write;

use bytes::Bytes;
use floe_store::Engine;

use crate::failure_log::FailureLog;
use crate::service::Answer;
use refusal::{Refusal, Result};

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
            refused(&refuse::refuse(target, body).unwrap_or(Refusal::UnknownOperation))
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

/// What is wrong with a call before it matters who calls.
pub(crate) fn refuse(target: &str, body: &[u8]) -> Option<Answer> {
    refuse::refuse(target, body).as_ref().map(refused)
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
        "DynamoDB_20120810" => call(engine, endpoint, operation, body?).await,
        "DynamoDBStreams_20120810" => call_streams(engine, operation, body?).await,
        _ => Err(Refusal::UnknownOperation),
    }
}

async fn call(engine: &dyn Engine, endpoint: &str, operation: &str, body: &str) -> Result<Vec<u8>> {
    match operation {
        "BatchGetItem" => op::batch_get_item::answer(engine, body).await,
        "BatchWriteItem" => op::batch_write_item::answer(engine, body).await,
        "CreateTable" => op::create_table::answer(engine, body).await,
        "DeleteItem" => op::delete_item::answer(engine, body).await,
        "DeleteTable" => op::delete_table::answer(engine, body).await,
        "DescribeContinuousBackups" => op::describe_continuous_backups::answer(engine, body).await,
        "DescribeEndpoints" => op::describe_endpoints::answer(endpoint, body),
        "DescribeLimits" => op::describe_limits::answer(engine, body).await,
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
        _ => Err(Refusal::UnknownOperation),
    }
}

async fn call_streams(engine: &dyn Engine, operation: &str, body: &str) -> Result<Vec<u8>> {
    match operation {
        "DescribeStream" => op::describe_stream::answer(engine, body).await,
        "GetRecords" => op::get_records::answer(engine, body).await,
        "GetShardIterator" => op::get_shard_iterator::answer(engine, body).await,
        "ListStreams" => op::list_streams::answer(engine, body).await,
        _ => Err(Refusal::UnknownOperation),
    }
}
