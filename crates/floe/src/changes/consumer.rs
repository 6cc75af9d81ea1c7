//! Consumers: read the change streams of tables, give the changes to a router, and remember how far they have come.
//!
//! ```
//! use floe::changes::{Cause, Consumer, Removed, Router, consumer};
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
//! let ran = Consumer::new(&db, "farewell", router).run_until_caught_up().await?;
//! assert_eq!((ran.records, ran.handled), (2, 1));
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - **At least once.** What is stored is up to where every change is handled or parked. Who dies is given again what came
//!   after it.
//! - **In order per item.** The changes of an item come one after the other, in the order in which they were made. Many
//!   items are handled at once.
//! - **A change that comes again is known**, within a run by its id and from run to run by how far the last one has come.
//!   After a crash some come again that were handled: who must not act twice remembers the
//!   [id](super::Change::event_id).
//! - **A failure holds its item alone.** It is tried again after pauses, and parked in the end: see [`parked`]. A handler
//!   that panics has failed, and so has one that takes longer than its [timeout](Consumer::handler_timeout).
//! - **Memory is bounded.** Where handlers are slower than writers, no more is read.
//! - **One delivers.** Of several processes with the same name one delivers, and the others wait to take its place. One
//!   that stalls for longer than its [lease](Consumer::lease) may handle a change beside who has taken its place, but
//!   stores nothing any more.
//! - **Nothing is missed in silence.** Engines that can are asked to hold what is not done. Where records were trimmed
//!   before they were read, as DynamoDB does after a day, the consumer fails; see
//!   [`accept_trimmed`](Consumer::accept_trimmed).
//!
//! All of it is one future, and handlers run in its task. It can be dropped at any moment. What computes for long without
//! waiting belongs elsewhere (`spawn_blocking`).
//!
//! # What is stored
//!
//! In the table `floe_changes`, which `db.ensure_tables(&consumer::SCHEMAS)` makes: [`ConsumerLease`],
//! [`ConsumerPosition`], [`ParkedRecord`].

mod lease;
mod notice;
pub mod parked;
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

pub use self::notice::{Notice, Progress, Ran};
use self::parked::ParkedChanges;
use self::run::Processes;
use self::source::Source;
pub use self::stored::{ConsumerLease, ConsumerPosition, ParkedPart, ParkedRecord, SCHEMAS};
use super::limits::{ATTEMPTS_MAX, ITEMS_AT_ONCE, PARKED_MAX};
use super::router::{Needs, Router};
use crate::db::Db;
use crate::delivery::{self, Callback, Host, PATIENT, Positions, Worker, release};
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;

/// Gives the changes of tables to a router, and remembers how far it has come.
#[derive(Clone, Debug)]
#[must_use = "a consumer does nothing until it is run"]
pub struct Consumer {
    db: Db,
    name: Arc<str>,
    router: Router,
    tables: BTreeSet<String>,
    options: Options,
}

/// How changes are consumed.
#[derive(Clone, Debug)]
struct Options {
    delivery: delivery::Options,
    parked_max: usize,
    accepts_trimmed: bool,
    on_notice: Callback<dyn Fn(&Notice<'_>) + Send + Sync>,
}

impl Host for Consumer {
    fn db(&self) -> &Db {
        &self.db
    }

    fn options(&self) -> &delivery::Options {
        &self.options.delivery
    }

    fn store_failed(&self, error: &Error, pause: Duration) {
        self.tell(&Notice::Failed { error, pause });
    }
}

impl Consumer {
    /// A consumer of this name, for the tables whose changes the router asks for by type or by topic.
    pub fn new(db: &Db, name: impl Into<Arc<str>>, router: Router) -> Self {
        let tables = router.tables().into_iter().map(str::to_owned).collect();
        Self {
            db: db.clone(),
            name: name.into(),
            router,
            tables,
            options: Options {
                delivery: delivery::Options::new(ITEMS_AT_ONCE, ATTEMPTS_MAX, PATIENT),
                parked_max: PARKED_MAX,
                accepts_trimmed: false,
                on_notice: Callback::default(),
            },
        }
    }

    /// Reads the changes of this table as well: patterns do not say of which tables they are.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.tables.insert(table.into());
        self
    }

    setters! {
        /// Handles so many items at once; 64 if nothing is said.
        pub const fn at_once_max(items: usize) => options.delivery.concurrency_max = items;

        /// Tries a change so often before it is parked; 8 times if nothing is said.
        pub const fn attempts_max(attempts: u32) => options.delivery.attempts_max = attempts;
    }

