//! The outbox: messages that are written in the same commit as what they tell of.
//!
//! [`Tx::outbox`](crate::Tx::outbox) is the durable form of
//! [`Tx::on_post_commit`](crate::Tx::on_post_commit). A hook runs in this process and is lost with it; a
//! message is an item, so it is there if and only if the commit was made.
//!
//! ```
//! use floe::changes::outbox::OutboxRecord;
//! use floe::{Db, Error, Model};
//!
//! #[derive(Model)]
//! struct Player { #[model(key)] name: String, level: u32 }
//!
//! #[derive(serde::Serialize)]
//! struct Joined<'a> { name: &'a str }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let db = Db::memory()?;
//! db.ensure_tables(&[Player::SCHEMA, OutboxRecord::SCHEMA]).await?;
//! db.transact(async |tx| {
//!     tx.create(Player { name: "ada".to_owned(), level: 1 })?;
//!     tx.outbox("player.joined", &Joined { name: "ada" })
//! })
//! .await?;
//! # Ok(())
//! # }
//! ```
//!
//! All messages of a commit are one [`OutboxRecord`], in the order in which the body wrote them: one item to
//! pay for, however many messages, and no order to restore. The record counts as one of the items of the
//! transaction, and its 400 KB hold all messages of the commit together.
//!
//! # How it is delivered
//!
//! By a [router](super::Router), which reads the change stream of the table. [`Db::ensure_tables`](crate::Db::ensure_tables)
//! switches it on: each record is inserted once and never changed, so each insertion in the stream is a commit.
//!
//! - The messages of a commit go to the handlers of their topics one after the other, in the order in which they were
//!   written. A message waits until all handlers of the one before are done.
//! - Messages of different commits go side by side, in no order.
//! - Delivery is at least once. A handler that fails is tried again, with the message it failed on; those before it do not
//!   come again, unless the process dies meanwhile. Who must not act twice remembers the [id](Message::id).
//! - When all messages of a record are delivered, the record is removed. If nobody handles the topic of one of them, it
//!   stays; so it does with [`keep_outbox`](super::Router::keep_outbox).
//! - A record whose handler fails too often is parked with the messages that are left, as every change is, and the record
//!   stays as well.
//!
//! ```
//! # use floe::changes::Router;
//! # use floe::Error;
//! let router = Router::new().outbox("player.*", async |message| {
//!     let name: String = message.read()?;
//!     println!("{}: {name}", message.topic);
//!     Ok(())
//! });
//! ```

mod message;

pub use self::message::{Message, Topics};

use floe_store::{Item, Timestamp, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::attribute::document::Json;
use crate::attribute::document::{from_value, to_value_below};
use crate::attribute::{Attribute, Invalid};
use crate::attribute::{mismatch, missing};
use crate::error::{Error, ErrorItem, ErrorKind, Result};
use crate::model::Model;
use crate::model::compile::Plan;
use crate::model::part::ModelPart;
use crate::tx::Tx;
use crate::tx::part::{Alone, CommitId, Part, PartWrite, Refusal, SentAlone};
use crate::tx::session::{Changes, PartContext};

/// The most bytes of a topic.
pub const TOPIC_BYTES_MAX: usize = 255;

/// The body of a message stands in a map in the list of messages.
const LEVELS_ABOVE_BODY: usize = 2;

const TOPIC: &str = "topic";
const BODY: &str = "body";

/// The messages of one commit. Written by [`Tx::outbox`](crate::Tx::outbox), never by hand.
#[derive(Clone, Debug, PartialEq, crate::Model)]
#[model(crate = "crate", table = "floe_outbox", stream)]
pub struct OutboxRecord {
    /// The id of the commit, which is also the stamp (`_tx`) on every item that the commit wrote.
    #[model(key)]
    pub id: String,
    /// When the commit was sent, by the clock of the engine.
    pub created: Timestamp,
    /// The messages, in the order in which the body of the transaction wrote them.
    pub messages: Vec<OutboxMessage>,
}

/// A message in the outbox.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OutboxMessage {
    /// What it is about, for those who deliver it: 1 to 255 bytes without control characters.
    pub topic: String,
    /// What it says, as [`to_value`](crate::attribute::document::to_value) stores it.
    pub body: Value,
}

impl OutboxMessage {
    /// A message of this topic.
    pub(crate) fn new<T: Serialize + ?Sized>(topic: &str, message: &T) -> Result<Self> {
        let invalid =
            |field, invalid: Invalid| Error::invalid(OutboxRecord::SCHEMA.model, field, &invalid);
        check_topic(topic).map_err(|reason| invalid(TOPIC, reason))?;
        let body = to_value_below(message, LEVELS_ABOVE_BODY);
        let body = body.map_err(|reason| invalid("message", reason))?;
        Ok(Self {
            topic: topic.to_owned(),
            // There is no absence in a list: a message that is `None` is one, and says nothing.
            body: body.unwrap_or(Value::Null),
        })
    }

