//! `floe changes parked`, `replay` and `discard`: the dead letters of a consumer.

use clap::Args;
use floe::Model;
use floe::changes::consumer::ConsumerLease;
use floe::changes::{DeadLetterId, DeadLetters};

use crate::{
    AsText, Failure, OpenStore, Result, StoreArgs, Table, members, note, utc, write_members,
};

/// List the dead letters of a consumer, with their errors
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe changes parked mailer --data ./shop
  floe changes parked mailer --json --endpoint http://127.0.0.1:8000 | jq -r .id

A change becomes a dead letter when its handler has failed too often or permanently; later changes of the same item wait \
behind it. Columns: id, time of the last attempt, kind, number of attempts, whether a replay was requested, the handlers that \
failed, and the error.")]
pub(super) struct ParkedCommand {
    /// Name of the consumer
    consumer: String,

    #[command(flatten)]
    pub(super) target: StoreArgs,
}

/// Request another attempt of dead letters
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe changes replay mailer orders/aXQx/000000000000000000042 --data ./shop
  floe changes replay mailer --all --endpoint http://127.0.0.1:8000

The consumer retries the changes of the item, oldest first, at its next heartbeat. This command only stores the request.")]
pub(super) struct ReplayCommand {
    /// Name of the consumer
    consumer: String,

    /// Id of a dead letter; all dead letters of its item are retried
    #[arg(value_name = "ID", required_unless_present = "all")]
    id: Option<DeadLetterId>,

    /// Retry all dead letters of the consumer
    #[arg(long, conflicts_with = "id")]
    all: bool,

    #[command(flatten)]
    pub(super) target: StoreArgs,
}

/// Discard a dead letter
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe changes discard mailer orders/aXQx/000000000000000000042 --data ./shop

The change is never handled; the changes that wait behind it are handled when they are replayed. Exit code 3: there is no such \
dead letter.")]
pub(super) struct DiscardCommand {
    /// Name of the consumer
    consumer: String,

    /// Id of the dead letter
    id: DeadLetterId,

    #[command(flatten)]
    pub(super) target: StoreArgs,
}

impl ParkedCommand {
    pub(super) async fn run(&self, opened: &OpenStore) -> Result {
        let parked = of(opened, &self.consumer).await?.list().await?;
        if parked.is_empty() && !self.target.output.is_json() {
            note("no dead letters");
            return Ok(());
        }
        self.target.output.rows(
            parked,
            |w, parked| {
                w.object(|w| {
                    write_members!(w;
                        "id": AsText(&parked.id), "kind": parked.change.kind().as_str(),
                        "time_ms": parked.time.as_millis(), "attempts": u64::from(parked.attempts),
                        "handlers": parked.handlers.join(","), "error": parked.error,
                        "asked": parked.replay_requested
                    );
                    write_members!(w; "keys": self.target.output.item(parked.change.keys()));
                });
            },
            Table::with_whole_first_column([
                "id", "time", "kind", "attempts", "replay", "handlers", "error",
            ]),
            |parked| {
                [
                    parked.id.to_string(),
                    utc::date_time(parked.time),
                    parked.change.kind().as_str().to_owned(),
                    parked.attempts.to_string(),
                    if parked.replay_requested { "yes" } else { "" }.to_owned(),
                    parked.handlers.join(","),
                    parked.error.clone(),
                ]
            },
        )
    }
}

impl ReplayCommand {
    pub(super) async fn run(&self, opened: &OpenStore) -> Result {
        let parked = of(opened, &self.consumer).await?;
        let items = match &self.id {
            Some(id) => parked.replay(id).await.map(|()| 1)?,
            None => parked.replay_all().await?,
        };
        let line = format_args!("replay requested: items={items}");
        self.target.output.line(members!["items": items], &line)
    }
}

impl DiscardCommand {
    pub(super) async fn run(&self, opened: &OpenStore) -> Result {
        let parked = of(opened, &self.consumer).await?;
        if !parked.discard(&self.id).await? {
            let message = format!("there is no such dead letter: id={}", self.id);
            return Err(Failure::unmet(message));
        }
        let line = format_args!("discarded: id={}", self.id);
        self.target
            .output
            .line(members!["discarded": AsText(&self.id)], &line)
    }
}

/// The dead letters of a consumer. Fails if the store has no table of consumers.
async fn of(opened: &OpenStore, consumer: &str) -> Result<DeadLetters> {
    opened.table(ConsumerLease::SCHEMA.table).await?;
    Ok(DeadLetters::of(&opened.db, consumer))
}
