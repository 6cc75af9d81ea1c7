//! Change events of AWS Lambda: parses them and reports failed records in the response.
//!
//! Lambda reads the change stream, keeps the order of each shard, stores its position, and resends failed records, so
//! only a router and a [`Receiver`] are needed. The receiver also parses GetRecords responses of DynamoDB Streams,
//! which have the same JSON.
//!
//! ```
//! use floe::changes::lambda::Receiver;
//! use floe::changes::{Pattern, Router};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), floe::Error> {
//! let router = Router::new().matching(Pattern::any().pk_type("lyr"), async |change| {
//!     println!("{:?}", change.keys());
//!     Ok(())
//! });
//! let receiver = Receiver::new(router);
//! // For each event that Lambda sends:
//! let event = br#"{"Records": []}"#;
//! assert_eq!(receiver.handle(event).await?, r#"{"batchItemFailures":[]}"#);
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `lambda`, a program is a complete Lambda function: `lambda::run(router)` polls for events, passes
//! them to the router and responds, until Lambda ends the process.
//!
//! The event source mapping must have `ReportBatchItemFailures`. Without it, Lambda ignores the reported failures.

#[cfg(feature = "lambda")]
mod runtime;
#[cfg(test)]
mod tests;

#[cfg(feature = "lambda")]
pub use self::runtime::{Runtime, run};

use std::sync::Mutex;

use floe_store::json::{
    DecodeError, Reader, ReceivedRecord, Token, Writer, read_members, read_record,
};

use super::change::Change;
use super::deliver::BatchDelivery;
use super::router::Router;
use super::work::ChangeWork;
use crate::db::Db;
use crate::delivery::RecentIds;
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;

/// Maximum number of remembered changes. Lambda sends at most 10,000 per event.
const REMEMBERED_MAX: usize = 20_000;

/// Parses the changes of an AWS Lambda event, or of a GetRecords response of DynamoDB Streams. The table name is
/// taken from `eventSourceARN`, and empty without it.
///
/// # Errors
///
/// [`InvalidUse`](ErrorKind::InvalidUse) if the text is neither; the message contains the record and the reason.
pub fn read_changes(event: &[u8]) -> Result<Vec<Change>> {
    let refused = |message: String| Error::new(ErrorKind::InvalidUse, message);
    let text = std::str::from_utf8(event)
        .map_err(|error| refused(format!("the event is not JSON: {error}")))?;
    let mut reader = Reader::new(text);
    let read = read_records(&mut reader);
    let at = reader.position();
    let read = read.and_then(|records| Ok(reader.finish().map(|()| records)?));
    let records = read.map_err(|unsound| match unsound {
        DecodeError::Malformed => refused(format!("the event is not JSON: at={at}")),
        DecodeError::Invalid { reason, path } => {
            let joint = if reason.contains(": ") { " " } else { ": " };
            refused(format!("a record cannot be read, {reason}{joint}at={path}"))
        }
    })?;
    let records = records.ok_or_else(|| {
        let message = "the event has no Records";
        refused(message.to_owned())
    })?;
    Ok(records.into_iter().map(change).collect())
}

fn read_records(reader: &mut Reader<'_>) -> Result<Option<Vec<ReceivedRecord>>, DecodeError> {
    if reader.peek()? != Token::Object {
        reader.skip()?;
        return Ok(None);
    }
    let mut records = None;
    read_members(reader, |name, reader| {
        if name != "Records" || reader.peek()? != Token::Array {
            return Ok(reader.skip()?);
        }
        let records = records.insert(Vec::new());
        reader.begin_array()?;
        while reader.next_element()? {
            records.push(read_record(reader)?);
        }
        Ok(())
    })?;
    Ok(records)
}

fn change(sent: ReceivedRecord) -> Change {
    let table = sent.source_arn.as_deref().and_then(table_of);
    Change::new(table.unwrap_or_default(), sent.record)
}

/// The table in the resource name of a stream: `arn:aws:dynamodb:<region>:<account>:table/<table>/stream/<label>`.
fn table_of(arn: &str) -> Option<&str> {
    let (_, resource) = arn.split_once(":table/")?;
    resource.split('/').next()
}

