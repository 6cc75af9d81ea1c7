//! A pattern for tests: records in memory, checkpoints and dead letters behind an engine with faults, leases behind
//! failing heartbeats, and the outcome of each record.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use floe_store::env::SeededRandom;
use floe_store::{Error as StoreError, Result as StoreResult};
use floe_testkit::fault::{FaultEngine, Faults};
use floe_testkit::model::ModelEngine;
use floe_testkit::time::TestEnv;

use super::super::*;
use crate::db::TokioTimer;
use crate::request::Backoff;

pub(super) const PARTITIONS: u32 = 3;
const RECORDS_AHEAD: u64 = 20;
const RECORDS_PER_READ: usize = 5;
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// The stored state of a partition.
#[derive(Clone, Debug, PartialEq, crate::Model)]
#[model(crate = "crate", table = "partitions")]
pub(super) struct Checkpoint {
    #[model(key)]
    partition: String,
    term: u64,
    position: u64,
    /// The numbers of the dead letters.
    pub(super) letters: Vec<u64>,
}

/// How the handlers behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handlers {
    Calm,
    /// They sometimes fail, panic or hang.
    Wild,
    /// Handlers of key 0 hang.
    Hung,
}

/// The records of all partitions with their outcomes, and the stored leases.
pub(super) struct World {
    pub(super) db: Db,
    pub(super) faults: Arc<FaultEngine>,
    pub(super) random: SeededRandom,
    options: Options,
    handlers: Mutex<Handlers>,
    /// Whether two handlers of one key may overlap: a stalled worker does not know that it lost its lease.
    may_overlap: bool,
    pub(super) members: Mutex<Members>,
    /// Whether heartbeats sometimes fail.
    pub(super) is_flaky: AtomicBool,
    pub(super) replay_requests: AtomicU64,
    books: Mutex<Books>,
    pub(super) notices: Mutex<Vec<LeaseNotice>>,
}

#[derive(Default)]
pub(super) struct Books {
    /// The key of each record of a partition.
    records: BTreeMap<u32, Vec<u64>>,
    /// How many records of a key are handled.
    handled: BTreeMap<(u32, u64), usize>,
    busy: BTreeSet<(u32, u64)>,
    /// The terms of the started runs, by partition.
    terms: BTreeMap<u32, u64>,
    pub(super) positions: BTreeMap<u32, u64>,
    pub(super) calls: u64,
}

impl Books {
    /// The position of a record among those of its key.
    fn rank(&self, partition: u32, number: u64) -> (u64, usize) {
        let records = &self.records[&partition];
        let key = records[number as usize];
        let before = records.iter().take(number as usize);
        (key, before.filter(|other| **other == key).count())
    }

    fn is_handled(&self, partition: u32, number: u64) -> bool {
        let (key, rank) = self.rank(partition, number);
        self.handled
            .get(&(partition, key))
            .is_some_and(|n| *n > rank)
    }
}

/// A running handler.
struct Busy<'w>(&'w World, (u32, u64));

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.books().busy.remove(&self.1);
    }
}

impl World {
    pub(super) async fn new(seed: u64, faults: Faults) -> Arc<Self> {
        Self::with(seed, faults, false).await
    }

