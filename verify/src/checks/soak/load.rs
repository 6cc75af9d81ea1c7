//! The process under load.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use floe_local::{LocalEngine, Options};
use floe_store::env::{Clock, SeededRandom, SystemClock, Timestamp};
use floe_store::expr::{KeyCondition, Path as AttributePath, SetOperand, Update};
use floe_store::op::{
    DeleteItem, GetItem, IteratorKind, PutItem, Query, TransactWrite, TransactWriteItems,
    UpdateItem, WriteItem,
};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Engine, Env, Error, Item, Result, TableDef};
use tokio::task::JoinSet;

use super::super::figures::percentile;
use super::super::planted::Bug;
use super::super::program::Resources;
use super::super::replay::{Reader, shards};
use super::super::runtime;
use super::super::test_table::splitmix64;
use super::super::tree::Usage;
use crate::checks::role::Role;
use crate::{Failure, out};

/// The name of the role.
pub(crate) const ROLE: &str = "soak";

const TABLE: &str = "Soak";
const INDEX: &str = "by_group";
const CLIENTS: u64 = 6;
/// Number of keys over all clients. There are as many again for expiring items.
const KEYS: u64 = 600;
const GROUPS: u64 = 20;
const PAYLOAD_BYTES: usize = 400;
/// The pause of a client between two requests, so that the load is the same on every machine that can sustain it.
const PAUSE: Duration = Duration::from_millis(3);
/// The size of an item written by the planted bug, each under a new key.
const LEAKED_BYTES: usize = 16 << 10;
/// In one of this many writes, the planted bug also leaves a file open, up to a maximum.
const LEAKED_EVERY: u64 = 16;
const LEAKED_MAX: usize = 500;

/// The speed of the clock.
const CLOCK_FACTOR: u32 = 60;
/// Durations on that clock.
const STREAM_RETENTION: Duration = Duration::from_secs(120);
const EXPIRY_SECS: u64 = 60;
/// The poll interval of the consumer.
const CONSUME_EVERY: Duration = Duration::from_millis(200);
/// Maximum number of errors printed.
const ERRORS_NOTED_MAX: u64 = 5;

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct LoadRole {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    windows: u64,
    #[arg(long)]
    window_ms: u64,
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for LoadRole {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let Self { folder, seed, .. } = self;
        let window = Duration::from_millis(self.window_ms);
        let local = Arc::new(LocalEngine::open_with(&folder, options(seed))?);
        let shared = Arc::new(Shared {
            engine: Arc::clone(&local) as Arc<dyn Engine>,
            is_leaking: self.planted == Some(Bug::Leak),
            leaked: Mutex::default(),
            is_stopped: AtomicBool::new(false),
            latencies: Mutex::default(),
            errors: AtomicU64::new(0),
            records: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
        });
        runtime()?.block_on(shared.run(&folder, seed, self.windows, window))?;
        let doctor = local.doctor(false)?.findings_total;
        let (errors, records) = (load(&shared.errors), load(&shared.records));
        drop(shared);
        local.close()?;
        drop(local);
        let opening = Instant::now();
        let local = LocalEngine::open_with(&folder, options(seed))?;
        let reopen_ms = opening.elapsed().as_millis();
        local.close()?;
        out::figures(&format!(
            "errors={errors} records={records} doctor={doctor} reopen_ms={reopen_ms}"
        ));
        Ok(ExitCode::SUCCESS)
    }
}

/// Small buffers, so that everything that recurs does so early.
fn options(seed: u64) -> Options {
    let env = Env::new(
        Arc::new(FastClock::new()),
        Arc::new(SeededRandom::new(splitmix64(seed))),
    );
    Options::new()
        .env(env)
        .write_buffer_bytes(4 << 20)
        .cache_bytes(16 << 20)
        .stream_retention(STREAM_RETENTION)
}

/// A clock that runs faster than the system's.
#[derive(Debug)]
struct FastClock {
    start: Timestamp,
    since: Instant,
}

impl FastClock {
    fn new() -> Self {
        let system = SystemClock.now();
        Self {
            // Ahead of any time that an earlier clock on the same store can have shown.
            start: Timestamp::from_millis(system.as_millis() * 2),
            since: Instant::now(),
        }
    }
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        self.start.plus(self.uptime())
    }

    fn uptime(&self) -> Duration {
        self.since.elapsed() * CLOCK_FACTOR
    }
}

/// The latencies of a window, in microseconds.
#[derive(Debug, Default)]
struct Latencies {
    writes: Vec<u64>,
    reads: Vec<u64>,
}

