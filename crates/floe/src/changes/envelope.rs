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
use floe_store::json::{RecordForm, Writer, write_record};
use serde_json::Value as Json;

use super::change::Change;

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
        parsed(&self.detail_text())
    }

    /// The whole event.
    pub fn to_json(&self) -> Json {
        parsed(&self.text())
    }

    /// The event without the record.
    pub(super) fn head(&self) -> Json {
        parsed(&text(|w| self.write(w, Sight::Head)))
    }

    /// The text of the whole event.
    pub(super) fn text(&self) -> String {
        text(|w| self.write(w, Sight::Whole))
    }

    /// The text of what the envelope tells.
    pub(super) fn detail_text(&self) -> String {
        text(|w| self.write_detail(w, Sight::Whole))
    }

    fn write(&self, w: &mut Writer, sight: Sight) {
        let change = &self.change;
        w.object(|w| {
            w.name("version").string("0");
            w.name("id").string(change.event_id());
            w.name("source").string(self.source());
            w.name("detail-type").string(change.kind().as_str());
            w.name("time").string(&change.time().to_iso());
            w.name("resources").array(|w| w.string(change.table()));
            self.write_detail(w.name("detail"), sight);
        });
    }

    fn write_detail(&self, w: &mut Writer, sight: Sight) {
        w.object(|w| {
            for (name, text) in [("pk_type", self.pk_type()), ("sk_type", self.sk_type())] {
                if let Some(text) = text {
                    w.name(name).string(text);
                }
            }
            if sight == Sight::Whole {
                write_record(w.name("record"), self.change.record(), &RecordForm::LAMBDA);
            }
        });
    }
}

/// How much of an envelope is there to be seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// All but the record: what is said of that may be true.
    Head,
    Whole,
}

fn text(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::with_capacity(512);
    write(&mut writer);
    writer.into_text()
}

fn parsed(text: &str) -> Json {
    // What a writer has written can be read.
    serde_json::from_str(text).unwrap_or_default()
}

fn type_of(key: &Value) -> Option<&str> {
    key.as_s()?.split('#').next()
}