    pub(super) async fn with(seed: u64, faults: Faults, may_overlap: bool) -> Arc<Self> {
        let env = TestEnv::seeded(seed).env;
        let engine = Arc::new(ModelEngine::new(env.clone()));
        let faults = Arc::new(FaultEngine::new(engine, faults));
        faults.pause();
        let db = Db::with_parts(faults.clone(), env, Arc::new(TokioTimer));
        db.ensure_tables(&[<Checkpoint as crate::Model>::SCHEMA])
            .await
            .unwrap();
        let backoff = Backoff {
            initial: Duration::from_millis(100),
            ..Backoff::default()
        };
        Arc::new(Self {
            db,
            faults,
            random: SeededRandom::new(seed),
            options: Options::new(3, 4, backoff),
            handlers: Mutex::new(Handlers::Calm),
            may_overlap,
            members: Mutex::default(),
            is_flaky: AtomicBool::new(false),
            replay_requests: AtomicU64::new(0),
            books: Mutex::default(),
            notices: Mutex::default(),
        })
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    pub(super) fn behave(&self, handlers: Handlers) {
        *self.handlers.lock().unwrap() = handlers;
    }

    pub(super) fn append(&self, partition: u32, keys: impl IntoIterator<Item = u64>) {
        let mut books = self.books();
        books.records.entry(partition).or_default().extend(keys);
    }

    /// Calls the handler of a record.
    async fn handle(&self, partition: u32, number: u64) -> Result<(), &'static str> {
        let (key, rank) = self.books().rank(partition, number);
        let is_first = self.books().busy.insert((partition, key));
        assert!(is_first || self.may_overlap, "two handlers of one key");
        let _busy = Busy(self, (partition, key));
        let handlers = *self.handlers.lock().unwrap();
        if handlers == Handlers::Hung && key == 0 {
            pending::<()>().await;
        }
        for _ in 0..self.random.below(3) {
            tokio::task::yield_now().await;
        }
        if handlers == Handlers::Wild {
            match self.random.below(12) {
                // Unlike a panic, it prints nothing.
                0 => std::panic::resume_unwind(Box::new("no luck")),
                1 => pending::<()>().await,
                2 => return Err("not now"),
                3 => {
                    self.sleep(Duration::from_millis(self.random.below(9_000)))
                        .await;
                }
                _ => {}
            }
        }
        let books = &mut *self.books();
        books.calls += 1;
        let handled = books.handled.entry((partition, key)).or_default();
        assert!(rank <= *handled, "out of order: {number} of {key}");
        *handled = (*handled).max(rank + 1);
        Ok(())
    }

    pub(super) async fn sleep(&self, duration: Duration) {
        self.db.timer().sleep(duration).await;
    }

    /// Changes the stored state of a partition, if the lease is valid.
    pub(super) async fn change(
        &self,
        partition: u32,
        term: u64,
        change: impl Fn(&mut Checkpoint) + Send + Sync,
    ) -> Result<Option<Checkpoint>> {
        let key = partition.to_string();
        let changed = self.db.transact(async |tx| {
            let mut stored = tx
                .get_or_create(Checkpoint {
                    partition: key.clone(),
                    term,
                    position: 0,
                    letters: Vec::new(),
                })
                .await?;
            if *stored.term > term {
                return Ok::<_, Error>(None);
            }
            let mut after = Checkpoint {
                partition: key.clone(),
                term,
                position: *stored.position,
                letters: stored.letters.clone(),
            };
            change(&mut after);
            stored.term.set(after.term)?;
            stored.position.set(after.position)?;
            stored.letters.set(after.letters.clone())?;
            Ok(Some(after))
        });
        changed.await
    }

    /// Runs a worker until it has caught up, or without end.
    pub(super) async fn work(
        &self,
        follows: bool,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        let worker = Worker::new(self, follows, true)?;
        worker.run(Box::pin(stop)).await
    }

    /// Runs a worker until everything is processed, and checks the result.
    pub(super) async fn finish(&self, seed: u64) {
        self.faults.pause();
        self.is_flaky.store(false, Ordering::Relaxed);
        self.behave(Handlers::Calm);
        self.replay_requests.fetch_add(1, Ordering::Relaxed);
        self.work(false, pending()).await.unwrap();
        let records = self.books().records.clone();
        for (partition, keys) in records {
            for number in 0..keys.len() as u64 {
                let is_handled = self.books().is_handled(partition, number);
                assert!(is_handled, "lost: seed={seed} {partition}/{number}");
            }
            let stored = self.change(partition, u64::MAX, |_| {}).await.unwrap();
            let stored = stored.unwrap();
            assert_eq!(stored.position, keys.len() as u64, "seed={seed}");
            assert_eq!(stored.letters, [] as [u64; 0], "seed={seed}");
        }
    }
}

impl Host for World {
    fn db(&self) -> &Db {
        &self.db
    }

    fn options(&self) -> &Options {
        &self.options
    }

    fn store_failed(&self, _: &Error, _: Duration) {}
}

