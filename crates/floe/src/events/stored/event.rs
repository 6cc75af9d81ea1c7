//! Events and unfolds in their stored format: encoded for writing, and read in place.

use std::iter::Sum;
use std::ops::Add;
use std::sync::Arc;

use floe_store::item::{Attributes, ValueRef};
use floe_store::size::{CONTAINER_BYTES, ENTRY_BYTES, attribute_size};
use floe_store::{Item, Number, Text, Timestamp, Value};

use super::{
    CAUSATION, CORRELATION, DATA, DATA_ENCODING, EVENT_TYPES, INDEX, META, META_ENCODING, TIME,
    invalid, missing, optional, whole_number,
};
use crate::error::Result;
use crate::events::codec::{self, Body, Compression, Encoding};
use crate::events::event::{EventData, Recorded};

/// Estimated size of an event besides its texts and bodies.
const EVENT_BYTES: usize = 40;
/// Estimated size of an unfold besides its texts and bodies.
const UNFOLD_BYTES: usize = 50;

/// The size of events or unfolds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// The estimate that limits of a Tip are compared with.
    pub(crate) estimate: usize,
    /// Their share of the item size, as DynamoDB computes it.
    pub(crate) item: usize,
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            estimate: self.estimate + other.estimate,
            item: self.item + other.item,
        }
    }
}

impl Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), Add::add)
    }
}

/// An event in its stored format. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct StoredEvent(Arc<EventContent>);

#[derive(Debug)]
struct EventContent {
    event_type: Text,
    fields: Item,
    size: Size,
}

impl PartialEq for StoredEvent {
    fn eq(&self, other: &Self) -> bool {
        self.0.event_type == other.0.event_type && self.0.fields == other.0.fields
    }
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
        Self::of(Text::from(event.event_type), fields)
    }

    fn of(event_type: Text, fields: Item) -> Self {
        let size = Size {
            estimate: event_type.len()
                + EVENT_BYTES
                + fields.value_refs().map(estimated_bytes).sum::<usize>(),
            item: 2 * ENTRY_BYTES + event_type.len() + map_bytes(&fields),
        };
        Self(Arc::new(EventContent {
            event_type,
            fields,
            size,
        }))
    }

    pub(crate) fn size(&self) -> Size {
        self.0.size
    }

    pub(crate) fn event_type(&self) -> &Text {
        &self.0.event_type
    }

    /// Its element of the list of events.
    pub(crate) fn fields(&self) -> &Item {
        &self.0.fields
    }

    /// Returns a view for reading.
    pub(crate) fn view(&self) -> EventView<'_> {
        EventView {
            event_type: self.event_type(),
            fields: self.0.fields.value_refs(),
        }
    }
}

/// A borrowed event in its stored format.
#[derive(Clone)]
pub(crate) struct EventView<'i> {
    event_type: &'i str,
    fields: Attributes<'i>,
}

impl<'i> EventView<'i> {
    /// Creates a view of an event from elements of both lists.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) if the type is not text or the event is not a map.
    pub(super) fn of(event_type: ValueRef<'i>, fields: ValueRef<'i>) -> Result<Self> {
        match (event_type.as_s(), fields.attributes()) {
            (Some(event_type), Some(fields)) => Ok(Self { event_type, fields }),
            _ => Err(invalid("an event must be a map, and its type text:")),
        }
    }

    pub(super) fn size(&self) -> Size {
        let mut size = Size {
            estimate: self.event_type.len() + EVENT_BYTES,
            item: 2 * ENTRY_BYTES + self.event_type.len() + CONTAINER_BYTES,
        };
        for (name, value) in self.fields.clone() {
            size.estimate += estimated_bytes((name, value));
            size.item += ENTRY_BYTES + name.len() + value.size();
        }
        size
    }

    /// Copies the event.
    pub(crate) fn to_stored(&self) -> StoredEvent {
        let fields = self.fields.clone();
        let fields = fields
            .map(|(name, value)| (name, value.to_value()))
            .collect();
        StoredEvent::of(Text::from(self.event_type), fields)
    }

    /// Decodes the event.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) if it does not have the stored format.
    pub(crate) fn recorded(&self, index: u64) -> Result<Recorded> {
        let fields = Fields::of(self.fields.clone());
        let text = |name, id: Option<ValueRef<'_>>| {
            optional(name, id, ValueRef::as_s).map(|id| id.map(str::to_owned))
        };
        Ok(Recorded {
            index,
            time: fields.timestamp()?,
            event: EventData {
                event_type: self.event_type.to_owned(),
                data: fields.data()?,
                meta: fields.meta()?,
                correlation_id: text(&CORRELATION, fields.correlation)?,
                causation_id: text(&CAUSATION, fields.causation)?,
            },
            is_unfold: false,
        })
    }
}

/// An unfold in its stored format.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredUnfold(Item);

