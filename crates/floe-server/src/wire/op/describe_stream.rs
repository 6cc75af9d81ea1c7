//! DescribeStream.

use floe_store::Engine;
use floe_store::json::{Writer, write_timestamp};
use floe_store::limits::{DESCRIBE_STREAM_SHARDS_MAX, SHARD_ID_CHARS};
use floe_store::op::{DescribeStream, Faults, Shard, StreamDescription, StreamStatus};

use crate::wire::table::describe::write_key;
use crate::wire::{
    Result, Str, enum_faults, limit, limit_faults, members, object, request, require, write_list,
    write_text,
};

members! {
    Request<'a> {
        "StreamArn" => stream_arn: Str<'a>,
        "Limit" => limit: i32,
        "ExclusiveStartShardId" => exclusive_start_shard_id: Str<'a>,
        "ShardFilter" => shard_filter: ShardFilter<'a>,
    }

    /// Selects shards. Only the children of a shard are supported.
    ShardFilter<'a> as "ShardFilter" {
        "Type" => kind: Str<'a>,
        "ShardId" => shard_id: Str<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    check_members(&request)?;
    let parent = request.shard_filter.and_then(|filter| filter.shard_id);
    let operation = DescribeStream {
        stream_arn: request.stream_arn.unwrap_or_default().into_owned(),
        start_after: request.exclusive_start_shard_id.map(Str::into_owned),
        limit: limit(request.limit),
    };
    let output = match parent {
        None => engine.describe_stream(operation).await?,
        Some(parent) => describe_children(engine, operation, &parent).await?,
    };
    Ok(object(1024, |w| {
        w.name("StreamDescription")
            .object(|w| write_description(w, &output));
    }))
}

fn check_members(request: &Request<'_>) -> Result<()> {
    let mut faults = Faults::new();
    require(&mut faults, &request.stream_arn, "streamArn");
    limit_faults(&mut faults, request.limit, DESCRIBE_STREAM_SHARDS_MAX);
    if let Some(shard) = &request.exclusive_start_shard_id {
        faults.length(shard, "exclusiveStartShardId", SHARD_ID_CHARS);
    }
    if let Some(filter) = &request.shard_filter {
        let keywords = &["CHILD_SHARDS"];
        enum_faults(&mut faults, &filter.kind, "shardFilter.type", keywords);
        if let Some(shard) = &filter.shard_id {
            faults.length(shard, "shardFilter.shardId", SHARD_ID_CHARS);
        }
    }
    Ok(faults.into_result()?)
}

/// Describes a stream with only the children of a shard, which are searched on all pages.
async fn describe_children(
    engine: &dyn Engine,
    mut operation: DescribeStream,
    parent: &str,
) -> Result<StreamDescription> {
    let limit = operation.limit.take().unwrap_or(DESCRIBE_STREAM_SHARDS_MAX);
    let mut children = Vec::new();
    loop {
        let mut page = engine.describe_stream(operation.clone()).await?;
        page.shards
            .retain(|shard| shard.parent_id.as_deref() == Some(parent));
        children.append(&mut page.shards);
        if page.last_shard_id.is_none() || children.len() > limit {
            let more = children.len() > limit;
            children.truncate(limit);
            page.last_shard_id = children.last().filter(|_| more).map(|last| last.id.clone());
            page.shards = children;
            return Ok(page);
        }
        operation.start_after = page.last_shard_id;
    }
}

fn write_description(w: &mut Writer, stream: &StreamDescription) {
    w.name("StreamArn").string(&stream.arn);
    w.name("StreamLabel").string(&stream.label);
    w.name("StreamStatus").string(match stream.status {
        StreamStatus::Enabled => "ENABLED",
        StreamStatus::Disabled => "DISABLED",
    });
    w.name("StreamViewType").string(stream.view.as_str());
    w.name("CreationRequestDateTime");
    write_timestamp(w, stream.created);
    w.name("TableName").string(&stream.table_name);
    write_key(w, &stream.key_schema);
    write_list(w, "Shards", &stream.shards, write_shard);
    let last = stream.last_shard_id.as_deref();
    write_text(w, "LastEvaluatedShardId", last);
}

fn write_shard(w: &mut Writer, shard: &Shard) {
    w.object(|w| {
        w.name("ShardId").string(&shard.id);
        w.name("SequenceNumberRange").object(|w| {
            w.name("StartingSequenceNumber")
                .string(&shard.starting_sequence);
            let end = shard.ending_sequence.as_deref();
            write_text(w, "EndingSequenceNumber", end);
        });
        write_text(w, "ParentShardId", shard.parent_id.as_deref());
    });
}
