//! Consumers: read the change streams of tables, pass the changes to a router, and store checkpoints.
//!
//! ```
//! use floe::changes::{Cause, ChangeConsumer, Removed, Router, consumer};
//! use floe::{Db, Error, Model};
//!
//! #[derive(Model)]
//! #[model(stream)]
//! struct Session { #[model(key)] id: String, user: String }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let db = Db::memory()?;
//! db.ensure_tables(&[Session::SCHEMA]).await?;
//! db.ensure_tables(&consumer::SCHEMAS).await?;
//! let router = Router::new().on_removed::<Session>(Cause::Any, async |removed: Removed<Session>| {
//!     println!("{} has left", removed.value.user);
//!     Ok(())
//! });
//!
//! db.transact(async |tx| {
//!     tx.create(Session { id: "s1".to_owned(), user: "ada".to_owned() }).map(drop)
//! })
//! .await?;
//! db.transact(async |tx| tx.delete_key::<Session>("s1")).await?;
//! let summary = ChangeConsumer::new(&db, "farewell", router).run_until_caught_up().await?;
//! assert_eq!((summary.records, summary.handled), (2, 1));
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - **At least once.** A checkpoint is stored only after every change before it was handled or became a dead letter.
//!   After a crash, later changes are delivered again.
//! - **In order per item.** The changes of an item are handled one at a time, in commit order. Many items are handled
//!   concurrently.
//! - **Duplicates are detected** by id within a run, and by position between runs. After a crash, some changes that
//!   were already handled are delivered again: handlers that must not act twice store the
//!   [id](super::Change::event_id).
//! - **A failure blocks only its item.** The change is retried with backoff, and finally becomes a dead letter: see
//!   [`dead_letters`]. A panic of a handler is a failure, and so is exceeding the
//!   [timeout](ChangeConsumer::handler_timeout).
//! - **Memory is bounded.** Reading pauses while handlers are slower than writers.
//! - **One active process.** Of several processes with the same name, one delivers and the others wait to take over.
//!   A process that stalls for longer than its [lease](ChangeConsumer::lease) may handle a change concurrently with its
//!   successor, but can store nothing.
//! - **No silent loss.** Engines that support it hold unprocessed records. If records were trimmed before they were
//!   read, as DynamoDB does after a day, the consumer fails; see [`accept_trimmed`](ChangeConsumer::accept_trimmed).
//!
//! A consumer is one future, and handlers run in its task. It can be dropped at any time. Long computations belong
//! elsewhere (`spawn_blocking`).
//!
//! # Stored state
//!
//! In the table `floe_changes`, created by `db.ensure_tables(&consumer::SCHEMAS)`: [`ConsumerLease`],
//! [`ConsumerPosition`], [`DeadLetterRecord`].

pub mod dead_letters;
mod lease;
mod notice;
mod position;
mod run;
mod source;
mod stored;
mod tables;
mod telemetry;
mod turn;

use std::collections::BTreeSet;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use floe_store::BoxFuture;

use self::dead_letters::DeadLetters;
pub use self::notice::{ConsumerNotice, ConsumerProgress, ConsumerSummary};
use self::run::ProcessGroup;
use self::source::Source;
pub use self::stored::{
    ConsumerLease, ConsumerPosition, DeadLetterPart, DeadLetterRecord, SCHEMAS,
};
use super::limits::{ATTEMPTS_MAX, CONCURRENCY_MAX, DEAD_LETTERS_MAX};
use super::router::{Needs, Router};
use crate::db::Db;
use crate::delivery::{self, Callback, Host, STORE_BACKOFF, ShardPositions, Worker, release_holds};
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;

/// Reads the changes of tables, passes them to a router, and stores checkpoints.
#[derive(Clone, Debug)]
#[must_use = "a consumer does nothing until it runs"]
pub struct ChangeConsumer {
    db: Db,
    name: Arc<str>,
    router: Router,
    tables: BTreeSet<String>,
    options: Options,
}

/// Options of a consumer.
#[derive(Clone, Debug)]
struct Options {
    delivery: delivery::Options,
    dead_letters_max: usize,
    accepts_trimmed: bool,
    on_notice: Callback<dyn Fn(&ConsumerNotice<'_>) + Send + Sync>,
}

impl Host for ChangeConsumer {
    fn db(&self) -> &Db {
        &self.db
    }

    fn options(&self) -> &delivery::Options {
        &self.options.delivery
    }

    fn store_failed(&self, error: &Error, pause: Duration) {
        self.notify(&ConsumerNotice::Failed { error, pause });
    }
}

impl ChangeConsumer {
    /// Creates a consumer for the tables that the router's handlers name by type or topic.
    pub fn new(db: &Db, name: impl Into<Arc<str>>, router: Router) -> Self {
        let tables = router.tables().into_iter().map(str::to_owned).collect();
        Self {
            db: db.clone(),
            name: name.into(),
            router,
            tables,
            options: Options {
                delivery: delivery::Options::new(CONCURRENCY_MAX, ATTEMPTS_MAX, STORE_BACKOFF),
                dead_letters_max: DEAD_LETTERS_MAX,
                accepts_trimmed: false,
                on_notice: Callback::default(),
            },
        }
    }

