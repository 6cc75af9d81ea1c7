//! GetRecords.

use floe_store::Engine;
use floe_store::json::{RecordForm, Writer, write_record};
use floe_store::limits::{GET_RECORDS_MAX, SHARD_ITERATOR_CHARS};
use floe_store::op::{Faults, GetRecords, GetRecordsOutput};

use crate::wire::parameter::{limit, limit_faults};
use crate::wire::read::{Str, members, request};
use crate::wire::refusal::Result;
use crate::wire::write::write_item_hashed;

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
    let form = RecordForm {
        region: Some(region),
        identity: ["PrincipalId", "Type"],
        write_image: write_item_hashed,
    };
    let mut writer = Writer::with_capacity(4096);
    writer.object(|w| {
        w.name("Records").array(|w| {
            let records = output.records.iter();
            records.for_each(|record| write_record(w, record, &form));
        });
        if let Some(next) = &output.next_iterator {
            w.name("NextShardIterator").string(next);
        }
    });
    writer.into_bytes()
}
