//! Creates missing tables, indexes, expiry and streams until the tables of a store match their definitions.
//!
//! Each table is described and advanced by one step, until nothing is missing. The next step depends only on the
//! description, not on who took the previous step. So several processes can do this concurrently, and a lost response
//! is reconciled by the next description.

use std::fmt;
use std::time::Duration;

use floe_store::op::{CreateIndex, CreateTable, IndexUpdate, UpdateTable, UpdateTimeToLive};
use floe_store::table::{Billing, IndexDef, StreamView, TableDescription, TableStatus};
use floe_store::{Capabilities, Engine, Error as StoreError, Name, TableDef};

use super::difference::{differences, missing};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};

/// How long [`Db::ensure_tables`] waits for all tables to be ready.
pub const ENSURE_DEADLINE: Duration = Duration::from_secs(600);

/// The pause before the first retry; it doubles with each one.
const PAUSE_INITIAL: Duration = Duration::from_millis(20);
/// Maximum pause between two requests.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A change that [`Db::ensure_tables`] made to a table. Concurrent changes by another process are not reported.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableChange {
    /// The table was created, with its indexes.
    Created {
        /// The table.
        table: String,
    },
    /// An index was added, and filled from the existing items.
    IndexAdded {
        /// The table.
        table: String,
        /// The index.
        index: String,
    },
    /// Expiry was enabled.
    ExpiryEnabled {
        /// The table.
        table: String,
        /// The attribute with the expiry time of an item.
        attribute: String,
    },
    /// The change stream was enabled.
    StreamEnabled {
        /// The table.
        table: String,
    },
    /// Nothing was missing.
    Unchanged {
        /// The table.
        table: String,
    },
}

impl fmt::Display for TableChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created { table } => write!(f, "created: table={table}"),
            Self::IndexAdded { table, index } => {
                write!(f, "index added: table={table} index={index}")
            }
            Self::ExpiryEnabled { table, attribute } => {
                write!(f, "expiry enabled: table={table} attribute={attribute}")
            }
            Self::StreamEnabled { table } => write!(f, "stream enabled: table={table}"),
            Self::Unchanged { table } => write!(f, "unchanged: table={table}"),
        }
    }
}

