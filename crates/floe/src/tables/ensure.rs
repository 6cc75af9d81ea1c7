//! Brings the tables of a store to their definitions.
//!
//! Each table is looked at and taken one step further, until nothing is missing. What to do follows from
//! what is seen alone, so that it does not matter who took the last step: several processes can do this
//! at once, and a lost answer is settled by looking again.

use std::fmt;
use std::time::Duration;

use floe_store::op::{CreateIndex, CreateTable, IndexUpdate, UpdateTable, UpdateTimeToLive};
use floe_store::table::{Billing, IndexDef, StreamView, TableDescription, TableStatus};
use floe_store::{Capabilities, Engine, Error as StoreError, Name, TableDef};

use super::difference::{differences, missing};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};

/// How long [`Db::ensure_tables`] waits until everything is ready.
pub const ENSURE_DEADLINE: Duration = Duration::from_secs(600);

/// The pause before the first look again, which doubles from then on.
const PAUSE_INITIAL: Duration = Duration::from_millis(20);
/// The longest pause between two looks.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What [`Db::ensure_tables`] did to a table. What another process did at the same time is not told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableChange {
    /// The table was missing and has been created, with its indexes.
    Created {
        /// The table.
        table: String,
    },
    /// An index was missing and has been added, and filled from the items that were there.
    IndexAdded {
        /// The table.
        table: String,
        /// The index.
        index: String,
    },
    /// Items did not expire, and now do.
    ExpirySwitchedOn {
        /// The table.
        table: String,
        /// The attribute that tells when an item expires.
        attribute: String,
    },
    /// The table kept no change stream, and now does.
    StreamSwitchedOn {
        /// The table.
        table: String,
    },
    /// Everything was there.
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
            Self::ExpirySwitchedOn { table, attribute } => {
                write!(f, "expiry switched on: table={table} attribute={attribute}")
            }
            Self::StreamSwitchedOn { table } => write!(f, "stream switched on: table={table}"),
            Self::Unchanged { table } => write!(f, "unchanged: table={table}"),
        }
    }
}