impl StoredUnfold {
    /// Encodes an unfold created from this version of the stream.
    pub(crate) fn new(
        unfold: EventData,
        version: u64,
        time: Timestamp,
        compression: Compression,
    ) -> Self {
        let mut fields = body_fields(time, unfold.data, unfold.meta, compression);
        fields.insert(INDEX, Number::from(version));
        fields.insert(EVENT_TYPES, unfold.event_type);
        Self(fields)
    }

    /// Copies an element of the list of unfolds.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) if it is not a map.
    pub(super) fn of(unfold: ValueRef<'_>) -> Result<Self> {
        match unfold.to_value() {
            Value::M(fields) => Ok(Self(fields)),
            _ => Err(invalid("an unfold must be a map:")),
        }
    }

    pub(crate) fn size(&self) -> Size {
        let event_type = self.0.get(&EVENT_TYPES).and_then(Value::as_s);
        let type_bytes = event_type.map_or(0, str::len);
        Size {
            estimate: type_bytes
                + UNFOLD_BYTES
                + self.0.value_refs().map(estimated_bytes).sum::<usize>(),
            item: ENTRY_BYTES + map_bytes(&self.0),
        }
    }

    /// Its element of the list of unfolds.
    pub(crate) const fn fields(&self) -> &Item {
        &self.0
    }

    /// Decodes the unfold.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) if it does not have the stored format.
    pub(crate) fn recorded(&self) -> Result<Recorded> {
        let fields = Fields::of(self.0.value_refs());
        let event_type = optional(&EVENT_TYPES, fields.event_type, ValueRef::as_s)?
            .ok_or_else(|| missing(&EVENT_TYPES))?;
        let index = optional(&INDEX, fields.index, whole_number)?.ok_or_else(|| missing(&INDEX))?;
        Ok(Recorded {
            index,
            time: fields.timestamp()?,
            event: EventData {
                event_type: event_type.to_owned(),
                data: fields.data()?,
                meta: fields.meta()?,
                ..EventData::default()
            },
            is_unfold: true,
        })
    }
}

/// The attributes of an event or an unfold. `data` and `meta` are bodies with their encodings.
#[derive(Default)]
struct Fields<'i> {
    time: Option<ValueRef<'i>>,
    data: (Option<ValueRef<'i>>, Option<ValueRef<'i>>),
    meta: (Option<ValueRef<'i>>, Option<ValueRef<'i>>),
    correlation: Option<ValueRef<'i>>,
    causation: Option<ValueRef<'i>>,
    index: Option<ValueRef<'i>>,
    event_type: Option<ValueRef<'i>>,
}

impl<'i> Fields<'i> {
    fn of(attributes: Attributes<'i>) -> Self {
        let mut fields = Self::default();
        for (name, value) in attributes {
            let field = match name {
                "t" => &mut fields.time,
                "d" => &mut fields.data.0,
                "D" => &mut fields.data.1,
                "m" => &mut fields.meta.0,
                "M" => &mut fields.meta.1,
                "x" => &mut fields.correlation,
                "y" => &mut fields.causation,
                "i" => &mut fields.index,
                "c" => &mut fields.event_type,
                _ => continue,
            };
            *field = Some(value);
        }
        fields
    }

    fn timestamp(&self) -> Result<Timestamp> {
        let text = optional(&TIME, self.time, ValueRef::as_s)?.ok_or_else(|| missing(&TIME))?;
        Timestamp::from_iso(text)
            .ok_or_else(|| invalid(&format!("the time is not an ISO 8601 timestamp: t={text}")))
    }

    fn data(&self) -> Result<Vec<u8>> {
        body([&DATA, &DATA_ENCODING], self.data)
    }

    fn meta(&self) -> Result<Vec<u8>> {
        body([&META, &META_ENCODING], self.meta)
    }
}

fn body(
    [name, encoding_name]: [&str; 2],
    (stored, encoding): (Option<ValueRef<'_>>, Option<ValueRef<'_>>),
) -> Result<Vec<u8>> {
    let Some(stored) = optional(name, stored, ValueRef::as_b)? else {
        return Ok(Vec::new());
    };
    let number = optional(encoding_name, encoding, whole_number)?.unwrap_or_default();
    let encoding = Encoding::of_number(number).ok_or_else(|| {
        invalid(&format!(
            "the encoding of a body is unknown: encoding={number}"
        ))
    })?;
    codec::decode(encoding, stored)
}

/// Estimated size of a field: only bodies and ids count.
fn estimated_bytes((name, value): (&str, ValueRef<'_>)) -> usize {
    match name {
        "d" | "m" => value.as_b().map_or(0, <[u8]>::len),
        "x" | "y" => value.as_s().map_or(0, str::len),
        _ => 0,
    }
}

fn map_bytes(fields: &Item) -> usize {
    let sizes = fields
        .iter()
        .map(|(name, value)| ENTRY_BYTES + attribute_size(name, value));
    CONTAINER_BYTES + sizes.sum::<usize>()
}

fn body_fields(time: Timestamp, data: Vec<u8>, meta: Vec<u8>, compression: Compression) -> Item {
    let mut fields = Item::with_capacity(4);
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
    fields.insert(TIME, time.to_iso());
    fields
}
