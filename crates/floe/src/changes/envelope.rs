//! The envelope of a change: the event that Amazon EventBridge carries, and that patterns and sinks see.
//!
//! ```json
//! {
//!   "version": "0",
//!   "id": "<the id of the change>",
//!   "source": "klayers",
//!   "detail-type": "REMOVE",
//!   "time": "2026-11-17T09:30:00.000Z",
//!   "resources": ["klayers"],
//!   "detail": {
//!     "pk_type": "lyr",
//!     "sk_type": "lyrVrsn",
//!     "record": { "eventID": "..", "eventName": "REMOVE", "dynamodb": { "Keys": { "pk": { "S": ".." } }, .. } }
//!   }
//! }
//! ```
//!
//! `pk_type` and `sk_type` are the text of the partition and of the sort key before the first `#`; a key that is no text
//! has none. `record` is the change as Lambda is told of it. The bus itself adds account and region.

use std::sync::Arc;

use floe_store::Value;
use serde_json::{Map, Value as Json};

use super::change::Change;
use super::json;
use crate::events::time;

/// A change, and the source that it is told under.
#[derive(Clone, Debug)]
pub struct Envelope {
    source: Arc<str>,
    change: Change,
}

impl Envelope {
    /// The envelope of a change under this source.
    pub fn new(source: impl Into<Arc<str>>, change: Change) -> Self {
        Self {
            source: source.into(),
            change,
        }
    }

    /// Who tells of the change.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The change.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// The text of the partition key before its first `#`.
    pub fn pk_type(&self) -> Option<&str> {
        type_of(self.change.partition_key()?)
    }

    /// The text of the sort key before its first `#`.
    pub fn sk_type(&self) -> Option<&str> {
        type_of(self.change.sort_key()?)
    }

    /// What the envelope tells.
    pub fn detail(&self) -> Json {
        let mut detail = self.head_of_detail();
        detail.insert("record".to_owned(), json::record(self.change.record()));
        Json::Object(detail)
    }

    /// The whole event.
    pub fn to_json(&self) -> Json {
        self.event(self.detail())
    }

    /// The event without the record.
    pub(super) fn head(&self) -> Json {
        self.event(Json::Object(self.head_of_detail()))
    }

    fn head_of_detail(&self) -> Map<String, Json> {
        let types = [("pk_type", self.pk_type()), ("sk_type", self.sk_type())];
        let types = types.into_iter();
        types
            .filter_map(|(name, text)| Some((name.to_owned(), Json::from(text?))))
            .collect()
    }

    fn event(&self, detail: Json) -> Json {
        let change = &self.change;
        let fields = [
            ("version", Json::from("0")),
            ("id", change.event_id().into()),
            ("source", self.source().into()),
            ("detail-type", change.kind().as_str().into()),
            ("time", time::to_text(change.time()).as_str().into()),
            ("resources", Json::from_iter([change.table()])),
            ("detail", detail),
        ];
        Json::from_iter(fields)
    }
}

fn type_of(key: &Value) -> Option<&str> {
    key.as_s()?.split('#').next()
}
