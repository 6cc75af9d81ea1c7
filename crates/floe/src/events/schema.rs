//! What is stored: the items of an events table, attribute by attribute. No other file knows these letters.
//!
//! A stream is one or more items under the same `p`. All but the last are calved batches, which never change. The last
//! is the Tip: every event enters the stream through it.
//!
//! | attribute | type | on | what it is |
//! |---|---|---|---|
//! | `p` | S | both | the name of the stream: the partition key |
//! | `i` | N | both | the sort key: 2147483647 on the Tip, the index of its first event on a batch |
//! | `n` | N | both | the index of the next event; on the Tip that is the version of the stream |
//! | `e` | L | both | the events, each a map |
//! | `c` | L | both | the types of the events, by position |
//! | `u` | L | both | the unfolds, each a map; none on a batch |
//! | `a` | N | Tip | how many events the last write has appended |
//! | `b` | N | Tip | what the events in calved batches weigh |
//! | `etag` | S | Tip | another one with each write |
//!
//! | in an event | in an unfold | type | what it is |
//! |---|---|---|---|
//! | | `i` | N | the version of the stream that it was made of |
//! | | `c` | S | its type |
//! | `t` | `t` | S | when it was written, as ISO 8601 |
//! | `d`, `D` | `d`, `D` | B, N | what it says, and how that is encoded; absent where there is nothing |
//! | `m`, `M` | `m`, `M` | B, N | what is told besides, and how that is encoded |
//! | `x` | | S | what it belongs to: its correlation |
//! | `y` | | S | what brought it about: its causation |
//!
//! Equinox writes the same items in two dialects, and both are read. Its F# library leaves out empty lists and the
//! encoding 0; its JavaScript library writes them, and cannot read an item without `u`. So `u` is always written.
//!
//! An event that moves from the Tip into a batch is moved as it is, whoever has written it.

use floe_store::{Item, Name, Number, Text, Timestamp, Value};

use super::codec::{self, Body, Compression, Encoding};
use super::event::{EventData, Recorded};
use super::name::StreamName;
use super::time;
use crate::error::{Error, ErrorKind, Result};

/// `i` of the Tip.
pub(crate) const TIP_INDEX: u64 = 2_147_483_647;

pub(crate) const STREAM: Name = Name::new_static("p");
pub(crate) const INDEX: Name = Name::new_static("i");
pub(crate) const NEXT: Name = Name::new_static("n");
pub(crate) const EVENTS: Name = Name::new_static("e");
pub(crate) const CASES: Name = Name::new_static("c");
pub(crate) const UNFOLDS: Name = Name::new_static("u");
pub(crate) const APPENDED: Name = Name::new_static("a");
pub(crate) const CALVED_BYTES: Name = Name::new_static("b");
pub(crate) const ETAG: Name = Name::new_static("etag");

const TIME: Name = Name::new_static("t");
const DATA: Name = Name::new_static("d");
const DATA_ENCODING: Name = Name::new_static("D");
const META: Name = Name::new_static("m");
const META_ENCODING: Name = Name::new_static("M");
const CORRELATION: Name = Name::new_static("x");
const CAUSATION: Name = Name::new_static("y");

/// What an event weighs besides its text and its bodies.
const EVENT_BYTES: usize = 40;
/// What an unfold weighs besides its text and its bodies.
const UNFOLD_BYTES: usize = 50;

/// The key of an item of a stream.
pub(crate) fn key(stream: &StreamName, index: u64) -> Item {
    Item::with_capacity(2)
        .with(STREAM, Value::S(stream.text().clone()))
        .with(INDEX, Number::from(index))
}

/// An event as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredEvent {
    case: Text,
    fields: Item,
}

impl StoredEvent {
    pub(crate) fn new(event: EventData, time: Timestamp, compression: Compression) -> Self {
        let mut fields = body_fields(time, event.data, event.meta, compression);
        for (name, id) in [
            (CORRELATION, event.correlation_id),
            (CAUSATION, event.causation_id),
        ] {
            if let Some(id) = id.filter(|id| !id.is_empty()) {
                fields.insert(name, id);
            }
        }
        Self {
            case: Text::from(event.event_type.as_str()),
            fields,
        }
    }

    /// What it weighs in the model that calving goes by.
    pub(crate) fn bytes(&self) -> usize {
        let text = |name: &Name| {
            self.fields
                .get(name)
                .and_then(Value::as_s)
                .map_or(0, str::len)
        };
        self.case.len()
            + bodies_bytes(&self.fields)
            + text(&CORRELATION)
            + text(&CAUSATION)
            + EVENT_BYTES
    }

    /// The name of its type.
    pub(crate) const fn case(&self) -> &Text {
        &self.case
    }

