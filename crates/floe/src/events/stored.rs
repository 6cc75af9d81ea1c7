//! The stored format: the items of an events table, attribute by attribute. Only this module knows the attribute names.
//!
//! A stream is one or more items with the same `p`. All but the last are calves, which never change. The last is the
//! Tip, through which every event enters the stream.
//!
//! | attribute | type | items | meaning |
//! |---|---|---|---|
//! | `p` | S | all | the name of the stream: the partition key |
//! | `i` | N | all | the sort key: 2147483647 for the Tip, the index of the first event for a calf |
//! | `n` | N | all | the index of the next event; for the Tip, the version of the stream |
//! | `e` | L | all | the events, each a map |
//! | `c` | L | all | the types of the events, in the same order |
//! | `u` | L | all | the unfolds, each a map; empty for a calf |
//! | `a` | N | Tip | the number of events that the last write appended |
//! | `b` | N | Tip | the estimated size of the events in calves |
//! | `etag` | S | Tip | a new value for each write |
//!
//! | in an event | in an unfold | type | meaning |
//! |---|---|---|---|
//! | | `i` | N | the version of the stream from which it was created |
//! | | `c` | S | its type |
//! | `t` | `t` | S | when it was written, as ISO 8601 |
//! | `d`, `D` | `d`, `D` | B, N | the body and its encoding; absent if empty |
//! | `m`, `M` | `m`, `M` | B, N | the metadata and its encoding; absent if empty |
//! | `x` | | S | the correlation id |
//! | `y` | | S | the causation id |
//!
//! Equinox writes the same items in two dialects, and both can be read. Its F# library omits empty lists and the
//! encoding 0; its JavaScript library writes them, and cannot read an item without `u`. So `u` is always written.
//!
//! Events are moved from the Tip into a calf unchanged, regardless of the program that wrote them. Events that were read
//! stay packed in their item until they are accessed.

mod event;
mod event_list;
mod events;

use floe_store::item::ValueRef;
use floe_store::{Item, Name, Number, Text, Value, ValueType};

use super::event::Recorded;
use super::keys::StreamName;
use crate::error::{Error, ErrorKind, Result};

pub(crate) use event::{EventView, Size, StoredEvent, StoredUnfold};
pub(crate) use events::{Events, lists_of};

/// `i` of the Tip.
pub(crate) const TIP_INDEX: u64 = 2_147_483_647;

pub(crate) const STREAM: Name = Name::new_static("p");
pub(crate) const INDEX: Name = Name::new_static("i");
pub(crate) const NEXT: Name = Name::new_static("n");
pub(crate) const EVENTS: Name = Name::new_static("e");
pub(crate) const EVENT_TYPES: Name = Name::new_static("c");
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

/// The key of an item of a stream.
pub(crate) fn key(stream: &StreamName, index: u64) -> Item {
    Item::with_capacity(2)
        .with(INDEX, Number::from(index))
        .with(STREAM, Value::S(stream.text().clone()))
}

/// An item of a stream: a calf or the Tip.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) stream: StreamName,
    /// Its sort key.
    pub(crate) index: u64,
    /// The index after its last event.
    pub(crate) next: u64,
    pub(crate) events: Events,
    pub(crate) unfolds: Vec<StoredUnfold>,
    pub(crate) appended: u64,
    pub(crate) calved_bytes: u64,
    pub(crate) etag: Option<Text>,
}

impl Batch {
    /// A calf with these events.
    pub(crate) const fn calf(stream: StreamName, index: u64, next: u64, events: Events) -> Self {
        Self {
            stream,
            index,
            next,
            events,
            unfolds: Vec::new(),
            appended: 0,
            calved_bytes: 0,
            etag: None,
        }
    }

    pub(crate) const fn is_tip(&self) -> bool {
        self.index == TIP_INDEX
    }

    /// The index of its first event, or of the next one if it has none.
    pub(crate) fn base(&self) -> u64 {
        self.next - self.events.len() as u64
    }

    /// Returns its events from this index, with their indexes, oldest first.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) if an element of the lists is not an event.
    pub(crate) fn since(&self, index: u64) -> Result<Vec<(u64, EventView<'_>)>> {
        let start = index.clamp(self.base(), self.next);
        let offset = usize::try_from(start - self.base()).unwrap_or(usize::MAX);
        let events = self.events.since(offset);
        let events = events.map_err(|error| self.with_location(&error, start))?;
        Ok((start..).zip(events).collect())
    }

    /// Decodes the event at this index.
    ///
    /// # Errors
    ///
    /// As for [`EventView::recorded`], with stream and index.
    pub(crate) fn recorded(&self, index: u64, event: &EventView<'_>) -> Result<Recorded> {
        event
            .recorded(index)
            .map_err(|error| self.with_location(&error, index))
    }

    /// Decodes one of its unfolds.
    ///
    /// # Errors
    ///
    /// As for [`StoredUnfold::recorded`], with stream and index.
    pub(crate) fn recorded_unfold(&self, unfold: &StoredUnfold) -> Result<Recorded> {
        unfold
            .recorded()
            .map_err(|error| self.with_location(&error, self.next))
    }

    fn with_location(&self, error: &Error, index: u64) -> Error {
        let stream = &self.stream;
        let message = format!("{error} stream={stream} index={index}");
        Error::new(error.kind(), message)
    }

