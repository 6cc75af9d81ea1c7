//! `floe changes parked`, `replay` and `discard`: the changes that a consumer did not get on with.

use clap::Args;
use floe::Model;
use floe::changes::consumer::ConsumerLease;
use floe::changes::{ParkedChanges, ParkedId};
use floe_server::json::write_item_hashed;

use crate::{
    Failure, Opened, Result, StoreArgs, Table, Text, members, moment, note, write_members,
};

/// Tell which changes are parked, and why
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe changes parked mailer --data ./shop
  floe changes parked mailer --json --endpoint http://127.0.0.1:8000 | jq -r .id

A change is parked when its handler has failed too often, or says that trying again cannot help; every later change of the \
same item waits behind it. Told are the id, when it was parked or tried last, how often, by which handlers, and why; `again` \
says that a replay was asked for.")]
pub(super) struct ParkedCommand {
    /// The consumer
    consumer: String,

    #[command(flatten)]
    pub(super) at: StoreArgs,
}

/// Ask the consumer to try parked changes again
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe changes replay mailer orders/aXQx/000000000000000000042 --data ./shop
  floe changes replay mailer --all --endpoint http://127.0.0.1:8000

The consumer tries the changes of the item again, the oldest first, at its next beat; this command only asks it to.")]
pub(super) struct ReplayCommand {
    /// The consumer
    consumer: String,

    /// A parked change: those of its item are tried again
    #[arg(value_name = "ID", required_unless_present = "all")]
    id: Option<ParkedId>,

    /// All that are parked
    #[arg(long, conflicts_with = "id")]
    all: bool,

    #[command(flatten)]
    pub(super) at: StoreArgs,
}

/// Give up a parked change
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe changes discard mailer orders/aXQx/000000000000000000042 --data ./shop

The change is never given to its handlers; those behind it are, when they are replayed. Exit code 3 if it is not parked.")]
pub(super) struct DiscardCommand {
    /// The consumer
    consumer: String,

    /// The parked change
    id: ParkedId,

    #[command(flatten)]
    pub(super) at: StoreArgs,
}

impl ParkedCommand {
    pub(super) async fn run(&self, opened: &Opened) -> Result {
        let parked = of(opened, &self.consumer).await?.list().await?;
        if parked.is_empty() && !self.at.output.json {
            note("nothing is parked");
            return Ok(());
        }
        self.at.output.rows(
            parked,
            |w, parked| {
                w.object(|w| {
                    write_members!(w;
                        "id": Text(&parked.id), "kind": parked.change.kind().as_str(),
                        "time_ms": parked.time.as_millis(), "attempts": u64::from(parked.attempts),
                        "handlers": parked.handlers.join(","), "error": parked.error,
                        "asked": parked.is_asked
                    );
                    write_item_hashed(w.name("keys"), parked.change.keys());
                });
            },
            Table::named(["id", "time", "kind", "tries", "again", "handlers", "why"]),
            |parked| {
                [
                    parked.id.to_string(),
                    moment::text(parked.time),
                    parked.change.kind().as_str().to_owned(),
                    parked.attempts.to_string(),
                    if parked.is_asked { "yes" } else { "" }.to_owned(),
                    parked.handlers.join(","),
                    parked.error.clone(),
                ]
            },
        );
        Ok(())
    }
}

impl ReplayCommand {
    pub(super) async fn run(&self, opened: &Opened) -> Result {
        let parked = of(opened, &self.consumer).await?;
        let items = match &self.id {
            Some(id) => parked.replay(id).await.map(|()| 1)?,
            None => parked.replay_all().await?,
        };
        let line = format_args!("asked: items={items}");
        self.at.output.line(members!["items": items], &line);
        Ok(())
    }
}

impl DiscardCommand {
    pub(super) async fn run(&self, opened: &Opened) -> Result {
        let parked = of(opened, &self.consumer).await?;
        if !parked.discard(&self.id).await? {
            let message = format!("no such change is parked: id={}", self.id);
            return Err(Failure::unmet(message));
        }
        let line = format_args!("discarded: id={}", self.id);
        self.at
            .output
            .line(members!["discarded": Text(&self.id)], &line);
        Ok(())
    }
}

/// What is parked of a consumer, if consumers have a table here.
async fn of(opened: &Opened, consumer: &str) -> Result<ParkedChanges> {
    opened.table(ConsumerLease::SCHEMA.table).await?;
    Ok(ParkedChanges::of(&opened.db, consumer))
}