    /// What was appended, at this place.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when it is not as described above.
    pub(crate) fn recorded(&self, index: u64) -> Result<Recorded> {
        let text =
            |name: Name| optional(&self.fields, &name, Value::as_s).map(|id| id.map(str::to_owned));
        let (data, meta) = bodies(&self.fields)?;
        Ok(Recorded {
            index,
            time: time_of(&self.fields)?,
            event: EventData {
                event_type: self.case.to_string(),
                data,
                meta,
                correlation_id: text(CORRELATION)?,
                causation_id: text(CAUSATION)?,
            },
            is_unfold: false,
        })
    }
}

/// An unfold as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredUnfold(Item);

impl StoredUnfold {
    /// An unfold of the stream at this version.
    pub(crate) fn new(
        unfold: EventData,
        version: u64,
        time: Timestamp,
        compression: Compression,
    ) -> Self {
        let fields = body_fields(time, unfold.data, unfold.meta, compression);
        let fields = fields.with(INDEX, Number::from(version));
        Self(fields.with(CASES, unfold.event_type))
    }

    /// What it weighs in the model that calving goes by.
    pub(crate) fn bytes(&self) -> usize {
        let case = self.0.get(&CASES).and_then(Value::as_s).map_or(0, str::len);
        case + bodies_bytes(&self.0) + UNFOLD_BYTES
    }

    /// What was kept.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when it is not as described above.
    pub(crate) fn recorded(&self) -> Result<Recorded> {
        let (data, meta) = bodies(&self.0)?;
        let case = required(&self.0, &CASES, Value::as_s)?;
        Ok(Recorded {
            index: required(&self.0, &INDEX, whole_number)?,
            time: time_of(&self.0)?,
            event: EventData {
                event_type: case.to_owned(),
                data,
                meta,
                ..EventData::default()
            },
            is_unfold: true,
        })
    }
}

/// One item of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Batch {
    pub(crate) stream: StreamName,
    /// Its sort key.
    pub(crate) index: u64,
    /// The index of the event after its last.
    pub(crate) next: u64,
    pub(crate) events: Vec<StoredEvent>,
    pub(crate) unfolds: Vec<StoredUnfold>,
    pub(crate) appended: u64,
    pub(crate) calved_bytes: u64,
    pub(crate) etag: Option<Text>,
}

impl Batch {
    pub(crate) const fn is_tip(&self) -> bool {
        self.index == TIP_INDEX
    }

    /// The index of its first event, or of the next one if it has none.
    pub(crate) fn base(&self) -> u64 {
        self.next - self.events.len() as u64
    }