/// Sends a request that sometimes fails, before or after it is applied.
fn maybe<T>(world: &World, request: impl FnOnce() -> T) -> StoreResult<T> {
    let roll = if world.is_flaky.load(Ordering::Relaxed) {
        world.random.below(8)
    } else {
        7
    };
    let lost = || StoreError::OutcomeUnknown("lost".to_owned());
    match roll {
        0 => Err(StoreError::Throttling("slow down".to_owned())),
        1 => {
            request();
            Err(lost())
        }
        _ => Ok(request()),
    }
}

impl Group for World {
    fn host(&self) -> &dyn Host {
        self
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<GroupState> {
        tokio::task::yield_now().await;
        let members = maybe(self, || {
            let mut members = self.members.lock().unwrap();
            *members = members.after_heartbeat(&heartbeat, Some(PARTITIONS));
            members.clone()
        });
        Ok(GroupState {
            members: members?,
            partitions: Some(PARTITIONS),
            replay_requests: self.replay_requests.load(Ordering::Relaxed),
        })
    }

    async fn leave(&self, member: &str) -> Result<()> {
        maybe(self, || {
            let mut members = self.members.lock().unwrap();
            *members = members.without(member);
        })?;
        Ok(())
    }

    async fn run(&self, context: RunContext) -> Result<RunOutcome> {
        let (partition, term) = (context.partition, context.lease.as_ref().unwrap().term);
        let claim = || -> BoxFuture<'_, Result<Option<Checkpoint>>> {
            Box::pin(self.change(partition, term, |_| {}))
        };
        let Some(claimed) = context.unless_stopped(retry_store(self, true, claim)).await else {
            return Ok(RunOutcome::Completed);
        };
        let Some(claimed) = claimed? else {
            return Ok(RunOutcome::Fenced);
        };
        {
            let before = self.books().terms.insert(partition, term);
            assert!(before < Some(term), "two runs under one term");
        }
        let running = Running {
            world: self,
            partition,
            term,
            parked: Mutex::default(),
            read: AtomicU64::new(claimed.position),
            done: AtomicU64::new(claimed.position),
        };
        let sources = vec![(claimed.position, None)];
        Run::new(&running, context, sources).finish().await
    }

    fn noticed(&self, notice: LeaseNotice) {
        self.notices.lock().unwrap().push(notice);
    }
}

/// A run over a partition.
struct Running<'w> {
    world: &'w World,
    partition: u32,
    term: u64,
    /// The keys with dead letters.
    parked: Mutex<BTreeSet<u64>>,
    read: AtomicU64,
    done: AtomicU64,
}

/// The task of a turn.
enum Task {
    Handle(u64),
    Replay,
}

impl Running<'_> {
    /// Attempts to handle a record, until it succeeds or the last attempt fails.
    async fn attempt(&self, number: u64) -> bool {
        let mut attempts = Attempts::new(self.world);
        loop {
            let handler = self.world.handle(self.partition, number);
            let timeout = Some(Timeout::of(self.world));
            if let Ok(Ok(())) = guard(timeout, handler).await {
                return true;
            }
            match attempts.fail(Duration::ZERO) {
                Some(pause) => attempts.wait(pause).await,
                None => return false,
            }
        }
    }

    async fn change(&self, change: impl Fn(&mut Checkpoint) + Send + Sync) -> Result<RunOutcome> {
        let changed = || -> BoxFuture<'_, Result<Option<Checkpoint>>> {
            Box::pin(self.world.change(self.partition, self.term, &change))
        };
        let changed = retry_store(self.world, true, changed).await?;
        Ok(changed.map_or(RunOutcome::Fenced, |_| RunOutcome::Completed))
    }

    async fn letters(&self, key: u64) -> Result<Option<Vec<u64>>> {
        let stored = || -> BoxFuture<'_, Result<Option<Checkpoint>>> {
            Box::pin(self.world.change(self.partition, self.term, |_| {}))
        };
        let stored = retry_store(self.world, true, stored).await?;
        let books = self.world.books();
        Ok(stored.map(|stored| {
            let letters = stored.letters.into_iter();
            let mut letters: Vec<u64> = letters
                .filter(|number| books.rank(self.partition, *number).0 == key)
                .collect();
            letters.sort_unstable();
            letters
        }))
    }
}

