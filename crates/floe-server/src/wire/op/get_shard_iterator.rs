//! GetShardIterator.

use floe_store::Engine;
use floe_store::json::Writer;
use floe_store::limits::{SEQUENCE_NUMBER_CHARS, SHARD_ID_CHARS};
use floe_store::op::{Faults, GetShardIterator, IteratorKind};

use crate::wire::read::{Str, members, request};
use crate::wire::refusal::{Refusal, Result};

members! {
    Request<'a> as "GetShardIteratorInput" {
        "StreamArn" => stream_arn: Str<'a>,
        "ShardId" => shard_id: Str<'a>,
        "ShardIteratorType" => shard_iterator_type: Str<'a>,
        "SequenceNumber" => sequence_number: Str<'a>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let operation = operation(request(body)?)?;
    let iterator = engine.get_shard_iterator(operation).await?;
    let mut writer = Writer::with_capacity(256);
    writer.object(|w| w.name("ShardIterator").string(&iterator));
    Ok(writer.into_bytes())
}

fn operation(request: Request<'_>) -> Result<GetShardIterator> {
    check_members(&request)?;
    let kind = kind(
        request.shard_iterator_type.as_deref(),
        request.sequence_number,
    )?;
    Ok(GetShardIterator {
        stream_arn: request.stream_arn.unwrap_or_default().into_owned(),
        shard_id: request.shard_id.unwrap_or_default().into_owned(),
        kind,
    })
}

fn check_members(request: &Request<'_>) -> Result<()> {
    let mut faults = Faults::new();
    if request.stream_arn.is_none() {
        faults.add_null("streamArn");
    }
    match &request.shard_id {
        None => faults.add_null("shardId"),
        Some(shard) => faults.length(shard, "shardId", SHARD_ID_CHARS),
    }
    match request.shard_iterator_type.as_deref() {
        None => faults.add_null("shardIteratorType"),
        Some(word) => faults.one_of(
            word,
            "shardIteratorType",
            &[
                "AFTER_SEQUENCE_NUMBER",
                "LATEST",
                "AT_SEQUENCE_NUMBER",
                "TRIM_HORIZON",
            ],
        ),
    }
    if let Some(number) = &request.sequence_number {
        faults.length_unseen(number, "sequenceNumber", SEQUENCE_NUMBER_CHARS);
    }
    Ok(faults.into_result()?)
}

/// The place that a word, which has been checked, and a sequence number name.
fn kind(word: Option<&str>, sequence: Option<Str<'_>>) -> Result<IteratorKind> {
    let at: fn(String) -> IteratorKind = match word {
        Some("AT_SEQUENCE_NUMBER") => IteratorKind::AtSequenceNumber,
        Some("AFTER_SEQUENCE_NUMBER") => IteratorKind::AfterSequenceNumber,
        _ if sequence.is_some() => {
            return Err(Refusal::validation(
                "One or more parameter values were invalid: SequenceNumber should not be passed for this iterator \
                 type",
            ));
        }
        Some("LATEST") => return Ok(IteratorKind::Latest),
        _ => return Ok(IteratorKind::TrimHorizon),
    };
    match sequence {
        Some(sequence) => Ok(at(sequence.into_owned())),
        None => Err(Refusal::validation(
            "One or more parameter values were invalid: SequenceNumber cannot be null",
        )),
    }
}
