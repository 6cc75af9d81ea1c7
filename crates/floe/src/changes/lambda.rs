//! Changes that AWS Lambda brings: reading its events, and answering which of them are to be sent again.
//!
//! In Lambda somebody else reads the change stream, keeps the order of each shard, remembers how far it has come, and sends
//! again what has failed. So all that is needed is a router and a [`Receiver`]. It reads what the API of DynamoDB Streams
//! answers to GetRecords as well, which is the same JSON.
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
//! With the feature `lambda`, a program is a function of Lambda by itself: `lambda::run(router)` asks for events, gives them to
//! the router and answers, until Lambda ends the process.
//!
//! The mapping of the function must have `ReportBatchItemFailures`. Without it, Lambda takes the answer for success.

#[cfg(feature = "lambda")]
mod runtime;
#[cfg(test)]
mod tests;

#[cfg(feature = "lambda")]
pub use self::runtime::{Runtime, run};

use std::sync::Mutex;

use floe_store::json::{Reader, SentRecord, Token, Unsound, Writer, read_members, read_record};

use super::change::Change;
use super::deliver::Delivery;
use super::router::Router;
use super::work::Work;
use crate::db::Db;
use crate::delivery::Recent;
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;

/// How many changes a receiver remembers: Lambda sends at most 10,000 at once.
const REMEMBERED: usize = 20_000;

/// The changes of an event of AWS Lambda, or of an answer of DynamoDB Streams to GetRecords. The name of the table is that
/// in `eventSourceARN`, and empty where there is none.
///
/// # Errors
///
/// [`InvalidUse`](ErrorKind::InvalidUse) when it is neither; the message tells which record, and why.
pub fn read_changes(event: &[u8]) -> Result<Vec<Change>> {
    let refused = |message: String| Error::new(ErrorKind::InvalidUse, message);
    let text = std::str::from_utf8(event)
        .map_err(|error| refused(format!("the event is not JSON: {error}")))?;
    let mut reader = Reader::new(text);
    let read = read_records(&mut reader);
    let at = reader.position();
    let read = read.and_then(|records| Ok(reader.finish().map(|()| records)?));
    let records = read.map_err(|unsound| match unsound {
        Unsound::Malformed => refused(format!("the event is not JSON: at={at}")),
        Unsound::Wrong { what, path } => {
            let joint = if what.contains(": ") { " " } else { ": " };
            refused(format!("a record cannot be read, {what}{joint}at={path}"))
        }
    })?;
    let records = records.ok_or_else(|| {
        let message = "the event tells of no changes: it has no Records";
        refused(message.to_owned())
    })?;
    Ok(records.into_iter().map(change).collect())
}

fn read_records(reader: &mut Reader<'_>) -> Result<Option<Vec<SentRecord>>, Unsound> {
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

fn change(sent: SentRecord) -> Change {
    let table = sent.source_arn.as_deref().and_then(table_of);
    Change::new(table.unwrap_or_default(), sent.record)
}

/// The table in the resource name of a stream: `arn:aws:dynamodb:<region>:<account>:table/<table>/stream/<label>`.
fn table_of(arn: &str) -> Option<&str> {
    let (_, resource) = arn.split_once(":table/")?;
    resource.split('/').next()
}

/// Gives the changes of events to a router, and tells which of them are to be sent again.
///
/// It remembers what is done for as long as the process lives. Lambda sends everything again from the first change on that
/// has failed; the handlers that were done with a change are not called again then.
#[derive(Debug)]
pub struct Receiver {
    router: Router,
    db: Option<Db>,
    table: Option<String>,
    table_prefix: String,
    memory: Mutex<Recent<Memory>>,
}

/// What is known of a change that has come before.
#[derive(Clone, Debug)]
enum Memory {
    Done,
    /// These handlers are not done with it.
    Pending(Vec<String>),
}

impl Receiver {
    /// A receiver for this router.
    pub fn new(router: Router) -> Self {
        Self {
            router,
            db: None,
            table: None,
            table_prefix: String::new(),
            memory: Mutex::new(Recent::new(REMEMBERED)),
        }
    }

    setters! {
        /// Removes the records of the outbox that are delivered from this database.
        pub fn db(db: &Db) => db = Some(db.clone());

        /// All changes are of this table, whatever the event says. What GetRecords answers does not say it.
        pub fn table(table: impl Into<String>) => table = Some(table.into());

        /// The names of tables begin so, and the router knows them without it.
        pub fn table_prefix(prefix: impl Into<String>) => table_prefix = prefix.into();
    }

    /// Gives the changes of an event to the router. Answers what Lambda expects: the sequence numbers of the changes that
    /// are to be sent again.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the event cannot be read. Nothing was given to a handler then.
    pub async fn handle(&self, event: &[u8]) -> Result<String> {
        Ok(self.receive(event).await?.answer())
    }

    /// Gives the changes of an event to the router, and tells what became of each.
    ///
    /// # Errors
    ///
    /// As for [`handle`](Self::handle).
    pub async fn receive(&self, event: &[u8]) -> Result<Delivery> {
        let changes = read_changes(event)?.into_iter();
        let changes: Vec<Change> = changes.map(|change| self.placed(change)).collect();
        let delivery = self
            .router
            .deliver_with(&changes, self.db.as_ref(), &|change| self.work(change))
            .await;
        self.remember(&changes, &delivery);
        Ok(delivery)
    }

    /// The change under the name of its table that the router knows.
    fn placed(&self, change: Change) -> Change {
        let given = change.table();
        let known = given.strip_prefix(&self.table_prefix).unwrap_or(given);
        let table = self.table.as_deref().unwrap_or(known).to_owned();
        if table == given {
            return change;
        }
        Change::new(table, change.into_record())
    }

    fn work(&self, change: &Change) -> Option<Work> {
        match lock(&self.memory).get(change.event_id()) {
            Some(Memory::Done) if !change.event_id().is_empty() => None,
            Some(Memory::Pending(pending)) => self.router.work_left(change, pending),
            _ => self.router.work(change),
        }
    }

    fn remember(&self, changes: &[Change], delivery: &Delivery) {
        let mut memory = lock(&self.memory);
        let mut failures = delivery.failures.iter().peekable();
        for (place, change) in changes.iter().enumerate() {
            let failed = failures.next_if(|failed| failed.place == place);
            match failed {
                None => _ = memory.note(change.event_id(), Memory::Done),
                Some(failed) if failed.handlers.is_empty() => {}
                Some(failed) => {
                    let pending = Memory::Pending(failed.handlers.clone());
                    memory.note(change.event_id(), pending);
                }
            }
        }
    }
}

impl Delivery {
    /// What Lambda is answered: the sequence numbers of the changes that are to be sent again.
    fn answer(&self) -> String {
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
