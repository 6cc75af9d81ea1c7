//! The store of a command: a directory, a server, or Amazon DynamoDB. All commands use the same flags.

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
use super::{ACCOUNT, Failure, Result, note_recovery, validated, without_scheme};

/// The flags that select a store.
#[derive(Debug, Args)]
#[command(next_help_heading = "Store")]
pub(super) struct Store {
    /// Directory of the store; no other process may have it open
    #[arg(long, value_name = "DIR", conflicts_with_all = ["endpoint", "aws", "region", "profile", "table_prefix"])]
    data: Option<PathBuf>,

    /// URL of a server: `floe serve` or DynamoDB Local. Over http://, no credentials are needed
    #[arg(long, value_name = "URL", env = ENDPOINT_VARIABLE, value_parser = parse_endpoint)]
    endpoint: Option<String>,

    /// Amazon DynamoDB, with region and credentials from the environment or ~/.aws. Implied by --region and --profile
    #[arg(long, conflicts_with = "endpoint")]
    aws: bool,

    /// AWS region [default: from the environment or the profile]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Profile of ~/.aws/config with the credentials
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// Prefix of all table names
    #[arg(
        long,
        value_name = "PREFIX",
        env = "FLOE_TABLE_PREFIX",
        default_value = "",
        hide_default_value = true
    )]
    table_prefix: String,
}

/// The store, and the output format.
#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    #[command(flatten)]
    pub(super) output: Output,

    #[command(flatten)]
    pub(super) store: Store,
}

/// The event table, and the output format.
#[derive(Debug, Args)]
pub(super) struct EventsArgs {
    #[command(flatten)]
    pub(super) output: Output,

    #[command(flatten)]
    pub(super) events: EventTable,
}

