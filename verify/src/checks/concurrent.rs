//! Many concurrent clients on a new directory, each recording its operations: shared by `linear` and `isolation`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use floe_store::env::SeededRandom;
use floe_store::table::KeyKind;
use floe_store::{Engine, Item, Result, TableDef};
use tokio::task::JoinSet;

use super::directory::{self, Settings};
use super::planted::{Bug, FlawedEngine};
use super::test_table::splitmix64;
use super::{join_all, runtime};
use crate::Failure;

/// The table.
pub(super) const TABLE: &str = "Shared";

/// The size of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) planted: Option<Bug>,
    pub(super) operations: u64,
    pub(super) clients: u64,
    /// Number of keys that the clients share at a time.
    pub(super) keys: u64,
}

/// A client, and the state it shares with the other clients.
pub(super) struct Client<R> {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) recorder: Arc<R>,
    pub(super) plan: Plan,
    pub(super) random: SeededRandom,
    pub(super) number: u64,
    begun: Arc<AtomicU64>,
}

impl<R> Client<R> {
    /// Begins an operation. Returns its number over all clients, or `None` after the planned number.
    pub(super) fn begin(&self) -> Option<u64> {
        let begun = self.begun.fetch_add(1, Ordering::Relaxed);
        (begun < self.plan.operations).then_some(begun)
    }
}

/// Runs the clients and returns their recorded history.
pub(super) fn run_clients<R, F>(plan: Plan, client: impl Fn(Client<R>) -> F) -> Result<R, Failure>
where
    R: Default + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let folder = tempfile::tempdir()?;
    let opened = directory::open(folder.path(), Settings::default())?;
    let recorder = Arc::new(R::default());
    let begun = Arc::default();
    runtime()?.block_on(async {
        let engine = FlawedEngine::plant(opened.engine(), plan.planted);
        let table = TableDef::builder(TABLE, "key", KeyKind::N).build()?;
        engine.create_table(table.into()).await?;
        let mut clients = JoinSet::new();
        for number in 0..plan.clients {
            clients.spawn(client(Client {
                engine: Arc::clone(&engine),
                recorder: Arc::clone(&recorder),
                plan,
                random: SeededRandom::new(splitmix64(plan.seed ^ number)),
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
