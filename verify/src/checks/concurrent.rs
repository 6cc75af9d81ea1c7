//! Many clients at once on a fresh directory, each recording what it does: what `linear` and `isolation` share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use floe_store::env::SeededRandom;
use floe_store::table::KeyKind;
use floe_store::{Engine, Item, Result, TableDef};
use tokio::task::JoinSet;

use super::directory::{self, Settings};
use super::planted::{Bug, Flawed};
use super::stage::mixed;
use super::{join_all, runtime};
use crate::Failure;

/// The table.
pub(super) const TABLE: &str = "Shared";

/// How the run is sized.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) planted: Option<Bug>,
    pub(super) operations: u64,
    pub(super) clients: u64,
    /// How many keys the clients share at a time.
    pub(super) keys: u64,
}

/// A client, and what it shares with the others.
pub(super) struct Client<R> {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) recorder: Arc<R>,
    pub(super) plan: Plan,
    pub(super) random: SeededRandom,
    pub(super) number: u64,
    begun: Arc<AtomicU64>,
}

impl<R> Client<R> {
    /// Begins an operation: its number, counted over all clients, until there were as many as planned.
    pub(super) fn begin(&self) -> Option<u64> {
        let begun = self.begun.fetch_add(1, Ordering::Relaxed);
        (begun < self.plan.operations).then_some(begun)
    }
}

/// Lets the clients play, and returns what they recorded.
pub(super) fn play<R, F>(plan: Plan, client: impl Fn(Client<R>) -> F) -> Result<R, Failure>
where
    R: Default + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let folder = tempfile::tempdir()?;
    let opened = directory::open(folder.path(), Settings::default())?;
    let recorder = Arc::new(R::default());
    let begun = Arc::default();
    runtime()?.block_on(async {
        let engine = Flawed::plant(opened.engine(), plan.planted);
        let table = TableDef::builder(TABLE, "key", KeyKind::N).build()?;
        engine.create_table(table.into()).await?;
        let mut clients = JoinSet::new();
        for number in 0..plan.clients {
            clients.spawn(client(Client {
                engine: Arc::clone(&engine),
                recorder: Arc::clone(&recorder),
                plan,
                random: SeededRandom::new(mixed(plan.seed ^ number)),
                number,
                begun: Arc::clone(&begun),
            }));
        }
        join_all(clients).await
    })?;
    opened.close()?;
    Arc::into_inner(recorder).ok_or_else(|| Failure::broken("a client is still running"))
}

/// The key of an item.
pub(super) fn key_of(key: u64) -> Item {
    Item::new().with("key", key)
}
