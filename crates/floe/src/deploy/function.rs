//! An AWS Lambda function that processes the changes of tables: its tables and its permissions.

use std::collections::{BTreeMap, BTreeSet};

use super::Tables;
use crate::changes::outbox::OutboxRecord;
use crate::changes::router::Router;
use crate::error::{Error, ErrorKind, Result};
use crate::events::EventStore;
use crate::model::Model;

/// The operations on items that can be granted.
const OPERATIONS: [&str; 9] = [
    "BatchGetItem",
    "BatchWriteItem",
    "ConditionCheckItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "Scan",
    "UpdateItem",
];

/// The operations of the indexer on the table of the feed.
const INDEXER_OPERATIONS: [&str; 5] = [
    "ConditionCheckItem",
    "GetItem",
    "PutItem",
    "Query",
    "UpdateItem",
];

/// Default maximum retries of a change before Lambda gives it up.
const ROUTER_RETRIES: i64 = 10;

/// A Lambda function that processes the changes of tables.
///
/// It runs on `provided.al2023` on 64-bit Arm; its code is a zip with a program called `bootstrap`.
#[derive(Clone, Debug)]
#[must_use = "a function does nothing until it is added to a deployment"]
pub struct Function {
    pub(super) name: String,
    pub(super) follows: BTreeSet<String>,
    pub(super) granted: BTreeMap<String, BTreeSet<String>>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) memory_mb: i64,
    pub(super) timeout_seconds: i64,
    pub(super) batch_max: i64,
    /// `-1` retries until the stream no longer has the change.
    pub(super) retries: i64,
}

impl Function {
    /// A function with this name: letters and digits.
    ///
    /// A change that fails is retried 10 times, and then given up.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            follows: BTreeSet::new(),
            granted: BTreeMap::new(),
            environment: BTreeMap::new(),
            memory_mb: 256,
            timeout_seconds: 60,
            batch_max: 100,
            retries: ROUTER_RETRIES,
        }
    }

    /// The program `floe` as the indexer of an event store: it writes appended events to the feed, in one partition unless
    /// the variable `FLOE_PARTITIONS` is changed. It never gives up a change.
    pub fn indexer(store: &EventStore) -> Self {
        let table = store.options().table.as_str();
        let index = store.feed_index();
        let index = index.options().table.as_str();
        Self::new("Indexer")
            .follow(table)
            .grant(index, INDEXER_OPERATIONS)
            .environment("FLOE_TABLE", table)
            .environment("FLOE_PARTITIONS", "1")
            .environment("FLOE_REPORT_BATCH_ITEM_FAILURES", "true")
            .batch_max(1_000)
            .retries(-1)
    }

    /// A program that runs this router with `changes::lambda::run`. It follows the tables of all types and topics with
    /// handlers; add the tables of pattern handlers with [`follow`](Self::follow). If the router has outbox handlers, the
    /// function may delete delivered messages.
    pub fn router(name: impl Into<String>, router: &Router) -> Self {
        let tables = router.tables();
        let outbox = OutboxRecord::SCHEMA.table;
        let mut function = Self::new(name);
        function.follows = tables.iter().map(ToString::to_string).collect();
        if tables.contains(outbox) && router.removes_outbox() {
            function = function.grant(outbox, ["DeleteItem"]);
        }
        function
    }

    /// Lets it process the changes of this table.
    pub fn follow(mut self, table: impl Into<String>) -> Self {
        self.follows.insert(table.into());
        self
    }

    /// Grants operations on this table and its indexes: `GetItem`, `Query` and so on. Transactions have no operation
    /// names: grant `GetItem`, `PutItem`, `UpdateItem`, `DeleteItem` and `ConditionCheckItem` for their parts.
    pub fn grant<'a>(
        mut self,
        table: impl Into<String>,
        operations: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let granted = self.granted.entry(table.into()).or_default();
        granted.extend(operations.into_iter().map(str::to_owned));
        self
    }

    /// Sets an environment variable.
    pub fn environment(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Memory in MB, which also determines the share of a CPU. Default: 256.
    pub const fn memory_mb(mut self, megabytes: u16) -> Self {
        self.memory_mb = megabytes as i64;
        self
    }

    /// Timeout of an invocation in seconds. Default: 60.
    pub const fn timeout_seconds(mut self, seconds: u16) -> Self {
        self.timeout_seconds = seconds as i64;
        self
    }

    /// Maximum changes per invocation. Default: 100.
    pub const fn batch_max(mut self, changes: u16) -> Self {
        self.batch_max = changes as i64;
        self
    }

    /// Maximum retries of a failed change before it is given up, at most 10,000. `-1` retries until the stream no longer
    /// has the change, which is a day; later changes wait. Default: 10.
    pub const fn retries(mut self, retries: i16) -> Self {
        self.retries = retries as i64;
        self
    }

    /// Validates the function against the tables of the deployment.
    pub(super) fn check(&self, tables: &Tables<'_>) -> Result<()> {
        let name = &self.name;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric());
        let has_stream = |table: &&String| {
            let table = tables.get(table.as_str());
            table.is_some_and(|table| table.stream.is_some())
        };
        let mut needed = self.follows.iter().chain(self.granted.keys());
        let missing = needed.find(|table| !tables.contains_key(table.as_str()));
        let without_stream = self.follows.iter().find(|table| !has_stream(table));
        let mut granted = self.granted.values().flatten();
        let unknown = granted.find(|operation| !OPERATIONS.contains(&operation.as_str()));
        let (kind, what, facts) = if !is_name {
            let what = "the name of a function must consist of letters and digits";
            (ErrorKind::InvalidUse, what, String::new())
        } else if self.follows.is_empty() {
            let what = "a function follows no table";
            (ErrorKind::InvalidUse, what, String::new())
        } else if let Some(table) = missing {
            let what = "a function needs a table that is not deployed";
            (ErrorKind::Table, what, format!(" table={table}"))
        } else if let Some(table) = without_stream {
            let what = "a function follows a table that has no stream";
            (ErrorKind::Table, what, format!(" table={table}"))
        } else if let Some(operation) = unknown {
            let what = "a function can only be granted operations on items";
            (
                ErrorKind::InvalidUse,
                what,
                format!(" operation={operation}"),
            )
        } else {
            return Ok(());
        };
        Err(Error::new(kind, format!("{what}: function={name}{facts}")))
    }

    /// The name of a resource that belongs to it.
    pub(super) fn id(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.name)
    }
}
