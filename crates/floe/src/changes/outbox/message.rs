//! Messages of the outbox as handlers get them, and the topics that they ask for.

use std::fmt;
use std::sync::Arc;

use floe_store::Timestamp;
use serde::de::DeserializeOwned;

use super::{OutboxMessage, OutboxRecord};
use crate::error::Result;

/// A message of the outbox, on its way to a handler.
///
/// It may come twice. Who must not act twice remembers the [id](Message::id).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// The id of the commit that has written it.
    pub commit: Arc<str>,
    /// Its place among the messages of the commit.
    pub place: usize,
    /// What it is about.
    pub topic: String,
    /// When the commit was sent.
    pub created: Timestamp,
    message: Arc<OutboxMessage>,
}

impl Message {
    /// An id that no other message has, and that stays the same when the message comes again.
    pub fn id(&self) -> String {
        format!("{}-{}", self.commit, self.place)
    }

    /// What it says, as the type that was written, or one that is read from the same document.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the message is of another form.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        self.message.read()
    }

    /// What it says, as it is stored.
    pub fn body(&self) -> &floe_store::Value {
        &self.message.body
    }

    /// The messages of a record.
    pub(in crate::changes) fn all_of(record: OutboxRecord) -> Vec<Self> {
        let commit: Arc<str> = record.id.into();
        let messages = record.messages.into_iter().enumerate();
        messages
            .map(|(place, message)| Self {
                commit: commit.clone(),
                place,
                topic: message.topic.clone(),
                created: record.created,
                message: Arc::new(message),
            })
            .collect()
    }
}

/// Which topics of the outbox are meant.
///
/// From text: one topic, or all that begin so if it ends in `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    One(String),
    Prefix(String),
}

impl Topics {
    /// This topic, whatever it ends in.
    pub fn one(topic: impl Into<String>) -> Self {
        Self(Form::One(topic.into()))
    }

    /// All topics that begin so.
    pub fn prefix(prefix: impl Into<String>) -> Self {
        Self(Form::Prefix(prefix.into()))
    }

    /// Every topic.
    pub fn all() -> Self {
        Self::prefix("")
    }

    /// Whether the topic is meant.
    pub fn has(&self, topic: &str) -> bool {
        match &self.0 {
            Form::One(one) => one == topic,
            Form::Prefix(prefix) => topic.starts_with(prefix.as_str()),
        }
    }
}

impl From<&str> for Topics {
    fn from(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) => Self::prefix(prefix),
            None => Self::one(text),
        }
    }
}

impl fmt::Display for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::One(topic) => f.write_str(topic),
            Form::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}