impl Db {
    /// Like [`ensure_tables_within`](Db::ensure_tables_within), for any table definitions.
    ///
    /// # Errors
    ///
    /// As for [`ensure_tables`](Db::ensure_tables).
    pub async fn ensure_definitions(
        &self,
        definitions: Vec<TableDef>,
        deadline: Duration,
    ) -> Result<Vec<TableChange>> {
        let engine = &**self.engine();
        check_capabilities(&engine.capabilities(), &definitions)?;
        let mut tables: Vec<_> = definitions.into_iter().map(TableProgress::new).collect();
        let started = self.env().now();
        let (mut slept, mut pause) = (Duration::ZERO, PAUSE_INITIAL);
        loop {
            for table in tables.iter_mut().filter(|table| table.next != Step::Done) {
                table.describe(engine).await?;
            }
            // No table is changed before all were checked for differences.
            if tables.iter().all(|table| table.next != Step::Describe) {
                for table in &mut tables {
                    table.advance(engine).await?;
                }
            }
            if tables.iter().all(|table| table.next == Step::Done) {
                let changes = tables.into_iter().flat_map(TableProgress::into_changes);
                return Ok(changes.collect());
            }
            // Time slept counts even if the clock stands still.
            let remaining = deadline.saturating_sub(self.env().now().since(started).max(slept));
            if remaining.is_zero() {
                return Err(not_ready(&tables, deadline));
            }
            self.timer().sleep(pause.min(remaining)).await;
            slept += pause.min(remaining);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

fn check_capabilities(capabilities: &Capabilities, tables: &[TableDef]) -> Result<()> {
    for table in tables {
        let lacks = |what: &str, facts: &str| {
            let message = format!("the engine cannot {what}: table={}{facts}", table.name);
            Err(Error::new(ErrorKind::Unsupported, message))
        };
        let expiry = table.ttl_attribute.as_ref();
        if let Some(attribute) = expiry.filter(|_| !capabilities.expiry) {
            return lacks("expire items", &format!(" attribute={attribute}"));
        }
        if table.stream.is_some() && !capabilities.streams {
            return lacks("keep a change stream", "");
        }
        let mut indexes = table.indexes.iter();
        let wide = indexes.find(|i| i.key.partition.len() > 1 || i.key.sort.len() > 1);
        if let Some(index) = wide.filter(|_| !capabilities.multi_attribute_keys) {
            let facts = format!(" index={}", index.name);
            return lacks("index by several attributes", &facts);
        }
    }
    Ok(())
}

/// The next step for a table.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Describe,
    Take(Action),
    Wait,
    Done,
}

/// A request that advances a table.
#[derive(Clone, Debug, PartialEq)]
enum Action {
    Create(Box<TableDef>),
    AddIndex(IndexDef),
    EnableExpiry(Name),
    EnableStream(StreamView),
}

impl Action {
    async fn run(&self, table: &str, engine: &dyn Engine) -> Result<TableDescription, StoreError> {
        match self {
            Self::Create(definition) => {
                let definition = TableDef::clone(definition);
                engine.create_table(CreateTable::from(definition)).await
            }
            Self::AddIndex(index) => engine.update_table(add_index(table, index)).await,
            Self::EnableExpiry(attribute) => {
                let update = UpdateTimeToLive::enable(table, attribute);
                engine.update_time_to_live(update).await
            }
            Self::EnableStream(view) => {
                let mut update = UpdateTable::new(table);
                update.stream = Some(Some(*view));
                engine.update_table(update).await
            }
        }
    }

    fn into_change(self, table: String) -> TableChange {
        match self {
            Self::Create(_) => TableChange::Created { table },
            Self::AddIndex(IndexDef { name: index, .. }) => {
                TableChange::IndexAdded { table, index }
            }
            Self::EnableExpiry(attribute) => TableChange::ExpiryEnabled {
                table,
                attribute: attribute.to_string(),
            },
            Self::EnableStream(_) => TableChange::StreamEnabled { table },
        }
    }
}

fn add_index(table: &str, index: &IndexDef) -> UpdateTable {
    let attributes = index.key.attributes().map(|a| (a.name.clone(), a.kind));
    UpdateTable {
        attribute_definitions: attributes.collect(),
        indexes: vec![IndexUpdate::Create(CreateIndex::from(index.clone()))],
        ..UpdateTable::new(table)
    }
}

/// The progress of one table towards its definition.
struct TableProgress {
    expected: TableDef,
    next: Step,
    missing: Vec<String>,
    /// An action that the store rejected as invalid. If another process has not done it meanwhile, the error is final.
    rejected: Option<(Action, StoreError)>,
    /// The error of the last request.
    last_error: Option<StoreError>,
    changes: Vec<TableChange>,
}

impl TableProgress {
    fn new(expected: TableDef) -> Self {
        Self {
            missing: missing(&expected, None),
            expected,
            next: Step::Describe,
            rejected: None,
            last_error: None,
            changes: Vec::new(),
        }
    }

    fn into_changes(self) -> Vec<TableChange> {
        if self.changes.is_empty() {
            let table = self.expected.name;
            return vec![TableChange::Unchanged { table }];
        }
        self.changes
    }

    /// Describes the table and decides the next step.
    async fn describe(&mut self, engine: &dyn Engine) -> Result<()> {
        match engine.describe_table(self.expected.name.clone()).await {
            Ok(description) => self.observe(Some(&description))?,
            Err(StoreError::ResourceNotFound(_)) => self.observe(None)?,
            Err(error) if error.is_retryable() => {
                self.next = Step::Describe;
                self.last_error = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
        match (self.rejected.take(), &self.next) {
            (Some((rejected, error)), Step::Take(next)) if rejected == *next => {
                let (table, missing) = (&self.expected.name, self.missing.join(", "));
                let message = format!("{error}: table={table} missing=({missing})");
                Err(Error::new(ErrorKind::Table, message).with_source(error))
            }
            _ => Ok(()),
        }
    }

    fn observe(&mut self, actual: Option<&TableDescription>) -> Result<()> {
        self.next = next_step(&self.expected, actual)?;
        self.last_error = None;
        self.missing = missing(&self.expected, actual);
        Ok(())
    }

    /// Sends requests until there is nothing to do but wait.
    async fn advance(&mut self, engine: &dyn Engine) -> Result<()> {
        while let Step::Take(action) = &self.next {
            let action = action.clone();
            self.next = Step::Wait;
            match action.run(&self.expected.name, engine).await {
                Ok(description) => {
                    self.observe(Some(&description))?;
                    // A response that does not show the change yet is no reason to repeat it immediately.
                    if self.next == Step::Take(action.clone()) {
                        self.next = Step::Wait;
                    }
                    let change = action.into_change(self.expected.name.clone());
                    self.changes.push(change);
                }
                Err(error) => self.handle_error(action, error)?,
            }
        }
        Ok(())
    }

    /// Returns final errors. Other errors are resolved by the next description.
    fn handle_error(&mut self, action: Action, error: StoreError) -> Result<()> {
        match error {
            // Another process is changing the table, or just did.
            StoreError::ResourceInUse(_) | StoreError::LimitExceeded(_) => {}
            StoreError::Validation(_) => self.rejected = Some((action, error.clone())),
            _ if error.is_retryable() => {}
            _ => return Err(error.into()),
        }
        self.last_error = Some(error);
        Ok(())
    }
}

/// The next step for a table with this description.
fn next_step(expected: &TableDef, actual: Option<&TableDescription>) -> Result<Step> {
    let Some(actual) = actual else {
        return Ok(Step::Take(Action::Create(Box::new(expected.clone()))));
    };
    if actual.status == TableStatus::Deleting {
        return Ok(Step::Wait);
    }
    let differences = differences(expected, actual);
    if !differences.is_empty() {
        let (table, differences) = (&expected.name, differences.join("; "));
        let message = format!("the table differs from its models: table={table} {differences}");
        return Err(Error::new(ErrorKind::Table, message));
    }
    // The store creates one index at a time, and only while the table is active.
    let indexes = actual.indexes.iter().map(|index| index.status);
    let mut parts = indexes.chain([actual.status]);
    if parts.any(|status| status != TableStatus::Active) {
        return Ok(Step::Wait);
    }
    // Enable the stream before adding indexes, which may take hours to fill, so that fewer changes are missed.
    if let (Some(view), None) = (expected.stream, actual.definition.stream) {
        return Ok(Step::Take(Action::EnableStream(view)));
    }
    let mut indexes = expected.indexes.iter();
    if let Some(index) = indexes.find(|i| actual.definition.index(&i.name).is_none()) {
        let mut index = index.clone();
        index.throughput = match actual.definition.billing {
            Billing::OnDemand => None,
            Billing::Provisioned(throughput) => Some(throughput),
        };
        return Ok(Step::Take(Action::AddIndex(index)));
    }
    if let (Some(expiry), None) = (&expected.ttl_attribute, &actual.definition.ttl_attribute) {
        return Ok(Step::Take(Action::EnableExpiry(expiry.clone())));
    }
    Ok(Step::Done)
}

fn not_ready(tables: &[TableProgress], deadline: Duration) -> Error {
    let mut waiting = tables.iter().filter(|table| table.next != Step::Done);
    let missing = waiting
        .clone()
        .map(|table| format!(" {}=({})", table.expected.name, table.missing.join(", ")));
    let (deadline, missing) = (deadline.as_millis(), missing.collect::<String>());
    let message =
        format!("the tables were not ready before the deadline: deadline_ms={deadline}{missing}");
    match waiting.find_map(|table| table.last_error.clone()) {
        Some(last_error) => {
            let message = format!("{message} store_error=({last_error})");
            Error::new(ErrorKind::Deadline, message).with_source(last_error)
        }
        None => Error::new(ErrorKind::Deadline, message),
    }
}
