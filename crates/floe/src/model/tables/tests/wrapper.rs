//! An engine that takes its time with tables, as DynamoDB does, and a timer that takes none.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe_local::LocalEngine;
use floe_store::op::*;
use floe_store::table::{TableDescription, TableStatus};
use floe_store::{BoxFuture, Capabilities, Engine, Env, Error, Result, forward_to};

use crate::db::{Db, Timer};

/// What happens to a change of a table.
pub(super) enum Fate {
    /// It is not made, and this is the answer.
    Refused(Error),
    /// It is made, and this is the answer.
    Lost(Error),
}

pub(super) struct SlowEngine {
    inner: LocalEngine,
    /// How many looks at a table show it busy after a change.
    busy_looks: u32,
    state: Mutex<State>,
    capabilities: Capabilities,
}

#[derive(Default)]
struct State {
    busy: u32,
    fates: VecDeque<Fate>,
    looks: VecDeque<Option<Error>>,
    changes: u32,
}

impl SlowEngine {
    pub(super) fn new(busy_looks: u32) -> Self {
        Self {
            inner: LocalEngine::memory().unwrap(),
            busy_looks,
            state: Mutex::default(),
            capabilities: Capabilities::all(),
        }
    }

    pub(super) fn with_capabilities(mut self, change: impl Fn(&mut Capabilities)) -> Self {
        change(&mut self.capabilities);
        self
    }

    /// Decides what happens to the next changes.
    pub(super) fn fates(&self, fates: impl IntoIterator<Item = Fate>) {
        self.state.lock().unwrap().fates.extend(fates);
    }

    /// Decides which of the next looks at a table fail.
    pub(super) fn fail_looks(&self, looks: impl IntoIterator<Item = Option<Error>>) {
        self.state.lock().unwrap().looks.extend(looks);
    }

    /// How many changes were asked for.
    pub(super) fn changes(&self) -> u32 {
        self.state.lock().unwrap().changes
    }

    fn busy(&self) -> bool {
        self.state.lock().unwrap().busy > 0
    }

    async fn change(
        &self,
        change: BoxFuture<'_, Result<TableDescription>>,
    ) -> Result<TableDescription> {
        let fate = {
            let mut state = self.state.lock().unwrap();
            state.changes += 1;
            state.fates.pop_front()
        };
        if self.busy() {
            return Err(Error::ResourceInUse("busy".to_owned()));
        }
        if let Some(Fate::Refused(error)) = fate {
            return Err(error);
        }
        let description = change.await?;
        self.state.lock().unwrap().busy = self.busy_looks;
        match fate {
            Some(Fate::Lost(error)) => Err(error),
            _ => Ok(self.shown(description)),
        }
    }

    fn shown(&self, mut description: TableDescription) -> TableDescription {
        if self.busy() {
            description.status = TableStatus::Updating;
        }
        description
    }
}

impl Engine for SlowEngine {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    forward_to!(self.inner; now, table_arn, items, streams);
    forward_to!(self.inner; delete_table, list_tables, update_tags);

    fn describe_table(&self, name: String) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move {
            if let Some(Some(error)) = self.state.lock().unwrap().looks.pop_front() {
                return Err(error);
            }
            let description = self.inner.describe_table(name).await?;
            let shown = self.shown(description);
            let mut state = self.state.lock().unwrap();
            state.busy = state.busy.saturating_sub(1);
            Ok(shown)
        })
    }

    fn create_table(&self, input: CreateTable) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(self.change(Box::pin(async { self.inner.create_table(input).await })))
    }

    fn update_table(&self, input: UpdateTable) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(self.change(Box::pin(async { self.inner.update_table(input).await })))
    }

    fn update_time_to_live(
        &self,
        input: UpdateTimeToLive,
    ) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(self.change(Box::pin(async {
            self.inner.update_time_to_live(input).await
        })))
    }
}

/// A timer that remembers the pauses and lets others go on, without waiting.
#[derive(Default)]
pub(super) struct NoWait {
    pauses: Mutex<Vec<Duration>>,
}

impl NoWait {
    pub(super) fn pauses(&self) -> Vec<Duration> {
        self.pauses.lock().unwrap().clone()
    }
}

impl Timer for NoWait {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.pauses.lock().unwrap().push(duration);
        Box::pin(tokio::task::yield_now())
    }
}

/// A database on a slow engine.
pub(super) fn slow_db(engine: SlowEngine) -> (Db, Arc<SlowEngine>, Arc<NoWait>) {
    let (engine, timer) = (Arc::new(engine), Arc::new(NoWait::default()));
    let db = Db::with_parts(engine.clone(), Env::system(), timer.clone());
    (db, engine, timer)
}
