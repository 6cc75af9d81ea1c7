//! An engine that takes its time with tables, as DynamoDB does, and a timer that takes none.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe_local::LocalEngine;
use floe_store::op::*;
use floe_store::table::{TableDescription, TableStatus};
use floe_store::{BoxFuture, Capabilities, Engine, Env, Error, Result, forward_to};

use crate::db::{Db, Timer};

/// The fate of a table change.
pub(super) enum Fate {
    /// Not applied, with this error.
    Refused(Error),
    /// Applied, with this error as the response.
    Lost(Error),
}

pub(super) struct SlowEngine {
    inner: LocalEngine,
    /// Number of descriptions after a change that show the table as updating.
    busy_describes: u32,
    state: Mutex<State>,
    capabilities: Capabilities,
}

#[derive(Default)]
struct State {
    busy: u32,
    fates: VecDeque<Fate>,
    describe_errors: VecDeque<Option<Error>>,
    changes: u32,
}

impl SlowEngine {
    pub(super) fn new(busy_describes: u32) -> Self {
        Self {
            inner: LocalEngine::memory().unwrap(),
            busy_describes,
            state: Mutex::default(),
            capabilities: Capabilities::all(),
        }
    }

    pub(super) fn with_capabilities(mut self, change: impl Fn(&mut Capabilities)) -> Self {
        change(&mut self.capabilities);
        self
    }

    /// Sets the fates of the next changes.
    pub(super) fn fates(&self, fates: impl IntoIterator<Item = Fate>) {
        self.state.lock().unwrap().fates.extend(fates);
    }

    /// Sets the errors of the next `DescribeTable` requests.
    pub(super) fn fail_describes(&self, describe_errors: impl IntoIterator<Item = Option<Error>>) {
        self.state
            .lock()
            .unwrap()
            .describe_errors
            .extend(describe_errors);
    }

    /// Number of requested changes.
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
        self.state.lock().unwrap().busy = self.busy_describes;
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
            if let Some(Some(error)) = self.state.lock().unwrap().describe_errors.pop_front() {
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

/// A timer that records pauses and yields instead of waiting.
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
