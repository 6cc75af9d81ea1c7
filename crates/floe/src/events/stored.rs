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
//! An event that moves from the Tip into a batch is moved as it is, whoever has written it. What was read stays in its item
//! until somebody looks at it.

mod added;
mod event;
mod events;

use floe_store::item::ValueRef;
use floe_store::{Item, Name, Number, Text, Value, ValueType};

use super::event::Recorded;
use super::keys::StreamName;
use crate::error::{Error, ErrorKind, Result};

pub(crate) use event::{EventView, StoredEvent, StoredUnfold, Weight};
pub(crate) use events::{Events, lists_of};

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

/// The key of an item of a stream.
pub(crate) fn key(stream: &StreamName, index: u64) -> Item {
    Item::with_capacity(2)
        .with(INDEX, Number::from(index))
        .with(STREAM, Value::S(stream.text().clone()))
}

/// One item of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) stream: StreamName,
    /// Its sort key.
    pub(crate) index: u64,
    /// The index of the event after its last.
    pub(crate) next: u64,
    pub(crate) events: Events,
    pub(crate) unfolds: Vec<StoredUnfold>,
    pub(crate) appended: u64,
    pub(crate) calved_bytes: u64,
    pub(crate) etag: Option<Text>,
}

impl Batch {
    /// A batch of these events, which never changes.
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

    /// Its events from this index on, with their places, the oldest first.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when one of them is none.
    pub(crate) fn since(&self, index: u64) -> Result<Vec<(u64, EventView<'_>)>> {
        let start = index.clamp(self.base(), self.next);
        let place = usize::try_from(start - self.base()).unwrap_or(usize::MAX);
        let events = self.events.since(place);
        let events = events.map_err(|error| self.misplaced(&error, start))?;
        Ok((start..).zip(events).collect())
    }

    /// What was appended at this place of it.
    ///
    /// # Errors
    ///
    /// As for [`EventView::recorded`], with the place.
    pub(crate) fn recorded(&self, index: u64, event: &EventView<'_>) -> Result<Recorded> {
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
        let message = format!("{error} stream={stream} index={index}");
        Error::new(error.kind(), message)
    }

    /// The item of this batch.
    pub(crate) fn into_item(self) -> Item {
        let (cases, events) = self.events.lists();
        let mut item = Item::with_capacity(9);
        if self.is_tip() {
            item.insert(APPENDED, Number::from(self.appended));
            item.insert(CALVED_BYTES, Number::from(self.calved_bytes));
        }
        item.insert(CASES, cases);
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

    /// The batch of this item, in whichever dialect.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when it is not as described above.
    pub(crate) fn of_item(item: Item) -> Result<Self> {
        match Fields::of(&item).read() {
            Ok((batch, count)) => Ok(Self {
                events: Events::of_item(item, count),
                ..batch
            }),
            Err(error) => {
                let part = |name: &Name| match item.get(name) {
                    Some(value) => format!("{value:?}"),
                    None => "none".to_owned(),
                };
                let place = format!("stream={} i={}", part(&STREAM), part(&INDEX));
                Err(invalid(&format!("{error} {place}")))
            }
        }
    }
}

/// What there is in an item.
#[derive(Default)]
struct Fields<'i> {
    stream: Option<ValueRef<'i>>,
    index: Option<ValueRef<'i>>,
    next: Option<ValueRef<'i>>,
    events: Option<ValueRef<'i>>,
    cases: Option<ValueRef<'i>>,
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
                "c" => &mut fields.cases,
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

    /// The batch without its events, and how many it has.
    fn read(&self) -> Result<(Batch, usize)> {
        // A list may be missing where it is empty.
        let count = |name: &Name, list| {
            let elements = optional(name, list, ValueRef::elements)?;
            Ok::<_, Error>(elements.map_or(0, |elements| elements.len()))
        };
        let (cases, events) = (count(&CASES, self.cases)?, count(&EVENTS, self.events)?);
        if cases != events {
            let counts = format!("types={cases} events={events}");
            return Err(invalid(&format!("not as many types as events: {counts}")));
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
                "the indexes do not fit the number of events: {counts}"
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

/// A value that may be missing, or null, which is the same.
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
            "an attribute is of another type: attribute={name}"
        ))),
    }
}

fn missing(name: &str) -> Error {
    invalid(&format!("an attribute is missing: attribute={name}"))
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidEvent, message)
}
