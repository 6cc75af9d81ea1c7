//! Outbox messages as passed to handlers, and topic filters.

use std::fmt;
use std::sync::Arc;

use floe_store::Timestamp;
use serde::de::DeserializeOwned;

use super::{OutboxMessage, OutboxRecord};
use crate::error::Result;

/// A message of the outbox, as passed to a handler.
///
/// It may be delivered twice. Handlers that must not act twice store the [id](Message::id).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// The id of the commit that wrote it.
    pub commit: Arc<str>,
    /// The index of the message in the commit.
    pub index: usize,
    /// The topic.
    pub topic: String,
    /// When the commit was sent.
    pub created: Timestamp,
    message: Arc<OutboxMessage>,
}

impl Message {
    /// The unique id of the message. It stays the same on repeated delivery.
    pub fn id(&self) -> String {
        format!("{}-{}", self.commit, self.index)
    }

    /// Deserializes the content, as the written type or a compatible one.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the content does not match the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        self.message.read()
    }

    /// The content as stored.
    pub fn body(&self) -> &floe_store::Value {
        &self.message.body
    }

    /// The messages of a record.
    pub(in crate::changes) fn all_of(record: OutboxRecord) -> Vec<Self> {
        let commit: Arc<str> = record.id.into();
        let messages = record.messages.into_iter().enumerate();
        messages
            .map(|(index, message)| Self {
                commit: commit.clone(),
                index,
                topic: message.topic.clone(),
                created: record.created,
                message: Arc::new(message),
            })
            .collect()
    }
}

/// A filter of outbox topics.
///
/// Converts from text: one topic, or all with a prefix if it ends in `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics(TopicMatch);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TopicMatch {
    Exact(String),
    Prefix(String),
}

impl Topics {
    /// Matches exactly this topic, even if it ends in `*`.
    pub fn one(topic: impl Into<String>) -> Self {
        Self(TopicMatch::Exact(topic.into()))
    }

    /// Matches all topics with this prefix.
    pub fn prefix(prefix: impl Into<String>) -> Self {
        Self(TopicMatch::Prefix(prefix.into()))
    }

    /// Matches every topic.
    pub fn all() -> Self {
        Self::prefix("")
    }

    /// Whether the filter matches the topic.
    pub fn has(&self, topic: &str) -> bool {
        match &self.0 {
            TopicMatch::Exact(one) => one == topic,
            TopicMatch::Prefix(prefix) => topic.starts_with(prefix.as_str()),
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
            TopicMatch::Exact(topic) => f.write_str(topic),
            TopicMatch::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}
