//! GetRecords.

use floe_store::Engine;
use floe_store::json::{RecordForm, Writer, write_record};
use floe_store::limits::{GET_RECORDS_MAX, SHARD_ITERATOR_CHARS};
use floe_store::op::{Faults, GetRecords};

use crate::wire::{
    Result, Str, length_faults, limit, limit_faults, members, object, request, write_item_hashed,
    write_list, write_text,
};

members! {
    Request<'a> {
        "ShardIterator" => shard_iterator: Str<'a>,
        "Limit" => limit: i32,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let operation = operation(request(body)?)?;
    // Like DynamoDB's, an iterator begins with the ARN of its stream.
    let region = operation.iterator.split(':').nth(3).unwrap_or_default();
    let region = region.to_owned();
    let output = engine.get_records(operation).await?;
    let form = RecordForm {
        region: Some(&region),
        identity: ["PrincipalId", "Type"],
        write_image: write_item_hashed,
    };
    Ok(object(4096, |w| {
        let write = |w: &mut Writer, record: &_| write_record(w, record, &form);
        write_list(w, "Records", &output.records, write);
        write_text(w, "NextShardIterator", output.next_iterator.as_deref());
    }))
}

fn operation(request: Request<'_>) -> Result<GetRecords> {
    let mut faults = Faults::new();
    let iterator = &request.shard_iterator;
    length_faults(&mut faults, iterator, "shardIterator", SHARD_ITERATOR_CHARS);
    limit_faults(&mut faults, request.limit, GET_RECORDS_MAX);
    faults.into_result()?;
    Ok(GetRecords {
        iterator: request.shard_iterator.unwrap_or_default().into_owned(),
        limit: limit(request.limit),
    })
}
