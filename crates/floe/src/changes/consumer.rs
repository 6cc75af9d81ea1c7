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
//! - **A failure holds its item alone.** It is tried again after pauses, and parked in the end: see [`parked`].
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

mod backlog;
mod checkpoint;
mod lease;
mod notice;
pub mod parked;
mod position;
mod run;
mod source;
mod stored;
mod turn;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use floe_store::BoxFuture;
use floe_store::op::HoldChanges;

use self::lease::Mine;
pub use self::notice::{Notice, Progress, Ran};
use self::parked::ParkedChanges;
use self::run::{End, Run};
use self::source::Source;
pub use self::stored::{ConsumerLease, ConsumerPosition, ParkedPart, ParkedRecord, SCHEMAS};
use super::limits::{
    ATTEMPTS_MAX, BEATS_PER_LEASE, GRACE, ITEMS_AT_ONCE, LEASE, LEAVE_TRIES, PARKED_MAX, POLL,
};
use super::router::{Needs, Router};
use super::stream::{Positions, passes};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::request::Backoff;
use crate::side_by_side;
use crate::telemetry::changes as telemetry;

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
#[derive(Clone)]
struct Options {
    at_once_max: usize,
    attempts_max: u32,
    backoff: Backoff,
    parked_max: usize,
    poll: Duration,
    lease: Duration,
    grace: Duration,
    accepts_trimmed: bool,
    on_notice: Option<Arc<OnNotice>>,
}