impl Db {
    /// As [`ensure_tables_within`](Db::ensure_tables_within), for tables that are not those of models.
    ///
    /// # Errors
    ///
    /// As [`ensure_tables`](Db::ensure_tables).
    pub async fn ensure_definitions(
        &self,
        definitions: Vec<TableDef>,
        deadline: Duration,
    ) -> Result<Vec<TableChange>> {
        let engine = &**self.engine();
        check_capabilities(&engine.capabilities(), &definitions)?;
        let mut tables: Vec<_> = definitions.into_iter().map(Progress::new).collect();
        let begun = self.env().now();
        let (mut slept, mut pause) = (Duration::ZERO, PAUSE_INITIAL);
        loop {
            for table in tables.iter_mut().filter(|table| table.next != Step::Done) {
                table.look(engine).await?;
            }
            // Nothing is changed before every table has been seen not to differ.
            if tables.iter().all(|table| table.next != Step::Look) {
                for table in &mut tables {
                    table.advance(engine).await?;
                }
            }
            if tables.iter().all(|table| table.next == Step::Done) {
                let changes = tables.into_iter().flat_map(Progress::into_changes);
                return Ok(changes.collect());
            }
            // What has been slept counts even if the clock stands still.
            let left = deadline.saturating_sub(self.env().now().since(begun).max(slept));
            if left.is_zero() {
                return Err(not_ready(&tables, deadline));
            }
            self.timer().sleep(pause.min(left)).await;
            slept += pause.min(left);
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
            return lacks("let items expire", &format!(" attribute={attribute}"));
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

/// What to do next with a table.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Look,
    Take(Action),
    Wait,
    Done,
}

/// A request that brings a table further.
#[derive(Clone, Debug, PartialEq)]
enum Action {
    Create(Box<TableDef>),
    AddIndex(IndexDef),
    SwitchExpiryOn(Name),
    SwitchStreamOn(StreamView),
}

impl Action {
    async fn run(&self, table: &str, engine: &dyn Engine) -> Result<TableDescription, StoreError> {
        match self {
            Self::Create(definition) => {
                let definition = TableDef::clone(definition);
                engine.create_table(CreateTable::from(definition)).await
            }
            Self::AddIndex(index) => engine.update_table(add_index(table, index)).await,
            Self::SwitchExpiryOn(attribute) => {
                let update = UpdateTimeToLive::enable(table, attribute);
                engine.update_time_to_live(update).await
            }
            Self::SwitchStreamOn(view) => {
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
            Self::SwitchExpiryOn(attribute) => TableChange::ExpirySwitchedOn {
                table,
                attribute: attribute.to_string(),
            },
            Self::SwitchStreamOn(_) => TableChange::StreamSwitchedOn { table },
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

/// A table on its way to its definition.
struct Progress {
    expected: TableDef,
    next: Step,
    missing: Vec<String>,
    /// An action that the store called wrong. Somebody else may have done it; if not, this is the end.
    refused: Option<(Action, StoreError)>,
    /// Why the last request did not do what it should.
    trouble: Option<StoreError>,
    changes: Vec<TableChange>,
}

impl Progress {
    fn new(expected: TableDef) -> Self {
        Self {
            missing: missing(&expected, None),
            expected,
            next: Step::Look,
            refused: None,
            trouble: None,
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

    /// Looks at the table and decides what to do next.
    async fn look(&mut self, engine: &dyn Engine) -> Result<()> {
        match engine.describe_table(self.expected.name.clone()).await {
            Ok(description) => self.see(Some(&description))?,
            Err(StoreError::ResourceNotFound(_)) => self.see(None)?,
            Err(error) if error.is_retryable() => {
                self.next = Step::Look;
                self.trouble = Some(error);
            }
            Err(error) => return Err(error.into()),
        }
        match (self.refused.take(), &self.next) {
            (Some((refused, error)), Step::Take(next)) if refused == *next => {
                let (table, missing) = (&self.expected.name, self.missing.join(", "));
                let message = format!("{error}: table={table} missing=({missing})");
                Err(Error::new(ErrorKind::Table, message).with_source(error))
            }
            _ => Ok(()),
        }
    }

    fn see(&mut self, actual: Option<&TableDescription>) -> Result<()> {
        self.next = next_step(&self.expected, actual)?;
        self.trouble = None;
        self.missing = missing(&self.expected, actual);
        Ok(())
    }

    /// Acts until there is nothing to do but to wait.
    async fn advance(&mut self, engine: &dyn Engine) -> Result<()> {
        while let Step::Take(action) = &self.next {
            let action = action.clone();
            self.next = Step::Wait;
            match action.run(&self.expected.name, engine).await {
                Ok(description) => {
                    self.see(Some(&description))?;
                    // An answer that does not show yet what was done is no reason to do it again at once.
                    if self.next == Step::Take(action.clone()) {
                        self.next = Step::Wait;
                    }
                    let change = action.into_change(self.expected.name.clone());
                    self.changes.push(change);
                }
                Err(error) => self.stumble(action, error)?,
            }
        }
        Ok(())
    }

    /// Tells errors that looking again settles from those that end it.
    fn stumble(&mut self, action: Action, error: StoreError) -> Result<()> {
        match error {
            // Somebody else is at it, or was a moment before.
            StoreError::ResourceInUse(_) | StoreError::LimitExceeded(_) => {}
            StoreError::Validation(_) => self.refused = Some((action, error.clone())),
            _ if error.is_retryable() => {}
            _ => return Err(error.into()),
        }
        self.trouble = Some(error);
        Ok(())
    }
}

/// What to do with a table that looks so.
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
    // The store makes one index at a time, and only of a table at rest.
    let indexes = actual.indexes.iter().map(|index| index.status);
    let mut parts = indexes.chain([actual.status]);
    if parts.any(|status| status != TableStatus::Active) {
        return Ok(Step::Wait);
    }
    // Before the indexes, which may take hours to fill: from here on no change is missed.
    if let (Some(view), None) = (expected.stream, actual.definition.stream) {
        return Ok(Step::Take(Action::SwitchStreamOn(view)));
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
        return Ok(Step::Take(Action::SwitchExpiryOn(expiry.clone())));
    }
    Ok(Step::Done)
}

fn not_ready(tables: &[Progress], deadline: Duration) -> Error {
    let mut waiting = tables.iter().filter(|table| table.next != Step::Done);
    let missing = waiting
        .clone()
        .map(|table| format!(" {}=({})", table.expected.name, table.missing.join(", ")));
    let (deadline, missing) = (deadline.as_millis(), missing.collect::<String>());
    let message = format!("tables are not ready in time: deadline_ms={deadline}{missing}");
    match waiting.find_map(|table| table.trouble.clone()) {
        Some(trouble) => {
            let message = format!("{message} store_error=({trouble})");
            Error::new(ErrorKind::Deadline, message).with_source(trouble)
        }
        None => Error::new(ErrorKind::Deadline, message),
    }
}
