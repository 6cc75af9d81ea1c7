//! GetRecords.

use floe_store::Engine;
use floe_store::limits::{GET_RECORDS_MAX, SHARD_ITERATOR_CHARS};
use floe_store::op::{ChangeRecord, Faults, GetRecords, GetRecordsOutput, ServiceIdentity};

use crate::wire::json::Writer;
use crate::wire::parameter::{limit, limit_faults};
use crate::wire::read::{Str, members, request};
use crate::wire::refusal::Result;
use crate::wire::write::{write_item, write_item_hashed, write_moment};

members! {
    Request<'a> as "GetRecordsInput" {
        "ShardIterator" => shard_iterator: Str<'a>,
        "Limit" => limit: i32,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let operation = operation(request(body)?)?;
    // An iterator begins with the resource name of its stream, as DynamoDB's do.
    let region = operation.iterator.split(':').nth(3).unwrap_or_default();
    let region = region.to_owned();
    let output = engine.get_records(operation).await?;
    Ok(write(&output, &region))
}

fn operation(request: Request<'_>) -> Result<GetRecords> {
    let mut faults = Faults::new();
    match &request.shard_iterator {
        None => faults.add_null("shardIterator"),
        Some(iterator) => faults.length(iterator, "shardIterator", SHARD_ITERATOR_CHARS),
    }
    limit_faults(&mut faults, request.limit, GET_RECORDS_MAX);
    faults.into_result()?;
    Ok(GetRecords {
        iterator: request.shard_iterator.unwrap_or_default().into_owned(),
        limit: limit(request.limit),
    })
}

fn write(output: &GetRecordsOutput, region: &str) -> Vec<u8> {
    let mut writer = Writer::with_capacity(4096);
    writer.object(|w| {
        w.name("Records").array(|w| {
            for record in &output.records {
                w.object(|w| write_record(w, record, region));
            }
        });
        if let Some(next) = &output.next_iterator {
            w.name("NextShardIterator").string(next);
        }
    });
    writer.into_bytes()
}

fn write_record(w: &mut Writer, record: &ChangeRecord, region: &str) {
    w.name("eventID").string(&record.event_id);
    w.name("eventName").string(record.kind.as_str());
    w.name("eventVersion").string("1.1");
    w.name("eventSource").string("aws:dynamodb");
    w.name("awsRegion").string(region);
    w.name("dynamodb").object(|w| write_change(w, record));
    if let Some(ServiceIdentity::Expiry) = record.identity {
        w.name("userIdentity").object(|w| {
            w.name("PrincipalId").string("dynamodb.amazonaws.com");
            w.name("Type").string("Service");
        });
    }
}

fn write_change(w: &mut Writer, record: &ChangeRecord) {
    w.name("ApproximateCreationDateTime");
    write_moment(w, record.created);
    write_item(w.name("Keys"), &record.keys);
    if let Some(item) = &record.new_image {
        write_item_hashed(w.name("NewImage"), item);
    }
    if let Some(item) = &record.old_image {
        write_item_hashed(w.name("OldImage"), item);
    }
    w.name("SequenceNumber").string(&record.sequence);
    w.name("SizeBytes").number(record.size_bytes);
    w.name("StreamViewType").string(record.view.as_str());
}
