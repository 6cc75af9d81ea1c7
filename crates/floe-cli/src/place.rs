//! Where the store is: in a directory, behind a server, or in Amazon DynamoDB. One notion of it, for every command.

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use clap::Args;
use floe::Db;
#[cfg(feature = "aws")]
use floe::db::ConnectOptions;
use floe::events::{EventStore, EventStoreOptions};
use floe_local::LocalEngine;
use floe_store::table::TableDescription;
use floe_store::{Engine, Error as StoreError};
use tokio::runtime::Runtime;

use super::out::Output;
use super::{ACCOUNT, Failure, Result, checked, note_recovery, site};

/// Where the store is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where the store is")]
pub(super) struct Store {
    /// In this directory, which no other program may have open meanwhile
    #[arg(long, value_name = "DIR", conflicts_with_all = ["endpoint", "region", "profile", "table_prefix"])]
    data: Option<PathBuf>,

    /// Behind this server: `floe serve`, DynamoDB Local; over http:// without keys, if the environment has none
    #[arg(long, value_name = "URL", env = "FLOE_ENDPOINT", value_parser = parse_endpoint)]
    endpoint: Option<String>,

    /// In this region of AWS [default: as the environment or the profile says]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// With the credentials of this profile of ~/.aws/config
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// What the names of all tables begin with
    #[arg(
        long,
        value_name = "PREFIX",
        env = "FLOE_TABLE_PREFIX",
        default_value = "",
        hide_default_value = true
    )]
    table_prefix: String,
}

/// Where the store is, and how the result is printed.
#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    #[command(flatten)]
    pub(super) output: Output,

    #[command(flatten)]
    pub(super) store: Store,
}

/// Where the events are, and how the result is printed.
#[derive(Debug, Args)]
pub(super) struct EventsArgs {
    #[command(flatten)]
    pub(super) output: Output,

    #[command(flatten)]
    pub(super) place: Place,
}

/// A table of events in a store.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where the events are")]
pub(super) struct Place {
    /// The table of the events; its feed is kept beside it, in <NAME>-index
    #[arg(
        long,
        value_name = "NAME",
        default_value = "events",
        env = "FLOE_TABLE"
    )]
    pub(super) table: String,

    #[command(flatten)]
    pub(super) store: Store,
}

/// Whether a directory without a store is refused, or made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfMissing {
    Refuse,
    Make,
}

impl IfMissing {
    /// One is made if that was asked for.
    pub(super) const fn made(is_new: bool) -> Self {
        match is_new {
            true => Self::Make,
            false => Self::Refuse,
        }
    }
}

/// A store that was opened.
pub(super) struct Opened {
    pub(super) db: Db,
    /// The engine, if it is ours to close.
    pub(super) local: Option<Arc<LocalEngine>>,
}

impl Store {
    /// Opens the directory, or makes ready to ask the server.
    async fn open(&self, missing: IfMissing) -> Result<Opened> {
        match &self.data {
            Some(path) => Ok(Opened::of_directory(path, missing)?),
            None => Ok(Opened {
                db: Box::pin(self.connect()).await?,
                local: None,
            }),
        }
    }

    /// Runs a command on the store, and closes it whatever has come of that.
    pub(super) fn run(&self, work: impl AsyncFnOnce(&Opened) -> Result) -> Result {
        self.run_or(IfMissing::Refuse, work)
    }

    /// As [`run`](Self::run), and says what to do with a directory that holds no store.
    pub(super) fn run_or(
        &self,
        missing: IfMissing,
        work: impl AsyncFnOnce(&Opened) -> Result,
    ) -> Result {
        wait_for(Box::pin(async {
            let opened = self.open(missing).await?;
            let done = work(&opened).await;
            done.and(opened.close())
        }))
    }

    /// Makes ready to ask a server, or Amazon DynamoDB.
    #[cfg(feature = "aws")]
    async fn connect(&self) -> Result<Db> {
        let db = Db::connect(self.connect_options()).await;
        db.map_err(|error| {
            Failure::broken(format!(
                "{error}; say where the store is, with --data or --endpoint"
            ))
        })
    }

    /// Refuses what only the AWS SDK can do.
    #[cfg(not(feature = "aws"))]
    #[expect(clippy::unused_async, reason = "with the feature it waits for the SDK")]
    async fn connect(&self) -> Result<Db> {
        Err(Failure::usage(
            "this program is built without the feature aws, and opens directories alone; say which with --data",
        ))
    }