    /// What it says, as the type that was written, or one that is read from the same document.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when the message is of another form.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        from_value(Some(&self.body))
            .map_err(|reason| Error::invalid(OutboxRecord::SCHEMA.model, "message", &reason))
    }
}

fn check_topic(topic: &str) -> Result<(), Invalid> {
    if !(1..=TOPIC_BYTES_MAX).contains(&topic.len()) {
        let bytes = topic.len();
        return Err(Invalid::new(format!(
            "a topic has 1 to {TOPIC_BYTES_MAX} bytes: bytes={bytes}"
        )));
    }
    if topic.contains(char::is_control) {
        return Err(Invalid::new(format!(
            "a topic has no control characters: topic={topic:?}"
        )));
    }
    Ok(())
}

impl Attribute for OutboxMessage {
    fn to_value(&self) -> Result<Option<Value>, Invalid> {
        let message = Item::with_capacity(2)
            .with(TOPIC, self.topic.as_str())
            .with(BODY, self.body.clone());
        Ok(Some(Value::M(message)))
    }

    fn from_value(value: Option<&Value>) -> Result<Self, Invalid> {
        match value.ok_or_else(missing)? {
            Value::M(message) => {
                let topic = String::from_value(message.get(TOPIC));
                let body = message.get(BODY).cloned().ok_or_else(missing);
                Ok(Self {
                    topic: topic.map_err(|invalid| invalid.within(".topic"))?,
                    body: body.map_err(|invalid| invalid.within(".body"))?,
                })
            }
            other => Err(mismatch("M", other)),
        }
    }

    fn json_schema() -> Json {
        let properties = [(TOPIC, String::json_schema()), (BODY, Json::json_schema())];
        Json::from_iter([
            ("type", Json::from("object")),
            ("properties", Json::from_iter(properties)),
            ("required", Json::from_iter([TOPIC, BODY])),
        ])
    }
}

impl Tx {
    /// Writes a message into the [outbox](crate::changes::outbox), in the same commit: it is there if and
    /// only if the transaction is committed, once, however often the body runs. Needs the table of
    /// [`OutboxRecord`].
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the topic has not 1 to 255 bytes or has control
    /// characters, or when the message has no form in the store: then the error tells the place in it.
    pub fn outbox<T: Serialize + ?Sized>(&self, topic: &str, message: &T) -> Result<()> {
        let message = OutboxMessage::new(topic, message)?;
        let session = self.session();
        session.with(|Messages(messages): &mut Messages| messages.push(message))
    }
}

/// The messages of a run of a body, in their order.
#[derive(Default)]
struct Messages(Vec<OutboxMessage>);

impl Changes for Messages {
    fn into_parts(self, _: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        Ok(if self.0.is_empty() {
            Vec::new()
        } else {
            vec![Box::new(OutboxPart {
                messages: self.0,
                record: ModelPart::new(Vec::new()),
            })]
        })
    }
}

/// The share of the outbox in a commit: one record with all messages, of which the id of the commit is the key.
#[derive(Debug)]
struct OutboxPart {
    messages: Vec<OutboxMessage>,
    /// The record, once the commit has an id.
    record: ModelPart,
}

impl Part for OutboxPart {
    fn is_write(&self) -> bool {
        true
    }

    fn read_only_error(&self) -> Error {
        let topic = self.messages.first().map_or("", |message| &message.topic);
        let message = format!("a read-only transaction cannot write to the outbox: topic={topic}");
        Error::new(ErrorKind::ReadOnly, message)
    }

    fn tables(&self) -> Vec<(String, &'static str)> {
        let schema = OutboxRecord::SCHEMA;
        vec![(schema.table.to_owned(), schema.model)]
    }

    fn remedy(&self) -> &'static str {
        self.record.remedy()
    }

    fn prepare(&mut self, commit: &CommitId) -> Result<()> {
        let record = OutboxRecord {
            id: commit.id.to_string(),
            created: commit.now,
            messages: std::mem::take(&mut self.messages),
        };
        let key = record.key_of()?.encoded().clone();
        let plan = Plan::new_item(OutboxRecord::SCHEMA, key, record.to_item()?);
        self.record = ModelPart::new(vec![plan]);
        self.record.prepare(commit)
    }

    fn writes(&self) -> Result<Vec<PartWrite>> {
        self.record.writes()
    }

    fn refused(&self, at: usize, item: Option<&Item>) -> Refusal {
        self.record.refused(at, item)
    }

    fn items(&self) -> Vec<ErrorItem> {
        self.record.items()
    }

    fn send_alone<'a>(&'a mut self, alone: Alone<'a>) -> Option<SentAlone<'a>> {
        self.record.send_alone(alone)
    }
}