impl Consume for Running<'_> {
    type Source = u64;
    type Key = u64;
    type Work = Task;
    type Checkpoint = u64;

    const LIMITS: BacklogLimits = BacklogLimits {
        batches_max: 8,
        records_max: RECORDS_AHEAD,
        bytes_max: 1_000,
    };
    const EMPTY_READS: u32 = 2;

    fn host(&self) -> &dyn Host {
        self.world
    }

    fn turn_records_max(&self) -> u64 {
        4
    }

    async fn read(&self, _: usize, position: &mut u64) -> Result<BatchOf<Self>> {
        tokio::task::yield_now().await;
        let first = *position;
        let keys: Vec<u64> = {
            let books = self.world.books();
            let records = books.records.get(&self.partition).into_iter().flatten();
            records
                .skip(first as usize)
                .take(RECORDS_PER_READ)
                .copied()
                .collect()
        };
        let count = maybe(self.world, || keys.len() as u64)?;
        *position += count;
        let read = self.read.fetch_add(count, Ordering::Relaxed) + count;
        let ahead = read - self.done.load(Ordering::Relaxed);
        assert!(
            ahead <= RECORDS_AHEAD + RECORDS_PER_READ as u64,
            "unbounded"
        );
        let size = Size {
            records: 1,
            bytes: 10,
        };
        let entries = keys.into_iter().zip(first..).map(|(key, number)| Entry {
            key,
            work: Task::Handle(number),
            size,
        });
        Ok(Batch {
            entries: entries.collect(),
            checkpoint: (count > 0).then_some(*position),
            is_idle: count == 0,
        })
    }

    async fn turn(&self, _: usize, key: &u64, tasks: Vec<Task>) -> Result<RunOutcome> {
        for task in tasks {
            let number = match task {
                Task::Handle(number) => number,
                Task::Replay => {
                    let Some(letters) = self.letters(*key).await? else {
                        return Ok(RunOutcome::Fenced);
                    };
                    for number in letters {
                        if !self.attempt(number).await {
                            return Ok(RunOutcome::Completed);
                        }
                        let removed = |stored: &mut Checkpoint| {
                            stored.letters.retain(|other| *other != number);
                        };
                        if self.change(removed).await? == RunOutcome::Fenced {
                            return Ok(RunOutcome::Fenced);
                        }
                    }
                    self.parked.lock().unwrap().remove(key);
                    continue;
                }
            };
            let is_parked = self.parked.lock().unwrap().contains(key);
            if is_parked || !self.attempt(number).await {
                self.parked.lock().unwrap().insert(*key);
                let parked = |stored: &mut Checkpoint| {
                    if !stored.letters.contains(&number) {
                        stored.letters.push(number);
                    }
                };
                if self.change(parked).await? == RunOutcome::Fenced {
                    return Ok(RunOutcome::Fenced);
                }
            }
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(RunOutcome::Completed)
    }

    async fn store(&self, checkpoints: &[(usize, u64)]) -> Result<RunOutcome> {
        let (_, checkpoint) = *checkpoints.last().unwrap();
        let stored = |stored: &mut Checkpoint| {
            let books = self.world.books();
            for number in 0..checkpoint {
                let is_done =
                    books.is_handled(self.partition, number) || stored.letters.contains(&number);
                assert!(is_done, "the checkpoint passes {number}");
            }
            assert!(stored.position <= checkpoint, "the checkpoint goes back");
            stored.position = checkpoint;
        };
        let end = self.change(stored).await?;
        if end == RunOutcome::Completed {
            let before = self
                .world
                .books()
                .positions
                .insert(self.partition, checkpoint);
            assert!(before.unwrap_or_default() <= checkpoint);
        }
        Ok(end)
    }

    async fn replays(&self) -> Result<Replays<Self>> {
        let world = self.world;
        let Some(stored) = world.change(self.partition, self.term, |_| {}).await? else {
            return Ok(Vec::new());
        };
        let books = world.books();
        let letters = stored.letters.iter();
        let keys: BTreeSet<u64> = letters
            .map(|number| books.rank(self.partition, *number).0)
            .collect();
        self.parked.lock().unwrap().extend(&keys);
        let is_asked = world.replay_requests.load(Ordering::Relaxed) > 0;
        let replay_requests = keys.into_iter().filter(|_| is_asked);
        Ok(replay_requests.map(|key| (0, key, Task::Replay)).collect())
    }
}