    #[cfg(feature = "aws")]
    fn connect_options(&self) -> ConnectOptions {
        let is_set = |name: &&str| std::env::var_os(name).is_some();
        let has_keys =
            self.profile.is_some() || ["AWS_ACCESS_KEY_ID", "AWS_PROFILE"].iter().any(is_set);
        let has_region = ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().any(is_set);
        let mut options = ConnectOptions::new().table_prefix(self.table_prefix.as_str());
        if let Some(endpoint) = &self.endpoint {
            options = options.endpoint(endpoint);
            // Nobody sends a secret to AWS over http. What is meant is a server nearby.
            if endpoint.starts_with("http://") && !has_keys {
                options = options.credentials("local", "local");
                if !has_region {
                    options = options.region("us-east-1");
                }
            }
        }
        options = self.region.iter().fold(options, ConnectOptions::region);
        self.profile.iter().fold(options, ConnectOptions::profile)
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.data, &self.endpoint, &self.region) {
            (Some(path), ..) => write!(f, "data: {}", path.display()),
            (None, Some(endpoint), _) => write!(f, "endpoint: {endpoint}"),
            (None, None, Some(region)) => write!(f, "region: {region}"),
            (None, None, None) => f.write_str("Amazon DynamoDB"),
        }
    }
}

impl Opened {
    /// Opens the store in a directory.
    pub(super) fn of_directory(path: &Path, missing: IfMissing) -> Result<Self> {
        let engine = Arc::new(open_directory(path, missing)?);
        Ok(Self {
            db: Db::with_engine(engine.clone()),
            local: Some(engine),
        })
    }

    pub(super) fn engine(&self) -> &dyn Engine {
        &**self.db.engine()
    }

    /// A table as it stands. Fails if there is none of this name.
    pub(super) async fn table(&self, name: &str) -> Result<TableDescription> {
        let found = describe(&self.db, name).await?;
        found.ok_or_else(|| missing_table(name))
    }

    /// Tables as they stand. Fails if one is missing.
    pub(super) async fn tables(&self, names: &[String]) -> Result<Vec<TableDescription>> {
        let mut tables = Vec::with_capacity(names.len());
        for name in names {
            tables.push(self.table(name).await?);
        }
        Ok(tables)
    }

    /// Closes what was opened.
    pub(super) fn close(&self) -> Result {
        let local = self.local.as_ref();
        local.map_or(Ok(()), |engine| engine.close().map_err(Failure::broken))
    }
}

impl StoreArgs {
    /// Runs a command on the store, and closes it whatever has come of that.
    pub(super) fn run(&self, work: impl AsyncFnOnce(&Opened) -> Result) -> Result {
        self.store.run(work)
    }
}

impl EventsArgs {
    /// Runs a command on the table of the events, and closes the store whatever has come of that. Fails if there is no such
    /// table.
    pub(super) fn run(&self, work: impl AsyncFnOnce(&EventStore) -> Result) -> Result {
        self.place.run(async |store| {
            events_table(store).await?;
            work(store).await
        })
    }
}

impl Place {
    /// Opens the directory, or makes ready to ask the server.
    pub(super) async fn open(&self) -> Result<EventStore> {
        self.events_in(&self.store.open(IfMissing::Refuse).await?)
    }

    /// Runs a command on the events, and closes the store whatever has come of that.
    pub(super) fn run(&self, work: impl AsyncFnOnce(&EventStore) -> Result) -> Result {
        self.store
            .run(async |opened| work(&self.events_in(opened)?).await)
    }