    /// Its events with their places, the oldest first.
    pub(crate) fn indexed(&self) -> impl DoubleEndedIterator<Item = (u64, &StoredEvent)> {
        (self.base()..)
            .zip(&self.events)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// What was appended at this place of it.
    ///
    /// # Errors
    ///
    /// As for [`StoredEvent::recorded`], with the place.
    pub(crate) fn recorded(&self, index: u64, event: &StoredEvent) -> Result<Recorded> {
        event
            .recorded(index)
            .map_err(|error| self.misplaced(&error, index))
    }

    /// What was kept beside its events.
    ///
    /// # Errors
    ///
    /// As for [`StoredUnfold::recorded`], with the place.
    pub(crate) fn recorded_unfold(&self, unfold: &StoredUnfold) -> Result<Recorded> {
        unfold
            .recorded()
            .map_err(|error| self.misplaced(&error, self.next))
    }

    fn misplaced(&self, error: &Error, index: u64) -> Error {
        let stream = &self.stream;
        invalid(&format!("{error} stream={stream} index={index}"))
    }

    /// The item of this batch.
    pub(crate) fn into_item(self) -> Item {
        let is_tip = self.is_tip();
        let (cases, events) = lists_of(self.events);
        let mut item = key(&self.stream, self.index)
            .with(NEXT, Number::from(self.next))
            .with(EVENTS, events)
            .with(CASES, cases)
            .with(UNFOLDS, unfolds_of(self.unfolds));
        if is_tip {
            item.insert(APPENDED, Number::from(self.appended));
            item.insert(CALVED_BYTES, Number::from(self.calved_bytes));
        }
        if let Some(etag) = self.etag {
            item.insert(ETAG, Value::S(etag));
        }
        item
    }

    /// The batch of this item, in whichever dialect.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when it is not as described above.
    pub(crate) fn of_item(item: &Item) -> Result<Self> {
        Self::read(item).map_err(|error| {
            let part = |name: &Name| {
                item.get(name)
                    .map_or_else(|| "none".to_owned(), |value| format!("{value:?}"))
            };
            Error::new(
                ErrorKind::InvalidEvent,
                format!("{error} stream={} i={}", part(&STREAM), part(&INDEX)),
            )
        })
    }

    fn read(item: &Item) -> Result<Self> {
        let cases = list(item, &CASES)?;
        let events = list(item, &EVENTS)?;
        if cases.len() != events.len() {
            let counts = format!("types={} events={}", cases.len(), events.len());
            return Err(invalid(&format!("not as many types as events: {counts}")));
        }
        let events: Result<Vec<_>> = cases
            .iter()
            .zip(events)
            .map(|(case, event)| stored_event(case, event))
            .collect();
        let unfolds: Result<Vec<_>> = list(item, &UNFOLDS)?.iter().map(stored_unfold).collect();
        let batch = Self {
            stream: StreamName::parse(required(item, &STREAM, Value::as_s)?)?,
            index: required(item, &INDEX, whole_number)?,
            next: required(item, &NEXT, whole_number)?,
            events: events?,
            unfolds: unfolds?,
            appended: optional(item, &APPENDED, whole_number)?.unwrap_or_default(),
            calved_bytes: optional(item, &CALVED_BYTES, whole_number)?.unwrap_or_default(),
            etag: optional(item, &ETAG, Value::as_s)?.map(Text::from),
        };
        match batch.next.checked_sub(batch.events.len() as u64) {
            Some(base) if batch.is_tip() || base == batch.index => Ok(batch),
            _ => Err(invalid(&format!(
                "the indexes do not fit the number of events: n={} events={}",
                batch.next,
                batch.events.len()
            ))),
        }
    }
}

/// The lists of types and of events.
pub(crate) fn lists_of(events: Vec<StoredEvent>) -> (Value, Value) {
    let (cases, events) = events
        .into_iter()
        .map(|event| (Value::S(event.case), Value::M(event.fields)))
        .unzip();
    (Value::L(cases), Value::L(events))
}

/// The list of unfolds.
pub(crate) fn unfolds_of(unfolds: Vec<StoredUnfold>) -> Value {
    Value::L(
        unfolds
            .into_iter()
            .map(|unfold| Value::M(unfold.0))
            .collect(),
    )
}

fn body_fields(time: Timestamp, data: Vec<u8>, meta: Vec<u8>, compression: Compression) -> Item {
    let mut fields = Item::with_capacity(4).with(TIME, time::to_text(time));
    for (bytes, body, encoding) in [(data, DATA, DATA_ENCODING), (meta, META, META_ENCODING)] {
        if bytes.is_empty() {
            continue;
        }
        let stored = Body::encode(bytes, compression);
        fields.insert(body, Value::B(stored.bytes));
        if stored.encoding != Encoding::Raw {
            fields.insert(encoding, Number::from(stored.encoding.number()));
        }
    }
    fields
}

fn bodies_bytes(fields: &Item) -> usize {
    let bytes = |name: &Name| {
        fields
            .get(name)
            .and_then(Value::as_b)
            .map_or(0, <[u8]>::len)
    };
    bytes(&DATA) + bytes(&META)
}

fn bodies(fields: &Item) -> Result<(Vec<u8>, Vec<u8>)> {
    let body = |body: &Name, encoding: &Name| {
        let Some(stored) = optional(fields, body, Value::as_b)? else {
            return Ok(Vec::new());
        };
        let number = optional(fields, encoding, whole_number)?.unwrap_or_default();
        let known = Encoding::of_number(number)
            .ok_or_else(|| invalid(&format!("an encoding that nobody knows: encoding={number}")))?;
        codec::decode(known, stored)
    };
    Ok((body(&DATA, &DATA_ENCODING)?, body(&META, &META_ENCODING)?))
}

fn time_of(fields: &Item) -> Result<Timestamp> {
    let text = required(fields, &TIME, Value::as_s)?;
    time::from_text(text).ok_or_else(|| invalid(&format!("not a moment: t={text}")))
}

fn stored_event(case: &Value, event: &Value) -> Result<StoredEvent> {
    match (case, event) {
        (Value::S(case), Value::M(fields)) => Ok(StoredEvent {
            case: case.clone(),
            fields: fields.clone(),
        }),
        _ => Err(invalid("an event is a map, and its type is text:")),
    }
}

fn stored_unfold(unfold: &Value) -> Result<StoredUnfold> {
    match unfold {
        Value::M(fields) => Ok(StoredUnfold(fields.clone())),
        _ => Err(invalid("an unfold is a map:")),
    }
}

/// A list, which may be missing where it is empty.
fn list<'i>(item: &'i Item, name: &Name) -> Result<&'i [Value]> {
    Ok(optional(item, name, Value::as_l)?.unwrap_or_default())
}

fn whole_number(value: &Value) -> Option<u64> {
    value.as_n().and_then(|number| number.to_u64())
}

fn required<'i, T>(
    item: &'i Item,
    name: &Name,
    read: impl Fn(&'i Value) -> Option<T>,
) -> Result<T> {
    optional(item, name, read)?
        .ok_or_else(|| invalid(&format!("an attribute is missing: attribute={name}")))
}

fn optional<'i, T>(
    item: &'i Item,
    name: &Name,
    read: impl Fn(&'i Value) -> Option<T>,
) -> Result<Option<T>> {
    match item.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(invalid(&format!(
                "an attribute is of another type: attribute={name}"
            ))),
        },
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidEvent, message)
}
