//! The indexer in AWS Lambda: the program is a custom runtime, which asks for events and answers them.
//!
//! Lambda reads the change stream, keeps the order of each shard and remembers how far it has come, so nothing is
//! stored here but the feed. Lambda sends again what failed, and the epochs drop what they know.

#[cfg(test)]
mod tests;

use floe::changes::Change;
use floe::changes::lambda::{Runtime, read_changes};
use floe::events::feed::Intake;
use floe_store::json::Writer;

use super::{IndexerCommand, explained};
use crate::out::json::{Each, object};
use crate::{Failure, Result, note};

/// What errors of ours are called.
const ERROR_NAME: &str = "Floe.IndexerFailed";

/// What to answer when some changes did not get into the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnFailure {
    /// Nothing but the failure: all changes are sent again, whatever the mapping says.
    Fail,
    /// The first change that did not: it and those after it are sent again, if the mapping has
    /// `ReportBatchItemFailures`. If not, they never are.
    Report,
}

/// Answers events until Lambda ends the process, or cannot be asked any more.
pub(super) async fn serve(runtime: Runtime, command: &IndexerCommand) -> Result {
    let runtime = runtime.error_name(ERROR_NAME);
    let mut intake = match begin(command).await {
        Ok(intake) => intake,
        Err(failure) => {
            let reported = runtime.fail_init(&failure.to_string()).await;
            reported.map_err(Failure::broken)?;
            return Err(failure);
        }
    };
    let on_failure = match command.report_batch_item_failures {
        true => OnFailure::Report,
        false => OnFailure::Fail,
    };
    let served = runtime
        .serve(async |event| {
            let handled = handle(&mut intake, &event, on_failure).await;
            handled.inspect_err(|message| note(message))
        })
        .await;
    served.map_err(Failure::broken)
}

/// Makes ready to bring changes to the feed. The tables must be there: a function needs no right to make them.
async fn begin(command: &IndexerCommand) -> Result<Intake> {
    let store = command.place.open().await?;
    let options = command.options(&store).await?;
    let mut intake = store.intake(&options).map_err(Failure::usage)?;
    intake.begin().await.map_err(explained)?;
    Ok(intake)
}

/// Brings the changes of an event to the feed. Gives the answer, or the reason why all must be sent again.
async fn handle(
    intake: &mut Intake,
    event: &[u8],
    on_failure: OnFailure,
) -> Result<String, String> {
    let changes = read_changes(event).map_err(|error| error.to_string())?;
    let records: Vec<_> = changes.into_iter().map(Change::into_record).collect();
    let brought = intake.bring_up_to_failure(&records).await;
    let Some((place, error)) = brought.failure else {
        return Ok(answer(None));
    };
    let sequence = records
        .get(place)
        .map_or("", |record| record.sequence.as_str());
    let message = format!(
        "changes could not be brought to the feed, {error}: from={sequence} records={} events={}",
        records.len() - place,
        brought.brought.events
    );
    match on_failure {
        OnFailure::Fail => Err(message),
        OnFailure::Report => {
            note(&message);
            Ok(answer(Some(sequence)))
        }
    }
}

/// The answer that names the first change to be sent again.
fn answer(failed: Option<&str>) -> String {
    let mut writer = Writer::with_capacity(128);
    let failed = failed.as_slice();
    object!(writer; "batchItemFailures": Each(failed, |w, sequence| {
        object!(w; "itemIdentifier": *sequence);
    }));
    writer.into_text()
}
