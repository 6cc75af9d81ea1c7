//! GetShardIterator.

use floe_store::Engine;
use floe_store::limits::{SEQUENCE_NUMBER_CHARS, SHARD_ID_CHARS};
use floe_store::op::{Faults, GetShardIterator, IteratorKind};

use crate::wire::{
    RequestError, Result, Str, length_faults, members, object, request, require,
    required_enum_faults,
};

members! {
    Request<'a> {
        "StreamArn" => stream_arn: Str<'a>,
        "ShardId" => shard_id: Str<'a>,
        "ShardIteratorType" => shard_iterator_type: Str<'a>,
        "SequenceNumber" => sequence_number: Str<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let operation = operation(request(body)?)?;
    let iterator = engine.get_shard_iterator(operation).await?;
    Ok(object(256, |w| w.name("ShardIterator").string(&iterator)))
}

fn operation(request: Request<'_>) -> Result<GetShardIterator> {
    check_members(&request)?;
    let keyword = request.shard_iterator_type.as_deref();
    Ok(GetShardIterator {
        kind: kind(keyword, request.sequence_number)?,
        stream_arn: request.stream_arn.unwrap_or_default().into_owned(),
        shard_id: request.shard_id.unwrap_or_default().into_owned(),
    })
}

fn check_members(request: &Request<'_>) -> Result<()> {
    let mut faults = Faults::new();
    require(&mut faults, &request.stream_arn, "streamArn");
    length_faults(&mut faults, &request.shard_id, "shardId", SHARD_ID_CHARS);
    let keywords = &[
        "AFTER_SEQUENCE_NUMBER",
        "LATEST",
        "AT_SEQUENCE_NUMBER",
        "TRIM_HORIZON",
    ];
    let keyword = &request.shard_iterator_type;
    required_enum_faults(&mut faults, keyword, "shardIteratorType", keywords);
    if let Some(number) = &request.sequence_number {
        faults.length_hidden(number, "sequenceNumber", SEQUENCE_NUMBER_CHARS);
    }
    Ok(faults.into_result()?)
}

/// Returns the iterator position for a validated type and a sequence number.
fn kind(keyword: Option<&str>, sequence: Option<Str<'_>>) -> Result<IteratorKind> {
    let at: fn(String) -> IteratorKind = match keyword {
        Some("AT_SEQUENCE_NUMBER") => IteratorKind::AtSequenceNumber,
        Some("AFTER_SEQUENCE_NUMBER") => IteratorKind::AfterSequenceNumber,
        _ if sequence.is_some() => {
            return Err(RequestError::invalid(
                "SequenceNumber should not be passed for this iterator type",
            ));
        }
        Some("LATEST") => return Ok(IteratorKind::Latest),
        _ => return Ok(IteratorKind::TrimHorizon),
    };
    match sequence {
        Some(sequence) => Ok(at(sequence.into_owned())),
        None => Err(RequestError::invalid("SequenceNumber cannot be null")),
    }
}
