//! Events and unfolds as they stand in an item: made to be written, and read where they stand.

use std::iter::Sum;
use std::ops::Add;
use std::sync::Arc;

use floe_store::item::{Attributes, ValueRef};
use floe_store::size::{CONTAINER_BYTES, ENTRY_BYTES, attribute_size};
use floe_store::{Item, Number, Text, Timestamp, Value};

use super::{
    CASES, CAUSATION, CORRELATION, DATA, DATA_ENCODING, INDEX, META, META_ENCODING, TIME, invalid,
    missing, optional, whole_number,
};
use crate::error::Result;
use crate::events::codec::{self, Body, Compression, Encoding};
use crate::events::event::{EventData, Recorded};

/// What an event weighs besides its text and its bodies.
const EVENT_BYTES: usize = 40;
/// What an unfold weighs besides its text and its bodies.
const UNFOLD_BYTES: usize = 50;

/// What events or unfolds weigh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// In the model that calving goes by.
    pub(crate) model: usize,
    /// In the lists of an item, as DynamoDB counts it.
    pub(crate) item: usize,
}

impl Add for Weight {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            model: self.model + other.model,
            item: self.item + other.item,
        }
    }
}

impl Sum for Weight {
    fn sum<I: Iterator<Item = Self>>(weights: I) -> Self {
        weights.fold(Self::default(), Add::add)
    }
}

/// An event as it is stored. Cheap to clone: copies share what it says.
#[derive(Clone, Debug)]
pub(crate) struct StoredEvent(Arc<Stored>);

#[derive(Debug)]
struct Stored {
    case: Text,
    fields: Item,
    weight: Weight,
}

impl PartialEq for StoredEvent {
    fn eq(&self, other: &Self) -> bool {
        self.0.case == other.0.case && self.0.fields == other.0.fields
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

    fn of(case: Text, fields: Item) -> Self {
        let weight = Weight {
            model: case.len() + EVENT_BYTES + fields.value_refs().map(modelled).sum::<usize>(),
            item: 2 * ENTRY_BYTES + case.len() + map_bytes(&fields),
        };
        Self(Arc::new(Stored {
            case,
            fields,
            weight,
        }))
    }

    /// What it weighs.
    pub(crate) fn weight(&self) -> Weight {
        self.0.weight
    }

    /// The name of its type.
    pub(crate) fn case(&self) -> &Text {
        &self.0.case
    }

    /// What stands of it in the list of events.
    pub(crate) fn fields(&self) -> &Item {
        &self.0.fields
    }

    /// The event, to be read.
    pub(crate) fn view(&self) -> EventView<'_> {
        EventView {
            case: self.case(),
            fields: self.0.fields.value_refs(),
        }
    }
}

/// An event where it stands.
#[derive(Clone)]
pub(crate) struct EventView<'i> {
    case: &'i str,
    fields: Attributes<'i>,
}

impl<'i> EventView<'i> {
    /// The event of this type and these fields.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) when it has no type or no fields.
    pub(super) fn of(case: ValueRef<'i>, fields: ValueRef<'i>) -> Result<Self> {
        match (case.as_s(), fields.attributes()) {
            (Some(case), Some(fields)) => Ok(Self { case, fields }),
            _ => Err(invalid("an event is a map, and its type is text:")),
        }
    }

    /// What it weighs.
    pub(super) fn weight(&self) -> Weight {
        let mut weight = Weight {
            model: self.case.len() + EVENT_BYTES,
            item: 2 * ENTRY_BYTES + self.case.len() + CONTAINER_BYTES,
        };
        for (name, value) in self.fields.clone() {
            weight.model += modelled((name, value));
            weight.item += ENTRY_BYTES + name.len() + value.size();
        }
        weight
    }

    /// The event, to be kept.
    pub(crate) fn to_stored(&self) -> StoredEvent {
        let fields = self.fields.clone();
        let fields = fields
            .map(|(name, value)| (name, value.to_value()))
            .collect();
        StoredEvent::of(Text::from(self.case), fields)
    }

    /// What was appended, at this place.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) when it is not as described above.
    pub(crate) fn recorded(&self, index: u64) -> Result<Recorded> {
        let fields = Fields::of(self.fields.clone());
        let text = |name, id: Option<ValueRef<'_>>| {
            optional(name, id, ValueRef::as_s).map(|id| id.map(str::to_owned))
        };
        Ok(Recorded {
            index,
            time: fields.moment()?,
            event: EventData {
                event_type: self.case.to_owned(),
                data: fields.data()?,
                meta: fields.meta()?,
                correlation_id: text(&CORRELATION, fields.correlation)?,
                causation_id: text(&CAUSATION, fields.causation)?,
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
        let mut fields = body_fields(time, unfold.data, unfold.meta, compression);
        fields.insert(INDEX, Number::from(version));
        fields.insert(CASES, unfold.event_type);
        Self(fields)
    }

    /// The unfold where it stands.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) when it has no fields.
    pub(super) fn of(unfold: ValueRef<'_>) -> Result<Self> {
        match unfold.to_value() {
            Value::M(fields) => Ok(Self(fields)),
            _ => Err(invalid("an unfold is a map:")),
        }
    }

    /// What it weighs.
    pub(crate) fn weight(&self) -> Weight {
        let case = self.0.get(&CASES).and_then(Value::as_s).map_or(0, str::len);
        Weight {
            model: case + UNFOLD_BYTES + self.0.value_refs().map(modelled).sum::<usize>(),
            item: ENTRY_BYTES + map_bytes(&self.0),
        }
    }

    /// What stands of it in the list of unfolds.
    pub(crate) const fn fields(&self) -> &Item {
        &self.0
    }

    /// What was kept.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) when it is not as described above.
    pub(crate) fn recorded(&self) -> Result<Recorded> {
        let fields = Fields::of(self.0.value_refs());
        let case = optional(&CASES, fields.case, ValueRef::as_s)?.ok_or_else(|| missing(&CASES))?;
        let index = optional(&INDEX, fields.index, whole_number)?.ok_or_else(|| missing(&INDEX))?;
        Ok(Recorded {
            index,
            time: fields.moment()?,
            event: EventData {
                event_type: case.to_owned(),
                data: fields.data()?,
                meta: fields.meta()?,
                ..EventData::default()
            },
            is_unfold: true,
        })
    }
}

/// What there is in the map of an event or an unfold.
#[derive(Default)]
struct Fields<'i> {
    time: Option<ValueRef<'i>>,
    data: (Option<ValueRef<'i>>, Option<ValueRef<'i>>),
    meta: (Option<ValueRef<'i>>, Option<ValueRef<'i>>),
    correlation: Option<ValueRef<'i>>,
    causation: Option<ValueRef<'i>>,
    index: Option<ValueRef<'i>>,
    case: Option<ValueRef<'i>>,
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
                "c" => &mut fields.case,
                _ => continue,
            };
            *field = Some(value);
        }
        fields
    }

    fn moment(&self) -> Result<Timestamp> {
        let text = optional(&TIME, self.time, ValueRef::as_s)?.ok_or_else(|| missing(&TIME))?;
        Timestamp::from_iso(text).ok_or_else(|| invalid(&format!("not a moment: t={text}")))
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
    let known = Encoding::of_number(number)
        .ok_or_else(|| invalid(&format!("an encoding that nobody knows: encoding={number}")))?;
    codec::decode(known, stored)
}

/// What a field weighs in the model that calving goes by.
fn modelled((name, value): (&str, ValueRef<'_>)) -> usize {
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
