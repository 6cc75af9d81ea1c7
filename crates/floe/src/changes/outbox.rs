//! The outbox: messages stored in the commit that causes them.
//!
//! [`Tx::outbox`](crate::Tx::outbox) is the durable form of [`Tx::on_post_commit`](crate::Tx::on_post_commit). A hook
//! runs in this process and is lost with it; a message is an item, so it exists if and only if the commit succeeded.
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
//! All messages of a commit form one [`OutboxRecord`], in the order in which the body wrote them: the commit pays for
//! one item, and the order is kept. The record counts as one item of the transaction, and all messages of the commit
//! together must fit into its 400 KB.
//!
//! # Delivery
//!
//! A [router](super::Router) reads the change stream of the table, which
//! [`Db::ensure_tables`](crate::Db::ensure_tables) enables. Each record is inserted once and never changed, so each
//! insertion in the stream is a commit.
//!
//! - The messages of a commit are passed to the handlers of their topics one at a time, in the order in which they
//!   were written. A message waits until all handlers of the previous one have succeeded.
//! - Messages of different commits are delivered concurrently, in no order.
//! - Delivery is at least once. A failed handler is retried with the same message; earlier messages are not repeated
//!   unless the process dies. Handlers that must not act twice store the [id](Message::id).
//! - After all messages of a record are delivered, the record is removed. It stays if a topic has no handler, or with
//!   [`keep_outbox`](super::Router::keep_outbox).
//! - After the last failed attempt, the record with its remaining messages becomes a dead letter like any change, and
//!   also stays in the outbox.
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
use crate::tx::part::{CommitId, Part, PartWrite, Rejection, SinglePart, SinglePartResult};
use crate::tx::session::{Changes, PartContext};

/// Maximum bytes of a topic.
pub const TOPIC_BYTES_MAX: usize = 255;

/// The body of a message is in a map in the list of messages.
const LEVELS_ABOVE_BODY: usize = 2;

const TOPIC: &str = "topic";
const BODY: &str = "body";

/// The messages of one commit. Written by [`Tx::outbox`](crate::Tx::outbox) only.
#[derive(Clone, Debug, PartialEq, crate::Model)]
#[model(crate = "crate", table = "floe_outbox", stream)]
pub struct OutboxRecord {
    /// The id of the commit, which is also the stamp (`_tx`) on every item that the commit wrote.
    #[model(key)]
    pub id: String,
    /// When the commit was sent, by the engine's clock.
    pub created: Timestamp,
    /// The messages, in the order in which the body of the transaction wrote them.
    pub messages: Vec<OutboxMessage>,
}

/// A message in the outbox.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OutboxMessage {
    /// The topic, which selects handlers: 1 to 255 bytes without control characters.
    pub topic: String,
    /// The content, as stored by [`to_value`](crate::attribute::document::to_value).
    pub body: Value,
}

impl OutboxMessage {
    /// Creates a message of this topic.
    pub(crate) fn new<T: Serialize + ?Sized>(topic: &str, message: &T) -> Result<Self> {
        let invalid =
            |field, invalid: Invalid| Error::invalid(OutboxRecord::SCHEMA.model, field, &invalid);
        check_topic(topic).map_err(|reason| invalid(TOPIC, reason))?;
        let body = to_value_below(message, LEVELS_ABOVE_BODY);
        let body = body.map_err(|reason| invalid("message", reason))?;
        Ok(Self {
            topic: topic.to_owned(),
            // A list cannot omit values, so a `None` message is stored as null.
            body: body.unwrap_or(Value::Null),
        })
    }

    /// Deserializes the content, as the written type or a compatible one.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) if the content does not match the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        from_value(Some(&self.body))
            .map_err(|reason| Error::invalid(OutboxRecord::SCHEMA.model, "message", &reason))
    }
}

fn check_topic(topic: &str) -> Result<(), Invalid> {
    if !(1..=TOPIC_BYTES_MAX).contains(&topic.len()) {
        let bytes = topic.len();
        return Err(Invalid::new(format!(
            "a topic must have 1 to {TOPIC_BYTES_MAX} bytes: bytes={bytes}"
        )));
    }
    if topic.contains(char::is_control) {
        return Err(Invalid::new(format!(
            "a topic must not contain control characters: topic={topic:?}"
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
    /// Writes a message into the [outbox](crate::changes::outbox), in the same commit: it exists if and only if the
    /// transaction commits, once, however often the body runs. Needs the table of [`OutboxRecord`].
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the topic does not have 1 to 255 bytes or contains control
    /// characters, or if the message cannot be stored; the error contains the path in the message.
    pub fn outbox<T: Serialize + ?Sized>(&self, topic: &str, message: &T) -> Result<()> {
        let message = OutboxMessage::new(topic, message)?;
        let session = self.session();
        session.with(|Messages(messages): &mut Messages| messages.push(message))
    }
}

/// The messages of one run of a body, in order.
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

/// The outbox's part of a commit: one record with all messages, keyed by the id of the commit.
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

    fn condition_failed(&self, at: usize, item: Option<&Item>) -> Rejection {
        self.record.condition_failed(at, item)
    }

    fn items(&self) -> Vec<ErrorItem> {
        self.record.items()
    }

    fn send_single<'a>(&'a mut self, alone: SinglePart<'a>) -> Option<SinglePartResult<'a>> {
        self.record.send_single(alone)
    }
}