    /// Converts the batch to an item.
    pub(crate) fn into_item(self) -> Item {
        let (types, events) = self.events.lists();
        let mut item = Item::with_capacity(9);
        if self.is_tip() {
            item.insert(APPENDED, Number::from(self.appended));
            item.insert(CALVED_BYTES, Number::from(self.calved_bytes));
        }
        item.insert(EVENT_TYPES, types);
        item.insert(EVENTS, events);
        if let Some(etag) = self.etag {
            item.insert(ETAG, Value::S(etag));
        }
        item.insert(INDEX, Number::from(self.index));
        item.insert(NEXT, Number::from(self.next));
        item.insert(STREAM, Value::S(self.stream.text().clone()));
        item.insert(UNFOLDS, unfolds_of(&self.unfolds));
        item
    }

    /// Parses an item of either dialect.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) if it does not have the format above.
    pub(crate) fn of_item(item: Item) -> Result<Self> {
        match Fields::of(&item).read() {
            Ok((batch, count)) => Ok(Self {
                events: Events::of_item(item, count),
                ..batch
            }),
            Err(error) => {
                let text = |name: &Name| match item.get(name) {
                    Some(value) => format!("{value:?}"),
                    None => "none".to_owned(),
                };
                let location = format!("stream={} i={}", text(&STREAM), text(&INDEX));
                Err(invalid(&format!("{error} {location}")))
            }
        }
    }
}

/// The attributes of an item.
#[derive(Default)]
struct Fields<'i> {
    stream: Option<ValueRef<'i>>,
    index: Option<ValueRef<'i>>,
    next: Option<ValueRef<'i>>,
    events: Option<ValueRef<'i>>,
    types: Option<ValueRef<'i>>,
    unfolds: Option<ValueRef<'i>>,
    appended: Option<ValueRef<'i>>,
    calved_bytes: Option<ValueRef<'i>>,
    etag: Option<ValueRef<'i>>,
}

impl<'i> Fields<'i> {
    fn of(item: &'i Item) -> Self {
        let mut fields = Self::default();
        for (name, value) in item.value_refs() {
            let field = match name {
                "p" => &mut fields.stream,
                "i" => &mut fields.index,
                "n" => &mut fields.next,
                "e" => &mut fields.events,
                "c" => &mut fields.types,
                "u" => &mut fields.unfolds,
                "a" => &mut fields.appended,
                "b" => &mut fields.calved_bytes,
                "etag" => &mut fields.etag,
                _ => continue,
            };
            *field = Some(value);
        }
        fields
    }

    /// Returns the batch without its events, and their number.
    fn read(&self) -> Result<(Batch, usize)> {
        // Some writers omit empty lists.
        let count = |name: &Name, list| {
            let elements = optional(name, list, ValueRef::elements)?;
            Ok::<_, Error>(elements.map_or(0, |elements| elements.len()))
        };
        let (types, events) = (
            count(&EVENT_TYPES, self.types)?,
            count(&EVENTS, self.events)?,
        );
        if types != events {
            let counts = format!("types={types} events={events}");
            return Err(invalid(&format!(
                "the numbers of event types and events differ: {counts}"
            )));
        }
        let unfolds = optional(&UNFOLDS, self.unfolds, ValueRef::elements)?;
        let unfolds: Result<_> = unfolds
            .into_iter()
            .flatten()
            .map(StoredUnfold::of)
            .collect();
        let number = |name: &Name, value| optional(name, value, whole_number);
        let index = number(&INDEX, self.index)?.ok_or_else(|| missing(&INDEX))?;
        let next = number(&NEXT, self.next)?.ok_or_else(|| missing(&NEXT))?;
        let stream =
            optional(&STREAM, self.stream, ValueRef::as_s)?.ok_or_else(|| missing(&STREAM))?;
        let base = next.checked_sub(events as u64);
        if base.is_none_or(|base| index != TIP_INDEX && index != base) {
            let counts = format!("n={next} events={events}");
            return Err(invalid(&format!(
                "the indexes do not match the number of events: {counts}"
            )));
        }
        let batch = Batch {
            stream: StreamName::parse(stream)?,
            index,
            next,
            events: Events::default(),
            unfolds: unfolds?,
            appended: number(&APPENDED, self.appended)?.unwrap_or_default(),
            calved_bytes: number(&CALVED_BYTES, self.calved_bytes)?.unwrap_or_default(),
            etag: optional(&ETAG, self.etag, ValueRef::as_s)?.map(Text::from),
        };
        Ok((batch, events))
    }
}

/// The list of unfolds.
pub(crate) fn unfolds_of(unfolds: &[StoredUnfold]) -> Value {
    let unfolds = unfolds
        .iter()
        .map(|unfold| Value::M(unfold.fields().clone()));
    Value::L(unfolds.collect())
}

fn whole_number(value: ValueRef<'_>) -> Option<u64> {
    value.as_n().and_then(|number| number.to_u64())
}

/// Reads an optional value. Null counts as absent.
fn optional<'i, T>(
    name: &str,
    value: Option<ValueRef<'i>>,
    read: impl Fn(ValueRef<'i>) -> Option<T>,
) -> Result<Option<T>> {
    let Some(value) = value else {
        return Ok(None);
    };
    match read(value) {
        Some(read) => Ok(Some(read)),
        None if value.value_type() == ValueType::Null => Ok(None),
        None => Err(invalid(&format!(
            "an attribute has another type: attribute={name}"
        ))),
    }
}

fn missing(name: &str) -> Error {
    invalid(&format!("an attribute is missing: attribute={name}"))
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidEvent, message)
}