/// The state shared by all tasks.
struct Shared {
    engine: Arc<dyn Engine>,
    is_leaking: bool,
    /// Files that the planted bug keeps open.
    leaked: Mutex<Vec<std::fs::File>>,
    is_stopped: AtomicBool,
    latencies: Mutex<Latencies>,
    errors: AtomicU64,
    /// Number of change records consumed.
    records: AtomicU64,
    tokens: AtomicU64,
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Shared {
    fn latencies(&self) -> MutexGuard<'_, Latencies> {
        self.latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, is_write: bool, micros: u64) {
        let mut latencies = self.latencies();
        if is_write {
            latencies.writes.push(micros);
        } else {
            latencies.reads.push(micros);
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Runs all clients, and prints a line for each window.
    async fn run(
        self: &Arc<Self>,
        folder: &Path,
        seed: u64,
        windows: u64,
        window: Duration,
    ) -> Result<(), Failure> {
        self.engine.create_table(table()?.into()).await?;
        let mut tasks = JoinSet::new();
        for number in 0..CLIENTS {
            let client = Client {
                shared: Arc::clone(self),
                number,
                random: SeededRandom::new(splitmix64(seed ^ (number << 32))),
            };
            tasks.spawn(client.run());
        }
        tasks.spawn(Arc::clone(self).consume());
        for number in 0..windows {
            tokio::time::sleep(window).await;
            let latencies = std::mem::take(&mut *self.latencies());
            let (usage, resources) = (Usage::of(folder)?, Resources::own()?);
            out::figures(&format!(
                "window={number} writes={} reads={} write_p50_us={} write_p99_us={} read_p50_us={} \
                 read_p99_us={} rss={} fds={} disk={} journal={} files={}",
                latencies.writes.len(),
                latencies.reads.len(),
                percentile(&latencies.writes, 50),
                percentile(&latencies.writes, 99),
                percentile(&latencies.reads, 50),
                percentile(&latencies.reads, 99),
                resources.memory_bytes,
                resources.descriptors,
                usage.bytes,
                usage.journal_bytes,
                usage.files,
            ));
        }
        self.is_stopped.store(true, Ordering::Relaxed);
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|error| Failure::broken(error.to_string()))?;
        }
        Ok(())
    }

    fn count_error(&self, what: &str, error: &Error) {
        if self.errors.fetch_add(1, Ordering::Relaxed) < ERRORS_NOTED_MAX {
            out::note(&format!("{what} failed: {error}"));
        }
    }

    /// Reads the change stream from its beginning, and polls for new records.
    async fn consume(self: Arc<Self>) {
        let mut position = None;
        while !self.is_stopped() {
            match self.consume_new(&mut position).await {
                Ok(()) => {}
                // The consumer was too slow, and records were trimmed before it read them.
                Err(Error::TrimmedDataAccess(_)) => position = None,
                Err(error) => self.count_error("reading changes", &error),
            }
            tokio::time::sleep(CONSUME_EVERY).await;
        }
    }

    async fn consume_new(&self, position: &mut Option<String>) -> Result<()> {
        let description = self.engine.describe_table(TABLE.to_owned()).await?;
        let Some(stream) = description.latest_stream else {
            return Err(Error::Internal("the stream is missing".to_owned()));
        };
        for shard in shards(&self.engine, &stream.arn).await? {
            let is_read = shard.ending_sequence.as_ref();
            if is_read.is_some_and(|end| position.as_ref().is_some_and(|at| at >= end)) {
                continue;
            }
            let is_inside = position
                .as_ref()
                .is_some_and(|at| *at >= shard.starting_sequence);
            let start = match position.clone().filter(|_| is_inside) {
                Some(at) => IteratorKind::AfterSequenceNumber(at),
                None => IteratorKind::TrimHorizon,
            };
            let mut reader = Reader::at(&self.engine, &stream.arn, &shard, start).await?;
            while let Some(records) = reader.next(&self.engine).await? {
                let count = records.len() as u64;
                self.records.fetch_add(count, Ordering::Relaxed);
                let last = records.last().map(|record| record.sequence.clone());
                if last < *position {
                    return Err(Error::Internal("changes are out of order".to_owned()));
                }
                *position = last;
            }
        }
        Ok(())
    }
}

fn table() -> Result<TableDef> {
    let by_group = ([("group", KeyKind::S)], [("stamp", KeyKind::N)]);
    TableDef::builder(TABLE, "id", KeyKind::S)
        .global_index(INDEX, by_group.0, by_group.1, Projection::All)
        .stream(StreamView::NewAndOldImages)
        .ttl("expires")
        .build()
}

