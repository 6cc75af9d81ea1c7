//! `floe events create`: creates the tables of events and of their feed.

use floe::events::EventStore;
use floe_store::table::StreamView;

use crate::{EventsArgs, Failure, IfMissing, Result, describe, events_table, members};

/// Create the event table with its change stream, and the index table of its feed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe events create --data ./shop --new
  floe events create --table shop --endpoint http://127.0.0.1:8000
  floe events create --table shop --region eu-central-1

Creates the table with the keys of an event table and a change stream with new images, from which `floe indexer` writes the \
feed, and the table <NAME>-index of the feed. A change stream that is missing is enabled. Tables that exist are not changed \
otherwise, so the command can be repeated. It waits until the tables are ready.")]
pub(super) struct Create {
    /// Create a store if the directory holds none
    #[arg(long, requires = "data")]
    new: bool,

    #[command(flatten)]
    target: EventsArgs,
}

impl Create {
    pub(super) fn run(&self) -> Result {
        let missing = IfMissing::create_if(self.new);
        let events = &self.target.events;
        events.run_or(missing, async |store| self.create(store).await)
    }

    async fn create(&self, store: &EventStore) -> Result {
        let table = self.target.events.table.as_str();
        let index = store.feed_index().options().table.clone();
        let exists = async |table: &str| -> Result<bool> {
            Ok(describe(store.db(), table).await?.is_some())
        };
        let (had_table, had_index) = (exists(table).await?, exists(&index).await?);
        store.ensure_table().await?;
        store.ensure_feed().await?;
        let stream = events_table(store).await?.definition.stream;
        let view = stream.filter(|view| view.has_new()).ok_or_else(|| {
            Failure::failed(format!(
                "the change stream of the table has no new images: table={table} view={}",
                stream.map_or("none", StreamView::as_str)
            ))
        })?;
        let stream = view.as_str();
        let done = |existed| if existed { "unchanged" } else { "created" };
        let (table_done, index_done) = (done(had_table), done(had_index));
        self.target.output.line(
            members![
                "table": table, "created": !had_table, "stream": stream, "index": index,
                "index_created": !had_index
            ],
            &format_args!(
                "{table_done}: table={table} stream={stream}\n{index_done}: table={index}"
            ),
        )
    }
}
