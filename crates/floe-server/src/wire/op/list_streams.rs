//! ListStreams.

use floe_store::Engine;
use floe_store::json::Writer;
use floe_store::limits::LIST_STREAMS_MAX;
use floe_store::op::{Faults, ListStreams, StreamSummary};

use crate::wire::{
    Result, Str, TableName, limit, limit_faults, members, object, request, write_list, write_text,
};

members! {
    Request<'a> {
        "TableName" => table_name: TableName<'a>,
        "Limit" => limit: i32,
        "ExclusiveStartStreamArn" => exclusive_start_stream_arn: Str<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let operation = operation(request(body)?)?;
    let output = engine.list_streams(operation).await?;
    Ok(object(512, |w| {
        write_list(w, "Streams", &output.streams, write_stream);
        write_text(w, "LastEvaluatedStreamArn", output.last_arn.as_deref());
    }))
}

fn operation(request: Request<'_>) -> Result<ListStreams> {
    let mut faults = Faults::new();
    if let Some(name) = &request.table_name {
        faults.table_name_by_pattern(name);
    }
    limit_faults(&mut faults, request.limit, LIST_STREAMS_MAX);
    faults.into_result()?;
    Ok(ListStreams {
        table_name: request.table_name.map(String::from),
        start_after: request.exclusive_start_stream_arn.map(Str::into_owned),
        limit: limit(request.limit),
    })
}

fn write_stream(w: &mut Writer, stream: &StreamSummary) {
    w.object(|w| {
        w.name("StreamArn").string(&stream.arn);
        w.name("TableName").string(&stream.table_name);
        w.name("StreamLabel").string(&stream.label);
    });
}
