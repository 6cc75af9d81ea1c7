//! Transaction options, and the loop that runs a body until it commits.

use std::time::Duration;

use floe_store::Timestamp;
use tracing::Instrument;

use super::body::TxBody;
use super::commit;
use super::hooks::{self, Outcome};
use super::part::{CommitOptions, Failure};
use super::session::PartContext;
use super::{Tx, body_task};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::request::Backoff;
use crate::telemetry::transaction::{self as telemetry, TransactionTelemetry};

impl Db {
    /// Runs a body in a transaction: its reads and writes are applied atomically or not at all. The body runs again
    /// when another writer changed what it read.
    ///
    /// # Errors
    ///
    /// The body's own error; or the error of the commit, by its [kind](crate::ErrorKind).
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

    /// Builds a transaction with options.
    pub fn tx(&self) -> TxOptions<'_> {
        TxOptions::new(self)
    }
}

/// A builder of a transaction.
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

    /// For calls of a pattern that are separate transactions.
    pub(crate) fn of_pattern(db: &'db Db, label: &str, retries: u32) -> Self {
        Self {
            backoff: Backoff::contended(retries),
            ..Self::new(db).label(label)
        }
    }

    /// Maximum retries after the first attempt. Default: 3.
    pub const fn retries(mut self, retries: u32) -> Self {
        self.backoff.retries = retries;
        self
    }

    /// The pause before the first retry in milliseconds; it doubles with each retry. Default: 100.
    pub const fn initial_backoff_ms(mut self, millis: u64) -> Self {
        self.backoff.initial = Duration::from_millis(millis);
        self
    }

    /// Maximum pause before a retry in milliseconds. Default: 500.
    pub const fn max_backoff_ms(mut self, millis: u64) -> Self {
        self.backoff.max = Duration::from_millis(millis);
        self
    }

    /// Deadline of the transaction, from its start. After it, no commit is sent, no retry starts whose pause would end after
    /// it, and a request whose response was lost is not resent. A body that only reads may end after it. Default: none.
    pub const fn deadline(mut self, after: Duration) -> Self {
        self.deadline = Some(after);
        self
    }

    /// Rejects all writes.
    pub const fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Checks at the end that everything read was valid at one moment, even if nothing is written.
    pub const fn verified(mut self) -> Self {
        self.commit.verified = true;
        self
    }

    /// Commits such that the outcome can always be determined, also after a lost response. On an engine without tokens
    /// for plain writes, a commit of one item then costs twice the capacity.
    pub const fn exactly_once(mut self) -> Self {
        self.commit.exactly_once = true;
        self
    }

    /// Allows this transaction inside the body of another. It commits separately, before the outer one, and
    /// runs again each time the outer one does.
    pub const fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// Allows the body to get an item more than once: the later row contains the changes of rows dropped before, and no
    /// request is sent. Without this option that is an error, because in most code it is a mistake. If several rows of an
    /// item are held at the same time, only one may change it.
    pub const fn cache_rows(mut self) -> Self {
        self.cache_rows = true;
        self
    }

    /// A label for errors and traces.
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
        if body_task::is_inside() && !self.detached {
            return Err(nested().into());
        }
        let mut recorder = TransactionTelemetry::begin(self.label.as_deref(), self.read_only);
        let span = recorder.span.clone();
        let returned = self.attempts(&body, &mut recorder).instrument(span).await;
        recorder.end();
        returned
    }

    /// Runs the body until an attempt succeeds or fails permanently.
    async fn attempts<R, E, F>(
        &self,
        body: &F,
        recorder: &mut TransactionTelemetry<'_>,
    ) -> Result<R, E>
    where
        F: for<'t> TxBody<&'t Tx, Result<R, E>> + Send + Sync,
        R: Send,
        E: From<Error> + Send,
    {
        let deadline = self.deadline;
        let end = deadline.map(|after| self.db.engine().now().plus(after));
        loop {
            let attempt = recorder.attempt();
            let attempts = recorder.attempts;
            let tx = Tx::new(self.db.clone(), self.cache_rows);
            let returned = {
                let _guard = CloseOnDrop(&tx);
                let run = body_task::run(TxBody::call(body, &tx));
                run.instrument(attempt.clone()).await
            };
            let hooks = tx.inner.hooks.take();
            let (own, cause) = match returned {
                Ok(value) => match self.commit(&tx, end, attempts).instrument(attempt).await {
                    Ok(items) => {
                        recorder.committed(items);
                        hooks::run(hooks, &Outcome::Committed).await;
                        return Ok(value);
                    }
                    Err(Failure::Final(error)) => {
                        recorder.failed(&error);
                        return Err(failed(hooks, error, None).await);
                    }
                    Err(Failure::Retry(error)) => (None, error),
                },
                Err(error) => match tx.session().retry_cause() {
                    // The body only returned the store's error.
                    Some(cause) if cause.store_error().is_some() => (None, cause),
                    Some(cause) => (Some(error), cause),
                    None => return Err(failed(hooks, aborted(), Some(error)).await),
                },
            };
            telemetry::retried(&cause, attempts);
            if let Err(error) = self.pause(attempts, end, cause).await {
                recorder.failed(&error);
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
        let is_late = deadline.is_some_and(|deadline| now > deadline);
        if is_late && commit::is_sent(&parts, options) {
            return Err(Failure::Final(self.too_late(attempt)));
        }
        commit::commit(self.db, parts, now, options).await
    }

    /// Waits before the next attempt, or returns the error if there is none.
    async fn pause(&self, attempts: u32, end: Option<Timestamp>, cause: Error) -> Result<()> {
        if attempts > self.backoff.retries {
            let what = match cause.store_error() {
                None => "too much contention",
                Some(_) => "the store was not ready",
            };
            return Err(self.failed(ErrorKind::TransactionFailed, what, attempts, cause));
        }
        let pause = self.backoff.pause(attempts, self.db.env().next_u64());
        if end.is_some_and(|end| self.db.engine().now().plus(pause) > end) {
            return Err(self.failed(ErrorKind::Deadline, "the deadline passed", attempts, cause));
        }
        self.db.timer().sleep(pause).await;
        Ok(())
    }

    fn failed(&self, kind: ErrorKind, what: &str, attempts: u32, cause: Error) -> Error {
        let message = self.with_label(format!("{what}: {cause} attempts={attempts}"));
        cause.after_attempts(kind, message, attempts)
    }

    fn too_late(&self, attempts: u32) -> Error {
        let what = "the deadline passed before the commit was sent and nothing was written; set a later deadline or \
                    shorten the body";
        let message = self.with_label(format!("{what}: attempts={attempts}"));
        let error = Error::new(ErrorKind::Deadline, what);
        error.after_attempts(ErrorKind::Deadline, message, attempts)
    }

    fn with_label(&self, message: String) -> String {
        match &self.label {
            Some(label) => format!("{message} label={label}"),
            None => message,
        }
    }
}

/// Closes the session of an attempt when its body has ended, also if it was dropped or panicked. A transaction handle
/// that outlives the body must not accept writes that are never committed.
struct CloseOnDrop<'tx>(&'tx Tx);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.session().close();
    }
}

/// Runs the hooks, and returns the body's own error if there is one.
async fn failed<E: From<Error>>(hooks: Vec<hooks::Hook>, error: Error, own: Option<E>) -> E {
    hooks::run(hooks, &Outcome::Failed(error.clone())).await;
    own.unwrap_or_else(|| error.into())
}

fn aborted() -> Error {
    Error::new(ErrorKind::Aborted, "the body returned its own error")
}

fn nested() -> Error {
    Error::invalid_use(
        "a transaction inside the body of another would commit separately: pass the outer one, or call \
         detached()",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn thread_runs_other_bodies_after_a_body_panicked() {
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