/// The flags that select an event table.
#[derive(Debug, Args)]
#[command(next_help_heading = "Event table")]
pub(super) struct EventTable {
    /// Event table; its feed is stored in the table <NAME>-index
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

/// The environment variable with the default of `--endpoint`.
pub(super) const ENDPOINT_VARIABLE: &str = "FLOE_ENDPOINT";

/// The selected store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreKind<'s> {
    Directory(&'s Path),
    Endpoint(&'s str),
    /// Amazon DynamoDB.
    Amazon,
}

/// What to do with a directory that holds no store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IfMissing {
    /// Fail, with this hint.
    Fail(&'static str),
    Create,
}

impl IfMissing {
    /// The action of a command with the flag `--new`.
    pub(super) const fn create_if(is_new: bool) -> Self {
        if is_new {
            Self::Create
        } else {
            Self::Fail("--new creates a store")
        }
    }
}

/// The hint of commands that need an existing store.
pub(super) const NO_STORE_HINT: &str = "`floe serve --data` and `floe demo --data` create a store";

/// An open store.
pub(super) struct OpenStore {
    pub(super) db: Db,
    /// The embedded engine of a directory, which must be closed.
    pub(super) local: Option<Arc<LocalEngine>>,
}

impl Store {
    /// The selected store. Amazon DynamoDB is used only if an option requests it: a forgotten option must not run a command
    /// on the account that the environment happens to have.
    fn kind(&self) -> Result<StoreKind<'_>> {
        let is_amazon = self.aws || self.region.is_some() || self.profile.is_some();
        match (&self.data, &self.endpoint) {
            (Some(path), _) => Ok(StoreKind::Directory(path)),
            (None, Some(endpoint)) => Ok(StoreKind::Endpoint(endpoint)),
            (None, None) if is_amazon => Ok(StoreKind::Amazon),
            (None, None) => Err(Failure::usage(
                "no store is selected: set --data or --endpoint, or --aws for Amazon DynamoDB",
            )),
        }
    }

    /// Opens the directory, or connects to the server.
    async fn open(&self, kind: StoreKind<'_>, missing: IfMissing) -> Result<OpenStore> {
        match kind {
            StoreKind::Directory(path) => {
                let hint = "if `floe serve` has it open, use --endpoint instead of --data";
                OpenStore::of_directory(path, missing, hint)
            }
            StoreKind::Endpoint(_) | StoreKind::Amazon => Ok(OpenStore {
                db: Box::pin(self.connect()).await?,
                local: None,
            }),
        }
    }

    /// Opens the store, runs a command on it, and closes it, even if the command fails.
    pub(super) fn run(&self, command: impl AsyncFnOnce(&OpenStore) -> Result) -> Result {
        self.run_or(IfMissing::Fail(NO_STORE_HINT), command)
    }

    /// Like [`run`](Self::run), with the action for a directory that holds no store.
    pub(super) fn run_or(
        &self,
        missing: IfMissing,
        command: impl AsyncFnOnce(&OpenStore) -> Result,
    ) -> Result {
        let kind = self.kind()?;
        block_on(Box::pin(async {
            let opened = self.open(kind, missing).await?;
            let done = command(&opened).await;
            done.map_err(|failure| kind.with_hint(failure))
                .and(opened.close())
        }))
    }

    /// The facts that identify a table before it is changed irrevocably: store, account, region and table. The ARN has the
    /// region and the name that the store really uses, whatever the environment sets.
    pub(super) fn facts(&self, table: &TableDescription) -> String {
        let mut arn = table.arn.splitn(6, ':').skip(3);
        let (region, account) = (arn.next(), arn.next());
        let name = arn
            .next()
            .and_then(|resource| resource.strip_prefix("table/"));
        let name = name.unwrap_or(&table.definition.name);
        let region = region.unwrap_or("unknown");
        match self.kind() {
            Ok(StoreKind::Directory(path)) => {
                format!("store={} region={region} table={name}", path.display())
            }
            Ok(StoreKind::Endpoint(endpoint)) => {
                format!("store={endpoint} region={region} table={name}")
            }
            Ok(StoreKind::Amazon) | Err(_) => format!(
                "store=aws account={} region={region} table={name}",
                account.unwrap_or("unknown")
            ),
        }
    }

    /// Connects to a server, or to Amazon DynamoDB.
    #[cfg(feature = "aws")]
    async fn connect(&self) -> Result<Db> {
        let db = Db::connect(self.connect_options()).await;
        db.map_err(|error| match &self.endpoint {
            Some(_) => Failure::failed(format!("{error}; check --endpoint and --region")),
            None => Failure::failed(format!("{error}; check --region and --profile")),
        })
    }

    /// Fails: a connection needs the AWS SDK.
    #[cfg(not(feature = "aws"))]
    #[expect(clippy::unused_async, reason = "async with the feature `aws`")]
    async fn connect(&self) -> Result<Db> {
        Err(Failure::usage(
            "this program was built without the feature aws and can only open directories: use --data",
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
            // Requests to AWS never use plain http, so this is a local server, which accepts any credentials.
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

impl StoreKind<'_> {
    /// Adds the hint that fits the selected store.
    fn with_hint(self, failure: Failure) -> Failure {
        match (failure, self) {
            (Failure::Unreachable(message), Self::Endpoint(_)) => {
                Failure::Failed(format!("{message}; check --endpoint"))
            }
            (Failure::Unreachable(message), Self::Amazon) => {
                Failure::Failed(format!("{message}; check --region and the network"))
            }
            (failure, _) => failure,
        }
    }
}

impl OpenStore {
    /// Opens the store in a directory. Adds the hint if the directory is in use.
    pub(super) fn of_directory(path: &Path, missing: IfMissing, in_use_hint: &str) -> Result<Self> {
        let engine = Arc::new(open_directory(path, missing, in_use_hint)?);
        Ok(Self {
            db: Db::with_engine(engine.clone()),
            local: Some(engine),
        })
    }

    pub(super) fn engine(&self) -> &dyn Engine {
        &**self.db.engine()
    }

    /// Describes a table. Fails if it does not exist.
    pub(super) async fn table(&self, name: &str) -> Result<TableDescription> {
        let found = describe(&self.db, name).await?;
        found.ok_or_else(|| missing_table(name))
    }

    /// Describes tables. Fails if one does not exist.
    pub(super) async fn tables(&self, names: &[String]) -> Result<Vec<TableDescription>> {
        let mut tables = Vec::with_capacity(names.len());
        for name in names {
            tables.push(self.table(name).await?);
        }
        Ok(tables)
    }

    /// Closes the embedded engine, if there is one.
    pub(super) fn close(&self) -> Result {
        let local = self.local.as_ref();
        local.map_or(Ok(()), |engine| engine.close().map_err(Failure::failed))
    }
}

impl StoreArgs {
    /// Opens the store, runs a command on it, and closes it, even if the command fails.
    pub(super) fn run(&self, command: impl AsyncFnOnce(&OpenStore) -> Result) -> Result {
        self.store.run(command)
    }
}

impl EventsArgs {
    /// Opens the store, runs a command on its event table, and closes the store, even if the command fails. Fails if the
    /// table does not exist.
    pub(super) fn run(&self, command: impl AsyncFnOnce(&EventStore) -> Result) -> Result {
        self.events.run(async |store| {
            events_table(store).await?;
            command(store).await
        })
    }
}

impl EventTable {
    /// Connects to the endpoint in the environment, or to Amazon DynamoDB: AWS Lambda starts the program without arguments.
    pub(super) async fn open_in_lambda(&self) -> Result<EventStore> {
        let kind = self.store.kind().unwrap_or(StoreKind::Amazon);
        let opened = self
            .store
            .open(kind, IfMissing::Fail(NO_STORE_HINT))
            .await?;
        self.events_in(&opened)
    }

    /// Opens the store, runs a command on its events, and closes the store, even if the command fails.
    pub(super) fn run(&self, command: impl AsyncFnOnce(&EventStore) -> Result) -> Result {
        self.run_or(IfMissing::Fail(NO_STORE_HINT), command)
    }

    /// Like [`run`](Self::run), with the action for a directory that holds no store.
    pub(super) fn run_or(
        &self,
        missing: IfMissing,
        command: impl AsyncFnOnce(&EventStore) -> Result,
    ) -> Result {
        self.store.run_or(missing, async |opened| {
            command(&self.events_in(opened)?).await
        })
    }

    fn events_in(&self, opened: &OpenStore) -> Result<EventStore> {
        let options = EventStoreOptions::new(self.table.as_str());
        let store = opened.db.event_store(options);
        store.table().map_err(Failure::usage)?;
        Ok(store)
    }
}

impl fmt::Display for EventTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// Describes the event table. Fails if it does not exist, or if its key is not that of an event table.
pub(super) async fn events_table(store: &EventStore) -> Result<TableDescription> {
    let expected = store.table().map_err(Failure::usage)?;
    let name = &expected.name;
    let table = describe(store.db(), name).await?.ok_or_else(|| {
        Failure::failed(format!(
            "there is no such table: table={name}; check --table, or create it with `floe events create`"
        ))
    })?;
    if table.definition.key != expected.key {
        return Err(Failure::failed(format!(
            "not an event table, whose key is p (S) and i (N): table={name}"
        )));
    }
    Ok(table)
}

pub(super) fn missing_table(name: &str) -> Failure {
    Failure::failed(format!(
        "there is no such table: table={name}; `floe table list` lists the tables"
    ))
}

/// Describes a table. `None` if it does not exist.
pub(super) async fn describe(db: &Db, table: &str) -> Result<Option<TableDescription>> {
    match db.engine().describe_table(table.to_owned()).await {
        Ok(table) => Ok(Some(table)),
        Err(StoreError::ResourceNotFound(_)) => Ok(None),
        Err(error) => Err(Failure::from(error)),
    }
}

fn open_directory(path: &Path, missing: IfMissing, in_use_hint: &str) -> Result<LocalEngine> {
    // The engine would create a store, which hides a mistyped path.
    match missing {
        IfMissing::Fail(hint) => check_store(path, hint)?,
        IfMissing::Create => check_not_file(path, "choose another directory")?,
    }
    let options = floe_local::Options::new().account(ACCOUNT);
    let engine = LocalEngine::open_with(path, options);
    let engine = engine.map_err(|error| open_failure(&error, in_use_hint))?;
    note_recovery(engine.recovery());
    Ok(engine)
}

/// The failure to open a directory. Adds the hint if another process has it open.
pub(super) fn open_failure(error: &StoreError, in_use_hint: &str) -> Failure {
    let reason = error.to_string();
    if reason.contains("the directory is in use") {
        Failure::Failed(format!("{reason}; {in_use_hint}"))
    } else {
        Failure::Failed(reason)
    }
}

/// The hint of commands that work on directories only.
pub(super) const IN_USE_HINT: &str = "stop the process that has it open";

/// Fails unless the directory exists and holds a store. The hint says how to create one.
pub(super) fn check_store(path: &Path, hint: &str) -> Result {
    check_not_file(path, hint)?;
    let (shown, partial) = (path.display(), partial_copy(path));
    if path.is_dir() && floe_local::is_store(path).map_err(Failure::failed)? {
        return Ok(());
    }
    // A store that lost only its FORMAT file may hold all data: the hint must not suggest creating a new store here.
    Err(Failure::Failed(if path.join("data").is_dir() {
        format!(
            "there is no store in the directory: path={shown} found=data missing=FORMAT; `floe doctor --data {shown} \
                         --salvage TARGET` copies all readable data into a new store"
        )
    } else if partial.is_dir() {
        format!(
            "a copy to this directory was interrupted: path={shown} partial={}; run `floe restore` or `floe backup` again, \
                         which removes the partial copy",
            partial.display()
        )
    } else if path.is_dir() {
        let found = entries(path);
        format!("there is no store in the directory: path={shown} found={found}; {hint}")
    } else {
        format!("there is no such directory: path={shown}; {hint}")
    }))
}

/// The first names in a directory, for an error message.
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

/// Maximum number of names in an error message.
const ENTRIES_SHOWN: usize = 5;

/// Fails if the path is a file.
pub(super) fn check_not_file(path: &Path, hint: &str) -> Result {
    if path.exists() && !path.is_dir() {
        return Err(Failure::failed(format!(
            "a store is a directory, but this is a file: path={}; {hint}",
            path.display()
        )));
    }
    Ok(())
}

/// The path of a copy until it is complete.
fn partial_copy(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    path.with_file_name(name)
}

fn parse_endpoint(text: &str) -> Result<String, String> {
    let is_valid = without_scheme(text).is_some_and(|host| !host.is_empty() && !host.contains(' '));
    validated(
        text,
        is_valid,
        "expected a URL, such as http://127.0.0.1:8000",
    )
}

/// The future of a command. Boxed, so that the runtime is compiled for one type only.
pub(super) type CommandFuture<'c> = Pin<Box<dyn Future<Output = Result> + 'c>>;

/// Runs a command on one thread, for commands that mostly wait for responses.
pub(super) fn block_on(command: CommandFuture<'_>) -> Result {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::failed(format!("the runtime could not be started: {error}")))?;
    runtime.block_on(command)
}

/// A runtime with one thread per core, for commands that serve or measure. `event_interval` is the number of task polls
/// between two checks of the sockets.
pub(super) fn multi_thread_runtime(event_interval: u32) -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("floe-worker")
        .event_interval(event_interval)
        .enable_all()
        .build();
    runtime.map_err(|error| Failure::failed(format!("the threads could not be started: {error}")))
}

/// Tokio's default event interval.
pub(super) const EVENT_INTERVAL: u32 = 61;
