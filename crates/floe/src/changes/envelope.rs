//! The envelope of a change: the event format of Amazon EventBridge, used by patterns and sinks.
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
//! `pk_type` and `sk_type` are the text of the partition key and the sort key before the first `#`; omitted if the
//! key is not a string. `record` has the format of AWS Lambda events. The bus adds account and region.

use std::sync::Arc;

use floe_store::Value;
use floe_store::json::{RecordForm, Writer, write_record};
use serde_json::Value as Json;

use super::change::Change;

/// A change and the source it is published under.
#[derive(Clone, Debug)]
pub struct Envelope {
    source: Arc<str>,
    change: Change,
}

impl Envelope {
    /// Creates the envelope of a change under this source.
    pub fn new(source: impl Into<Arc<str>>, change: Change) -> Self {
        Self {
            source: source.into(),
            change,
        }
    }

    /// The source of the event.
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

    /// The detail of the event.
    pub fn detail(&self) -> Json {
        parsed(&self.detail_text())
    }

    /// The whole event.
    pub fn to_json(&self) -> Json {
        parsed(&self.text())
    }

    /// The event without the record.
    pub(super) fn head(&self) -> Json {
        parsed(&text(|w| self.write(w, EnvelopePart::Head)))
    }

    /// The event as JSON text.
    pub(super) fn text(&self) -> String {
        text(|w| self.write(w, EnvelopePart::Whole))
    }

    /// The detail as JSON text.
    pub(super) fn detail_text(&self) -> String {
        text(|w| self.write_detail(w, EnvelopePart::Whole))
    }

    fn write(&self, w: &mut Writer, part: EnvelopePart) {
        let change = &self.change;
        w.object(|w| {
            w.name("version").string("0");
            w.name("id").string(change.event_id());
            w.name("source").string(self.source());
            w.name("detail-type").string(change.kind().as_str());
            w.name("time").string(&change.time().to_iso());
            w.name("resources").array(|w| w.string(change.table()));
            self.write_detail(w.name("detail"), part);
        });
    }

    fn write_detail(&self, w: &mut Writer, part: EnvelopePart) {
        w.object(|w| {
            for (name, text) in [("pk_type", self.pk_type()), ("sk_type", self.sk_type())] {
                if let Some(text) = text {
                    w.name(name).string(text);
                }
            }
            if part == EnvelopePart::Whole {
                write_record(w.name("record"), self.change.record(), &RecordForm::LAMBDA);
            }
        });
    }
}

/// A part of an envelope to evaluate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EnvelopePart {
    /// Everything but the record: rules on the record count as possibly true.
    Head,
    Whole,
}

fn text(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::with_capacity(512);
    write(&mut writer);
    writer.into_text()
}

fn parsed(text: &str) -> Json {
    // The text was written by `Writer`, so it parses.
    serde_json::from_str(text).unwrap_or_default()
}

fn type_of(key: &Value) -> Option<&str> {
    key.as_s()?.split('#').next()
}