/// Passes the changes of events to a router, and reports which of them Lambda must resend.
///
/// It remembers completed changes while the process lives. Lambda resends everything from the first failed change;
/// handlers that completed a change are not called again for it.
#[derive(Debug)]
pub struct Receiver {
    router: Router,
    db: Option<Db>,
    table: Option<String>,
    table_prefix: String,
    memory: Mutex<RecentIds<ReceivedState>>,
}

/// The state of a change that was received before.
#[derive(Clone, Debug)]
enum ReceivedState {
    Done,
    /// The handlers that did not complete it.
    Pending(Vec<String>),
}

impl Receiver {
    /// Creates a receiver for this router.
    pub fn new(router: Router) -> Self {
        Self {
            router,
            db: None,
            table: None,
            table_prefix: String::new(),
            memory: Mutex::new(RecentIds::new(REMEMBERED_MAX)),
        }
    }

    setters! {
        /// Removes delivered outbox records from this database.
        pub fn db(db: &Db) => db = Some(db.clone());

        /// The table of all changes, overriding the event. GetRecords responses do not name it.
        pub fn table(table: impl Into<String>) => table = Some(table.into());

        /// A prefix of the table names in events, unknown to the router.
        pub fn table_prefix(prefix: impl Into<String>) => table_prefix = prefix.into();
    }

    /// Passes the changes of an event to the router. Returns the response that Lambda expects: the sequence numbers
    /// of the changes to resend.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if the event cannot be parsed. No handler was called then.
    pub async fn handle(&self, event: &[u8]) -> Result<String> {
        Ok(self.receive(event).await?.response())
    }

    /// Passes the changes of an event to the router, and returns the outcome of each.
    ///
    /// # Errors
    ///
    /// As for [`handle`](Self::handle).
    pub async fn receive(&self, event: &[u8]) -> Result<BatchDelivery> {
        let changes = read_changes(event)?.into_iter();
        let changes: Vec<Change> = changes
            .map(|change| self.with_router_table(change))
            .collect();
        let delivery = self
            .router
            .deliver_with(&changes, self.db.as_ref(), &|change| self.work(change))
            .await;
        self.remember(&changes, &delivery);
        Ok(delivery)
    }

    /// Returns the change with the table name that the router knows.
    fn with_router_table(&self, change: Change) -> Change {
        let name = change.table();
        let known = name.strip_prefix(&self.table_prefix).unwrap_or(name);
        let table = self.table.as_deref().unwrap_or(known).to_owned();
        if table == name {
            return change;
        }
        Change::new(table, change.into_record())
    }

    fn work(&self, change: &Change) -> Option<ChangeWork> {
        match lock(&self.memory).get(change.event_id()) {
            Some(ReceivedState::Done) if !change.event_id().is_empty() => None,
            Some(ReceivedState::Pending(pending)) => self.router.remaining_work(change, pending),
            _ => self.router.work(change),
        }
    }

    fn remember(&self, changes: &[Change], delivery: &BatchDelivery) {
        let mut memory = lock(&self.memory);
        let mut failures = delivery.failures.iter().peekable();
        for (index, change) in changes.iter().enumerate() {
            let failed = failures.next_if(|failed| failed.index == index);
            match failed {
                None => _ = memory.insert(change.event_id(), ReceivedState::Done),
                Some(failed) if failed.handlers.is_empty() => {}
                Some(failed) => {
                    let pending = ReceivedState::Pending(failed.handlers.clone());
                    memory.insert(change.event_id(), pending);
                }
            }
        }
    }
}

impl BatchDelivery {
    /// The response to Lambda: the sequence numbers of the changes to resend.
    fn response(&self) -> String {
        let mut writer = Writer::default();
        writer.object(|w| {
            w.name("batchItemFailures").array(|w| {
                for failed in &self.failures {
                    w.object(|w| w.name("itemIdentifier").string(&failed.sequence));
                }
            });
        });
        writer.into_text()
    }
}