    /// The pause before a change is tried again, which doubles each time, and the longest one: 100 milliseconds and 10
    /// seconds if nothing is said.
    pub const fn backoff(mut self, initial: Duration, max: Duration) -> Self {
        self.options.delivery.backoff.initial = initial;
        self.options.delivery.backoff.max = max;
        self
    }

    setters! {
        /// Timeout of a handler, for one change. Default: 60 seconds. A handler that takes longer is dropped, and has
        /// failed an attempt; until then it holds its item alone.
        pub const fn handler_timeout(timeout: Duration) => options.delivery.handler_timeout = timeout;

        /// Fails when more changes than this are parked: then it is not the changes that are at fault. 1,000 if nothing
        /// is said.
        pub const fn parked_max(changes: usize) => options.parked_max = changes;

        /// How long it waits after it has found nothing.
        pub const fn poll(pause: Duration) => options.delivery.poll = pause;

        /// How long this process may be silent before another takes its place; 10 seconds if nothing is said.
        pub const fn lease(lease: Duration) => options.delivery.lease = lease;

        /// How long handlers that are under way may take when it stops; 5 seconds if nothing is said.
        pub const fn grace(grace: Duration) => options.delivery.grace = grace;

        /// Goes on where change records are gone that were perhaps not read. Those are never delivered.
        pub const fn accept_trimmed() => options.accepts_trimmed = true;

        /// Tells this function what happens, while it runs.
        pub fn on_notice(tell: impl Fn(&Notice<'_>) + Send + Sync + 'static) =>
            options.on_notice.0 = Some(Arc::new(tell));
    }

    /// What is parked.
    pub fn parked(&self) -> ParkedChanges {
        ParkedChanges::of(&self.db, self.name.clone())
    }

    /// Delivers everything that was changed before, and perhaps some that is changed meanwhile. Does nothing if another
    /// process of this name delivers.
    ///
    /// # Errors
    ///
    /// - [`InvalidUse`](ErrorKind::InvalidUse) when there are no tables to be read, or the options are beyond what there
    ///   can be.
    /// - [`Table`](ErrorKind::Table) when a table has no change stream, or one without the images that handlers need.
    /// - [`MissingEvents`](ErrorKind::MissingEvents) when change records are gone that were not read.
    /// - [`TooLarge`](ErrorKind::TooLarge) when too many changes are parked.
    /// - [`Store`](ErrorKind::Store) when the store fails for good; what passes is waited for.
    ///
    /// It can be run again after any of them.
    pub async fn run_until_caught_up(&self) -> Result<Ran> {
        self.run_as(Box::pin(pending()), false).await
    }

    /// Delivers until `stop` is done. Then it waits for the handlers that are under way, stores how far it has come, and
    /// lets others take its place.
    ///
    /// # Errors
    ///
    /// As for [`run_until_caught_up`](Self::run_until_caught_up).
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) -> Result<Ran> {
        self.run_as(Box::pin(stop), true).await
    }

    async fn run_as(&self, stop: BoxFuture<'_, ()>, follows: bool) -> Result<Ran> {
        if self.tables.is_empty() {
            let name = &self.name;
            let message = format!(
                "a consumer needs tables to read, and the router names none: consumer={name}"
            );
            return Err(Error::new(ErrorKind::InvalidUse, message));
        }
        let processes = Processes::new(self);
        Worker::new(&processes, follows, true)?.run(stop).await?;
        Ok(*lock(&processes.ran))
    }

    /// Gives up the hold on change records: for a consumer that will not run again under this name.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn release(&self) -> Result<()> {
        if !self.db.engine().capabilities().change_holds {
            return Ok(());
        }
        for table in self.tables() {
            let source = Source::open(&self.db, &table, Positions::default(), true).await?;
            release(&self.db, source.mark(&self.hold_name()).holds).await?;
        }
        Ok(())
    }

    fn tables(&self) -> impl Iterator<Item = Arc<str>> {
        self.tables.iter().map(|table| table.as_str().into())
    }

    /// The images that the handlers of a table's changes need.
    fn needs(&self, table: &str) -> Needs {
        self.router.needs(table)
    }

    /// What changes are held under.
    fn hold_name(&self) -> String {
        format!("floe-changes-{}", self.name)
    }

    /// Tells what happens.
    fn tell(&self, notice: &Notice<'_>) {
        telemetry::noticed(&self.name, notice);
        if let Some(on_notice) = &self.options.on_notice.0 {
            on_notice(notice);
        }
    }
}