fn key(id: &str) -> Item {
    Item::new().with("id", id)
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// A client.
struct Client {
    shared: Arc<Shared>,
    number: u64,
    random: SeededRandom,
}

impl Client {
    async fn run(self) {
        while !self.shared.is_stopped() {
            let started = Instant::now();
            let (what, is_write, done) = self.step().await;
            if let Err(error) = done {
                self.shared.count_error(what, &error);
            }
            self.shared.record(is_write, micros(started));
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Runs a random operation. Returns its name, whether it is a write, and its result.
    async fn step(&self) -> (&'static str, bool, Result<()>) {
        let id = self.id("k");
        match self.random.below(100) {
            0..=34 => ("a put", true, self.put(self.item(&id)).await),
            35..=49 => ("an update", true, self.update(&id).await),
            50..=59 => ("a delete", true, self.delete(&id).await),
            60..=69 => ("a put that expires", true, self.put_expiring().await),
            70..=74 => ("a transaction", true, self.transact().await),
            75..=89 => ("a get", false, self.get(&id).await),
            _ => ("a query", false, self.query().await),
        }
    }

    /// Returns a random key of this client.
    fn id(&self, prefix: &str) -> String {
        let share = KEYS / CLIENTS;
        format!("{prefix}{}-{}", self.number, self.random.below(share))
    }

    fn item(&self, id: &str) -> Item {
        let stamp = self.random.below(1 << 40);
        let words =
            (0..PAYLOAD_BYTES as u64 / 16).map(|word| format!("{:016x}", splitmix64(stamp ^ word)));
        key(id)
            .with("group", format!("g{}", stamp % GROUPS))
            .with("stamp", stamp)
            .with("payload", words.collect::<String>())
    }

    async fn put(&self, item: Item) -> Result<()> {
        let mut item = item;
        if self.shared.is_leaking {
            let stamp = self.random.below(u64::MAX);
            self.leak_descriptor(stamp);
            let words = (0..LEAKED_BYTES as u64 / 16)
                .map(|word| format!("{:016x}", splitmix64(stamp ^ word)));
            item.insert("id", format!("leaked-{stamp}"));
            item.remove("group");
            item.insert("payload", words.collect::<String>());
        }
        let put = PutItem::new(TABLE, item);
        self.shared.engine.write_item(put.into()).await.map(drop)
    }

    /// Simulates a file left open.
    fn leak_descriptor(&self, stamp: u64) {
        let leaked = self.shared.leaked.lock();
        let mut leaked = leaked.unwrap_or_else(PoisonError::into_inner);
        if stamp.is_multiple_of(LEAKED_EVERY)
            && leaked.len() < LEAKED_MAX
            && let Ok(file) = std::fs::File::open("/dev/null")
        {
            leaked.push(file);
        }
    }

    async fn put_expiring(&self) -> Result<()> {
        let seconds = self.shared.engine.now().as_secs() + EXPIRY_SECS;
        let expires = seconds + self.random.below(EXPIRY_SECS);
        let item = self.item(&self.id("e")).with("expires", expires);
        self.put(item).await
    }

    async fn update(&self, id: &str) -> Result<()> {
        let stamp = self.random.below(1 << 40);
        let update = Update::new()
            .set(
                AttributePath::attribute("stamp"),
                SetOperand::Value(stamp.into()),
            )
            .set(
                AttributePath::attribute("group"),
                SetOperand::Value(format!("g{}", stamp % GROUPS).into()),
            );
        let update = UpdateItem::new(TABLE, key(id), update);
        let write = WriteItem::Update(update);
        self.shared.engine.write_item(write).await.map(drop)
    }

    async fn delete(&self, id: &str) -> Result<()> {
        let delete = WriteItem::Delete(DeleteItem::new(TABLE, key(id)));
        self.shared.engine.write_item(delete).await.map(drop)
    }

    /// Puts two items in a transaction, and repeats the request with the same token, like a client that lost the
    /// response.
    async fn transact(&self) -> Result<()> {
        let (one, other) = (self.id("t"), self.id("u"));
        let puts = [one, other].map(|id| TransactWrite::Put(PutItem::new(TABLE, self.item(&id))));
        let token = self.shared.tokens.fetch_add(1, Ordering::Relaxed);
        let input = TransactWriteItems::new(puts).token(format!("token-{token}"));
        self.shared
            .engine
            .transact_write_items(input.clone())
            .await?;
        let again = self.shared.engine.transact_write_items(input).await;
        again.map(drop)
    }

    async fn get(&self, id: &str) -> Result<()> {
        let get = GetItem::new(TABLE, key(id));
        self.shared.engine.get_item(get).await.map(drop)
    }

    async fn query(&self) -> Result<()> {
        let group = format!("g{}", self.random.below(GROUPS));
        let query = Query::new(TABLE, KeyCondition::partition("group", group));
        let query = query.index(INDEX).limit(20);
        self.shared.engine.query(query).await.map(drop)
    }
}
