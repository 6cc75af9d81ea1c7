//! Running a body until it commits.

use std::time::Duration;

use floe_store::Timestamp;
use tracing::Instrument;

use super::body::TxBody;
use super::commit;
use super::hooks::{self, Outcome};
use super::part::{CommitOptions, Failure};
use super::session::PartContext;
use super::{Tx, turns};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::request::Backoff;
use crate::telemetry::transaction::{self as telemetry, Transaction};

impl Db {
    /// Runs a body in a transaction: everything that it reads and writes happens as if at one moment, or
    /// not at all. The body runs again when another writer changed what it read.
    ///
    /// # Errors
    ///
    /// What the body returns; and what the commit cannot do, reported by the [kind](crate::ErrorKind).
    pub async fn transact<R, E, F>(&self, body: F) -> Result<R, E>
    where
        F: for<'t> AsyncFn(&'t Tx) -> Result<R, E>
            + for<'t> TxBody<&'t Tx, Result<R, E>>
            + Send
            + Sync,
        R: Send,
        E: From<Error> + Send,
    {
        self.tx().run(body).await
    }

    /// A transaction with options of its own.
    pub fn tx(&self) -> TxOptions<'_> {
        TxOptions::new(self)
    }
}

/// A transaction that has not begun, with its options.
#[derive(Clone, Debug)]
#[must_use = "a transaction does nothing until it runs"]
pub struct TxOptions<'db> {
    db: &'db Db,
    backoff: Backoff,
    deadline: Option<Duration>,
    read_only: bool,
    detached: bool,
    cache_rows: bool,
    commit: CommitOptions,
    label: Option<String>,
}

impl<'db> TxOptions<'db> {
    pub(crate) fn new(db: &'db Db) -> Self {
        Self {
            db,
            backoff: Backoff::default(),
            deadline: None,
            read_only: false,
            detached: false,
            cache_rows: false,
            commit: CommitOptions::default(),
            label: None,
        }
    }

    /// For calls of a pattern that are transactions of their own.
    pub(crate) fn of_pattern(db: &'db Db, label: &str, retries: u32) -> Self {
        Self {
            backoff: Backoff::contended(retries),
            ..Self::new(db).label(label)
        }
    }

    /// How often the body may run again after its first run. By default 3 times.
    pub const fn retries(mut self, retries: u32) -> Self {
        self.backoff.retries = retries;
        self
    }

    /// The pause before the first retry, which doubles from then on. By default 100.
    pub const fn initial_backoff_ms(mut self, millis: u64) -> Self {
        self.backoff.initial = Duration::from_millis(millis);
        self
    }

    /// The longest pause before a retry. By default 500.
    pub const fn max_backoff_ms(mut self, millis: u64) -> Self {
        self.backoff.max = Duration::from_millis(millis);
        self
    }

    /// Gives up when so much time has passed: no further run is begun that could not end before, and a
    /// request whose answer was lost is not sent again after it.
    pub const fn deadline(mut self, after: Duration) -> Self {
        self.deadline = Some(after);
        self
    }

    /// Refuses to write.
    pub const fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Checks at the end that everything read was true at one moment, even if nothing is written.
    pub const fn verified(mut self) -> Self {
        self.commit.verified = true;
        self
    }

    /// Commits so that the outcome is always known, also when the answer is lost. On an engine whose plain
    /// writes take no token, a commit of one item then costs twice the capacity.
    pub const fn exactly_once(mut self) -> Self {
        self.commit.exactly_once = true;
        self
    }

    /// Allows the transaction inside the body of another. It commits on its own, before the outer one, and
    /// runs again each time the outer one does.
    pub const fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// Lets the body get an item again: it gets what the transaction knows of it, with all that rows dropped
    /// before have changed, and nothing is sent. Without it that is an error, because in most code it is
    /// a mistake. Of several rows of an item that are held at the same time, only one may change it.
    pub const fn cache_rows(mut self) -> Self {
        self.cache_rows = true;
        self
    }