    /// Adds a table. Needed for patterns, which do not name tables.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.tables.insert(table.into());
        self
    }

    setters! {
        /// Maximum number of items handled concurrently. Default: 64.
        pub const fn concurrency_max(items: usize) => options.delivery.concurrency_max = items;

        /// Maximum attempts before a change becomes a dead letter. Default: 8.
        pub const fn attempts_max(attempts: u32) => options.delivery.attempts_max = attempts;
    }

    /// Initial and maximum pause before a retry. The pause doubles with each attempt. Default: 100 milliseconds and
    /// 10 seconds.
    pub const fn backoff(mut self, initial: Duration, max: Duration) -> Self {
        self.options.delivery.backoff.initial = initial;
        self.options.delivery.backoff.max = max;
        self
    }

    setters! {
        /// Time limit of a handler, for one change. Default: 60 seconds. A handler that exceeds it is dropped, which
        /// fails the attempt; until then it blocks only its item.
        pub const fn handler_timeout(timeout: Duration) => options.delivery.handler_timeout = timeout;

        /// Maximum number of dead letters. The consumer fails when there are more, because the cause is then not in
        /// the changes. Default: 1,000.
        pub const fn dead_letters_max(changes: usize) => options.dead_letters_max = changes;

        /// Pause after an empty read. Default: 250 milliseconds.
        pub const fn poll(pause: Duration) => options.delivery.poll = pause;

        /// Time without a heartbeat after which another process takes over. Default: 10 seconds.
        pub const fn lease(lease: Duration) => options.delivery.lease = lease;

        /// Time for running handlers to finish when the consumer stops. Default: 5 seconds.
        pub const fn grace(grace: Duration) => options.delivery.grace = grace;

        /// Continues if unread change records may have been trimmed. Those are never delivered.
        pub const fn accept_trimmed() => options.accepts_trimmed = true;

        /// Calls this function with notices while the consumer runs.
        pub fn on_notice(listener: impl Fn(&ConsumerNotice<'_>) + Send + Sync + 'static) =>
            options.on_notice.0 = Some(Arc::new(listener));
    }

    /// The dead letters of this consumer.
    pub fn dead_letters(&self) -> DeadLetters {
        DeadLetters::of(&self.db, self.name.clone())
    }

    /// Delivers all changes made before the call, and possibly some made during it. Does nothing if another process
    /// of this name is active.
    ///
    /// # Errors
    ///
    /// - [`InvalidUse`](ErrorKind::InvalidUse) if there are no tables to read, or an option is out of range.
    /// - [`Table`](ErrorKind::Table) if a table has no change stream, or one without the images that handlers need.
    /// - [`MissingEvents`](ErrorKind::MissingEvents) if unread change records are gone.
    /// - [`TooLarge`](ErrorKind::TooLarge) if there are too many dead letters.
    /// - [`Store`](ErrorKind::Store) if the store fails permanently; transient failures are retried.
    ///
    /// The consumer can be run again after any of them.
    pub async fn run_until_caught_up(&self) -> Result<ConsumerSummary> {
        self.run_as(Box::pin(pending()), false).await
    }

    /// Delivers until `stop` completes. Then waits for running handlers, stores checkpoints, and lets another process
    /// take over.
    ///
    /// # Errors
    ///
    /// As for [`run_until_caught_up`](Self::run_until_caught_up).
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) -> Result<ConsumerSummary> {
        self.run_as(Box::pin(stop), true).await
    }

    async fn run_as(&self, stop: BoxFuture<'_, ()>, follows: bool) -> Result<ConsumerSummary> {
        if self.tables.is_empty() {
            let name = &self.name;
            let message = format!(
                "the consumer has no tables to read, and its router names none: consumer={name}"
            );
            return Err(Error::new(ErrorKind::InvalidUse, message));
        }
        let group = ProcessGroup::new(self);
        Worker::new(&group, follows, true)?.run(stop).await?;
        Ok(*lock(&group.summary))
    }

    /// Releases the holds on change records. For a consumer that will not run again under this name.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn release(&self) -> Result<()> {
        if !self.db.engine().capabilities().change_holds {
            return Ok(());
        }
        for table in self.tables() {
            let source = Source::open(&self.db, &table, ShardPositions::default(), true).await?;
            release_holds(&self.db, source.checkpoint(&self.hold_name()).holds).await?;
        }
        Ok(())
    }

    fn tables(&self) -> impl Iterator<Item = Arc<str>> {
        self.tables.iter().map(|table| table.as_str().into())
    }

    /// The images that the handlers of a table need.
    fn needs(&self, table: &str) -> Needs {
        self.router.needs(table)
    }

    /// The name for holds on change records.
    fn hold_name(&self) -> String {
        format!("floe-changes-{}", self.name)
    }

    /// Emits a notice.
    fn notify(&self, notice: &ConsumerNotice<'_>) {
        telemetry::emit_notice(&self.name, notice);
        if let Some(on_notice) = &self.options.on_notice.0 {
            on_notice(notice);
        }
    }
}