type OnNotice = dyn Fn(&Notice<'_>) + Send + Sync;

impl Options {
    fn tell(&self, notice: &Notice<'_>) {
        if let Some(on_notice) = &self.on_notice {
            on_notice(notice);
        }
    }

    /// How long it is from one beat to the next.
    fn beat(&self) -> Duration {
        self.lease / BEATS_PER_LEASE
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("at_once_max", &self.at_once_max)
            .field("attempts_max", &self.attempts_max)
            .field("poll", &self.poll)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
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
                at_once_max: ITEMS_AT_ONCE,
                attempts_max: ATTEMPTS_MAX,
                backoff: Backoff {
                    retries: u32::MAX,
                    initial: Duration::from_millis(100),
                    max: Duration::from_secs(10),
                },
                parked_max: PARKED_MAX,
                poll: POLL,
                lease: LEASE,
                grace: GRACE,
                accepts_trimmed: false,
                on_notice: None,
            },
        }
    }

    /// Reads the changes of this table as well: patterns do not say of which tables they are.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.tables.insert(table.into());
        self
    }

    /// Handles so many items at once; 64 if nothing is said.
    pub const fn at_once_max(mut self, items: usize) -> Self {
        self.options.at_once_max = items;
        self
    }

    /// Tries a change so often before it is parked; 8 times if nothing is said.
    pub const fn attempts_max(mut self, attempts: u32) -> Self {
        self.options.attempts_max = attempts;
        self
    }

    /// The pause before a change is tried again, which doubles each time, and the longest one: 100 milliseconds and 10
    /// seconds if nothing is said.
    pub const fn backoff(mut self, initial: Duration, max: Duration) -> Self {
        self.options.backoff.initial = initial;
        self.options.backoff.max = max;
        self
    }

    /// Fails when more changes than this are parked: then it is not the changes that are at fault. 1,000 if nothing is
    /// said.
    pub const fn parked_max(mut self, changes: usize) -> Self {
        self.options.parked_max = changes;
        self
    }

    /// How long it waits after it has found nothing.
    pub const fn poll(mut self, pause: Duration) -> Self {
        self.options.poll = pause;
        self
    }

    /// How long this process may be silent before another takes its place; 10 seconds if nothing is said.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = lease;
        self
    }

    /// How long handlers that are under way may take when it stops; 5 seconds if nothing is said.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.options.grace = grace;
        self
    }

    /// Goes on where change records are gone that were perhaps not read. Those are never delivered.
    pub const fn accept_trimmed(mut self) -> Self {
        self.options.accepts_trimmed = true;
        self
    }

    /// Tells this function what happens, while it runs.
    pub fn on_notice(mut self, tell: impl Fn(&Notice<'_>) + Send + Sync + 'static) -> Self {
        self.options.on_notice = Some(Arc::new(tell));
        self
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
        self.run_as(pin!(std::future::pending()), false).await
    }

    /// Delivers until `stop` is done. Then it waits for the handlers that are under way, stores how far it has come, and
    /// lets others take its place.
    ///
    /// # Errors
    ///
    /// As for [`run_until_caught_up`](Self::run_until_caught_up).
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) -> Result<Ran> {
        self.run_as(pin!(stop), true).await
    }

    async fn run_as(
        &self,
        mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
        follows: bool,
    ) -> Result<Ran> {
        self.check()?;
        let me = self.db.env().uuid();
        let (mut ran, mut patience) = (Ran::default(), self.patience());
        loop {
            let lead = side_by_side::unless(stop.as_mut(), self.lead(&me, follows)).await;
            let Some(Some(mine)) = lead.transpose()? else {
                return Ok(ran);
            };
            self.tell(&Notice::Leads);
            let stop = stop.as_mut();
            let end = self.deliver(&mine, stop, follows, &mut ran, &mut patience);
            let end = end.await;
            if !matches!(end, Ok(End::Fenced)) {
                self.give_back(&mine).await;
                return end.map(|_| ran);
            }
            self.tell(&Notice::Waits);
        }
    }

    async fn deliver(
        &self,
        mine: &Mine,
        mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
        follows: bool,
        ran: &mut Ran,
        patience: &mut Patience<'_>,
    ) -> Result<End> {
        let begun = Run::begin(self, mine.clone(), follows, *ran);
        let mut run = match side_by_side::unless(stop.as_mut(), begun).await {
            None => return Ok(End::Done),
            Some(Ok(Some(run))) => run,
            Some(Ok(None)) => return Ok(End::Fenced),
            Some(Err(error)) => {
                // By then the lease may be over, so it is taken anew.
                patience.outlast(error).await?;
                return Ok(End::Fenced);
            }
        };
        let end = run.finish(stop).await;
        *ran = run.ran();
        end
    }

    /// Waits until this process is to deliver. `None` if another one does and nobody wants to wait for its end.
    async fn lead(&self, me: &str, waits: bool) -> Result<Option<Mine>> {
        let mut patience = self.patience();
        let (mut seen, mut rounds, mut is_told) = (None, 0, false);
        loop {
            // A round may have been nearly over when the other was seen, so it does not count.
            let gone = seen.as_ref().filter(|_| rounds > BEATS_PER_LEASE);
            match lease::take(&self.db, &self.name, me, gone).await {
                Ok(Ok(mine)) => return Ok(Some(mine)),
                Ok(Err(now)) => match seen.replace(now) == seen {
                    true => rounds += 1,
                    // It was seen to be alive.
                    false if rounds > 0 && !waits => return Ok(None),
                    false => rounds = 1,
                },
                Err(error) => {
                    patience.outlast(error).await?;
                    continue;
                }
            }
            if !std::mem::replace(&mut is_told, true) {
                self.tell(&Notice::Waits);
            }
            self.sleep(self.options.beat()).await;
        }
    }

    /// Lets another process take the place at once. If that does not work, the lease runs out.
    async fn give_back(&self, mine: &Mine) {
        let mut patience = self.patience();
        for _ in 0..LEAVE_TRIES {
            match lease::give_back(&self.db, &self.name, mine).await {
                Ok(()) => return,
                Err(error) => {
                    if patience.outlast(error).await.is_err() {
                        return;
                    }
                }
            }
        }
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
            for hold in source.mark(&self.hold_name()).holds {
                let hold = HoldChanges {
                    after_sequence: None,
                    ..hold
                };
                self.db.engine().hold_changes(hold).await?;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let refused = |message: String| Err(Error::new(ErrorKind::InvalidUse, message));
        if self.tables.is_empty() {
            let name = &self.name;
            return refused(format!(
                "a consumer needs tables to read, and the router names none: consumer={name}"
            ));
        }
        if self.options.beat().is_zero() {
            let lease = self.options.lease;
            return refused(format!("a lease must last for a while: lease={lease:?}"));
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

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.db.timer().sleep(duration)
    }

    const fn patience(&self) -> Patience<'_> {
        Patience {
            consumer: self,
            failures: 0,
        }
    }

    async fn wait_after(&self, error: &Error, failures: u32) {
        let pause = STORE_BACKOFF.pause(failures, self.db.env().next_u64());
        self.tell(&Notice::Failed { error, pause });
        self.sleep(pause).await;
    }

    /// Tells what happens.
    fn tell(&self, notice: &Notice<'_>) {
        telemetry::noticed(&self.name, notice);
        self.options.tell(notice);
    }

    /// Tells of a failure that passes.
    ///
    /// # Errors
    ///
    /// The failure itself, if it does not.
    fn tell_failed(&self, error: Error, pause: Duration) -> Result<()> {
        if !passes(&error) {
            return Err(error);
        }
        let error = &error;
        self.tell(&Notice::Failed { error, pause });
        Ok(())
    }
}

/// Waits where the store fails, again and again.
struct Patience<'c> {
    consumer: &'c Consumer,
    failures: u32,
}

impl Patience<'_> {
    /// Waits after a failure.
    ///
    /// # Errors
    ///
    /// The failure itself, if it does not pass.
    async fn outlast(&mut self, error: Error) -> Result<()> {
        if !passes(&error) {
            return Err(error);
        }
        self.failures = self.failures.saturating_add(1);
        self.consumer.wait_after(&error, self.failures).await;
        Ok(())
    }
}

/// The pauses after failures of the store.
const STORE_BACKOFF: Backoff = Backoff {
    retries: u32::MAX,
    initial: Duration::from_millis(100),
    max: Duration::from_secs(10),
};
