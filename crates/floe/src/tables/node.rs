//! JSON that keeps the order of its keys, regardless of the features of `serde_json`.

use serde::{Serialize, Serializer};

use crate::error::{Error, ErrorKind, Result};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Flag(bool),
    Number(i64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A list of texts.
    pub(crate) fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    /// A map with these keys.
    pub(crate) fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let entries = entries.into_iter().map(|(key, node)| (key.into(), node));
        Self::Map(entries.collect())
    }

    /// The text of the document, over several lines and with a newline at its end.
    pub(crate) fn write(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self);
        let text = text
            .map_err(|e| Error::new(ErrorKind::Table, format!("cannot write JSON: cause={e}")))?;
        Ok(text + "\n")
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(nodes) => serializer.collect_seq(nodes),
            Self::Map(entries) => serializer.collect_map(entries.iter().map(|(k, v)| (k, v))),
        }
    }
}