    /// A name for errors and traces.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Runs the body until it commits.
    ///
    /// # Errors
    ///
    /// As for [`Db::transact`].
    pub async fn run<R, E, F>(self, body: F) -> Result<R, E>
    where
        F: for<'t> AsyncFn(&'t Tx) -> Result<R, E>
            + for<'t> TxBody<&'t Tx, Result<R, E>>
            + Send
            + Sync,
        R: Send,
        E: From<Error> + Send,
    {
        if turns::is_inside() && !self.detached {
            return Err(nested().into());
        }
        let mut watch = Transaction::begin(self.label.as_deref(), self.read_only);
        let span = watch.span.clone();
        let returned = self.attempts(&body, &mut watch).instrument(span).await;
        watch.end();
        returned
    }

    /// Runs the body again and again.
    async fn attempts<R, E, F>(&self, body: &F, watch: &mut Transaction<'_>) -> Result<R, E>
    where
        F: for<'t> TxBody<&'t Tx, Result<R, E>> + Send + Sync,
        R: Send,
        E: From<Error> + Send,
    {
        let deadline = self.deadline;
        let end = deadline.map(|after| self.db.engine().now().plus(after));
        loop {
            let attempt = watch.attempt();
            let runs = watch.attempts;
            let tx = Tx::new(self.db.clone(), self.cache_rows);
            let returned = {
                let _ended = Ended(&tx);
                let run = turns::run(TxBody::call(body, &tx));
                run.instrument(attempt.clone()).await
            };
            let hooks = tx.inner.hooks.take();
            let (own, cause) = match returned {
                Ok(value) => match self.commit(&tx, end, runs).instrument(attempt).await {
                    Ok(items) => {
                        watch.committed(items);
                        hooks::run(hooks, &Outcome::Committed).await;
                        return Ok(value);
                    }
                    Err(Failure::Final(error)) => {
                        watch.failed(&error);
                        return Err(failed(hooks, error, None).await);
                    }
                    Err(Failure::Retry(error)) => (None, error),
                },
                Err(error) => match tx.session().retry_cause() {
                    // The body has only handed on what the store said.
                    Some(cause) if cause.store_error().is_some() => (None, cause),
                    Some(cause) => (Some(error), cause),
                    None => return Err(failed(hooks, aborted(), Some(error)).await),
                },
            };
            telemetry::retried(&cause, runs);
            if let Err(error) = self.pause(runs, end, cause).await {
                watch.failed(&error);
                return Err(failed(hooks, error, own).await);
            }
        }
    }

    async fn commit(
        &self,
        tx: &Tx,
        deadline: Option<Timestamp>,
        attempt: u32,
    ) -> Result<usize, Failure> {
        let now = self.db.engine().now();
        let context = PartContext { db: self.db, now };
        let parts = tx.session().finish(context).map_err(Failure::Final)?;
        let mut writes = parts.iter().filter(|part| part.is_write());
        if let (true, Some(part)) = (self.read_only, writes.next()) {
            return Err(Failure::Final(part.read_only_error()));
        }
        let options = CommitOptions {
            deadline,
            attempt,
            ..self.commit
        };
        commit::commit(self.db, parts, now, options).await
    }

    /// Waits before the next run, or tells why there is none.
    async fn pause(&self, runs: u32, end: Option<Timestamp>, cause: Error) -> Result<()> {
        if runs > self.backoff.retries {
            let what = match cause.store_error() {
                None => "too much contention",
                Some(_) => "the store was not ready",
            };
            return Err(self.failed(ErrorKind::TransactionFailed, what, runs, cause));
        }
        let pause = self.backoff.pause(runs, self.db.env().next_u64());
        if end.is_some_and(|end| self.db.engine().now().plus(pause) > end) {
            return Err(self.failed(ErrorKind::Deadline, "the deadline has come", runs, cause));
        }
        self.db.timer().sleep(pause).await;
        Ok(())
    }

    fn failed(&self, kind: ErrorKind, what: &str, runs: u32, cause: Error) -> Error {
        let mut message = format!("{what}: {cause} attempts={runs}");
        if let Some(label) = &self.label {
            message += &format!(" label={label}");
        }
        cause.after_attempts(kind, message, runs)
    }
}

/// Closes the session of a run when its body has ended, also by being dropped or by a panic: whoever has kept
/// the transaction shall not write what nobody commits.
struct Ended<'tx>(&'tx Tx);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.session().close();
    }
}

/// Tells the hooks, and gives the caller the body's own error where there is one.
async fn failed<E: From<Error>>(hooks: Vec<hooks::Hook>, error: Error, own: Option<E>) -> E {
    hooks::run(hooks, &Outcome::Failed(error.clone())).await;
    own.unwrap_or_else(|| error.into())
}

fn aborted() -> Error {
    Error::new(ErrorKind::Aborted, "the body returned an error of its own")
}

fn nested() -> Error {
    Error::invalid_use(
        "a transaction inside the body of another commits on its own; pass the outer one on, or say \
         detached()",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_that_panics_leaves_no_trace_on_its_thread() {
        let db = Db::memory().unwrap();
        let other = db.clone();
        let panics = tokio::spawn(async move {
            let body = async |_: &Tx| panic!("in the body");
            other.transact::<(), Error, _>(body).await
        });
        assert!(panics.await.unwrap_err().is_panic());
        let body = async |_: &Tx| Ok::<_, Error>(1);
        assert_eq!(db.transact(body).await, Ok(1));
    }
}
