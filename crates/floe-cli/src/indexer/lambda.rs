//! The indexer in AWS Lambda: the program is a custom runtime, which polls for events and posts responses.
//!
//! Lambda reads the change stream, keeps the order of each shard and stores the positions, so only the feed is stored here.
//! Lambda retries failed changes, and the epochs drop events that they already have.

#[cfg(test)]
mod tests;

use floe::changes::Change;
use floe::changes::lambda::{Runtime, read_changes};
use floe::events::feed::ChangeIngester;
use floe_store::json::Writer;

use super::{IndexerCommand, feed_failure};
use crate::out::json::{AsArray, object};
use crate::{Failure, Result, note};

/// The error type that is reported to Lambda.
const ERROR_NAME: &str = "Floe.IndexerFailed";

/// The response when some changes were not added to the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnFailure {
    /// An error: Lambda retries all changes of the event, whatever the event source mapping is.
    Fail,
    /// The first failed change: Lambda retries it and those after it if the mapping has `ReportBatchItemFailures`. Without
    /// it, they are lost.
    Report,
}

/// Handles events until Lambda terminates the process or cannot be reached.
pub(super) async fn serve(runtime: Runtime, command: &IndexerCommand) -> Result {
    let runtime = runtime.error_name(ERROR_NAME);
    let mut ingester = match open_change_ingester(command).await {
        Ok(ingester) => ingester,
        Err(failure) => {
            let reported = runtime.fail_init(&failure.to_string()).await;
            reported.map_err(Failure::failed)?;
            return Err(failure);
        }
    };
    let on_failure = if command.report_batch_item_failures {
        OnFailure::Report
    } else {
        OnFailure::Fail
    };
    let served = runtime
        .serve(async |event| {
            let handled = handle(&mut ingester, &event, on_failure).await;
            handled.inspect_err(|message| note(message))
        })
        .await;
    served.map_err(Failure::failed)
}

/// Opens the feed for writing. The tables must exist, so the function needs no permission to create them.
async fn open_change_ingester(command: &IndexerCommand) -> Result<ChangeIngester> {
    let store = command.events.open_in_lambda().await?;
    let options = command.options(&store).await?;
    let mut ingester = store.change_ingester(&options).map_err(Failure::usage)?;
    ingester.begin().await.map_err(feed_failure)?;
    Ok(ingester)
}

/// Adds the changes of an event to the feed. Returns the response, or the error because of which all are retried.
async fn handle(
    ingester: &mut ChangeIngester,
    event: &[u8],
    on_failure: OnFailure,
) -> Result<String, String> {
    let changes = read_changes(event).map_err(|error| error.to_string())?;
    let records: Vec<_> = changes.into_iter().map(Change::into_record).collect();
    let ingested = ingester.ingest_until_failure(&records).await;
    let Some((failed_at, error)) = ingested.failure else {
        return Ok(response(None));
    };
    let sequence = records
        .get(failed_at)
        .map_or("", |record| record.sequence.as_str());
    let message = format!(
        "changes could not be added to the feed, {error}: from={sequence} records={} events={}",
        records.len() - failed_at,
        ingested.summary.events
    );
    match on_failure {
        OnFailure::Fail => Err(message),
        OnFailure::Report => {
            note(&message);
            Ok(response(Some(sequence)))
        }
    }
}

/// The response with the first change to be retried, if any.
fn response(failed: Option<&str>) -> String {
    let mut writer = Writer::with_capacity(128);
    let failed = failed.as_slice();
    object!(writer; "batchItemFailures": AsArray(failed, |w, sequence| {
        object!(w; "itemIdentifier": *sequence);
    }));
    writer.into_text()
}