    fn events_in(&self, opened: &Opened) -> Result<EventStore> {
        let options = EventStoreOptions::new(self.table.as_str());
        let store = opened.db.event_store(options);
        store.table().map_err(Failure::usage)?;
        Ok(store)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// The table of the events as it stands. Fails if there is none, or if it is one of something else.
pub(super) async fn events_table(store: &EventStore) -> Result<TableDescription> {
    let expected = store.table().map_err(Failure::usage)?;
    let name = &expected.name;
    let table = describe(store.db(), name).await?.ok_or_else(|| {
        Failure::broken(format!(
            "there is no such table: table={name}; see --table and --table-prefix"
        ))
    })?;
    if table.definition.key != expected.key {
        return Err(Failure::broken(format!(
            "the table is none of events, whose key is p (S) and i (N): table={name}"
        )));
    }
    Ok(table)
}

pub(super) fn missing_table(name: &str) -> Failure {
    Failure::broken(format!(
        "there is no such table: table={name}; `floe table list` tells which there are"
    ))
}

/// A table as it stands, if there is one of this name.
pub(super) async fn describe(db: &Db, table: &str) -> Result<Option<TableDescription>> {
    match db.engine().describe_table(table.to_owned()).await {
        Ok(table) => Ok(Some(table)),
        Err(StoreError::ResourceNotFound(_)) => Ok(None),
        Err(error) => Err(Failure::from(error)),
    }
}

fn open_directory(path: &Path, missing: IfMissing) -> Result<LocalEngine> {
    // The engine would make one, and the mistake be found later.
    match missing {
        IfMissing::Refuse => check_store(path)?,
        IfMissing::Make => refuse_file(path)?,
    }
    let options = floe_local::Options::new().account(ACCOUNT);
    let engine = LocalEngine::open_with(path, options).map_err(|error| {
        Failure::broken(format!(
            "{error}; if `floe serve` has it open, say --endpoint instead of --data"
        ))
    })?;
    note_recovery(engine.recovery());
    Ok(engine)
}

/// Refuses a directory that is not there, and one that holds no store.
pub(super) fn check_store(path: &Path) -> Result {
    refuse_file(path)?;
    let (shown, unfinished) = (path.display(), unfinished(path));
    if path.is_dir() && floe_local::is_store(path).map_err(Failure::broken)? {
        return Ok(());
    }
    // A store that has lost this one file may hold everything else: nothing may be advised that makes a new one here.
    Err(Failure::Broken(if path.join("data").is_dir() {
        format!(
            "there is no store in the directory: path={shown} found=data missing=FORMAT; `floe doctor --data {shown} \
             --salvage TARGET` copies what can be read of it into a new store"
        )
    } else if unfinished.is_dir() {
        format!(
            "a copy to this directory was begun and not ended: path={shown} unfinished={}; run `floe restore` or \
             `floe backup` again, which clears it away",
            unfinished.display()
        )
    } else if path.is_dir() {
        let found = entries(path);
        format!("there is no store in the directory: path={shown} found={found}; {HINT}")
    } else {
        format!("there is no such directory: path={shown}; {HINT}")
    }))
}

/// The names of what is in a directory, or of the first of it.
fn entries(path: &Path) -> String {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    match names.get(..ENTRIES_SHOWN) {
        Some(shown) if names.len() > ENTRIES_SHOWN => format!("{},...", shown.join(",")),
        _ if names.is_empty() => "nothing".to_owned(),
        _ => names.join(","),
    }
}

/// How many names of a directory are shown.
const ENTRIES_SHOWN: usize = 5;

/// What to do where there is no store.
const HINT: &str = "`floe serve --data` and `floe demo --data` make one";

/// Refuses a file in the place of a directory.
pub(super) fn refuse_file(path: &Path) -> Result {
    match path.exists() && !path.is_dir() {
        false => Ok(()),
        true => Err(Failure::broken(format!(
            "this is a file, and a store is a directory: path={}; {HINT}",
            path.display()
        ))),
    }
}

/// Where a copy is until it is complete.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    path.with_file_name(name)
}

fn parse_endpoint(text: &str) -> Result<String, String> {
    let is_fit = site(text).is_some_and(|host| !host.is_empty() && !host.contains(' '));
    checked(
        text,
        is_fit,
        "not an address, such as http://127.0.0.1:8000",
    )
}

/// The work of a command. It is boxed, so that the runtime and the compiler see one type for all commands.
pub(super) type Work<'w> = Pin<Box<dyn Future<Output = Result> + 'w>>;

/// Does the work of a command that waits for answers, and for little else.
pub(super) fn wait_for(work: Work<'_>) -> Result {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::broken(format!("the runtime could not be started: {error}")))?;
    runtime.block_on(work)
}

/// A runtime with a thread for each core, for a command that serves or measures. It looks at its sockets after so many steps
/// of tasks.
pub(super) fn threads(event_interval: u32) -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("floe-worker")
        .event_interval(event_interval)
        .enable_all()
        .build();
    runtime.map_err(|error| Failure::broken(format!("the threads could not be started: {error}")))
}

/// The interval that tokio has.
pub(super) const EVENT_INTERVAL: u32 = 61;
