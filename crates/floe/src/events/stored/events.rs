//! The events of an item, and events appended to them.

use std::sync::{Arc, OnceLock};

use floe_store::item::{Elements, ValueRef};
use floe_store::size::item_size;
use floe_store::{Item, Value};

use super::event::{EventView, Size, StoredEvent};
use super::event_list::EventList;
use super::{EVENT_TYPES, EVENTS};
use crate::error::Result;

/// Events in order. Cheap to clone.
///
/// Events that were read stay packed in their item until they are accessed. Loading a state from an unfold, appending to
/// a Tip with room and calving do not access them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    /// The events that were read.
    packed: Option<Arc<PackedEvents>>,
    /// The events after them.
    added: EventList,
}

/// Events in the item that was read.
#[derive(Debug)]
struct PackedEvents {
    item: Item,
    count: usize,
    /// Approximate memory usage.
    bytes: usize,
    /// Their size, once it was computed.
    size: OnceLock<Size>,
}

impl PackedEvents {
    /// Returns a list of the item; `None` if it is absent, as an empty list may be.
    fn list(&self, name: &str) -> Option<Elements<'_>> {
        let mut attributes = self.item.value_refs();
        let (_, list) = attributes.find(|(at, _)| *at == name)?;
        list.elements()
    }

    /// Returns the events from an offset.
    fn since(&self, offset: usize) -> impl Iterator<Item = Result<EventView<'_>>> {
        let types = self.list(&EVENT_TYPES).into_iter().flatten().skip(offset);
        let events = self.list(&EVENTS).into_iter().flatten().skip(offset);
        types
            .zip(events)
            .map(|(event_type, fields)| EventView::of(event_type, fields))
    }

    fn size(&self) -> Result<Size> {
        if let Some(size) = self.size.get() {
            return Ok(*size);
        }
        let sizes = self.since(0).map(|event| Ok(event?.size()));
        let size = sizes.sum::<Result<Size>>()?;
        Ok(*self.size.get_or_init(|| size))
    }
}

impl Events {
    /// The events in the lists of an item, whose number is known.
    pub(super) fn of_item(item: Item, count: usize) -> Self {
        if count == 0 {
            return Self::default();
        }
        Self {
            packed: Some(Arc::new(PackedEvents {
                bytes: item.packed_bytes().unwrap_or_else(|| item_size(&item)),
                size: OnceLock::new(),
                item,
                count,
            })),
            ..Self::default()
        }
    }

    /// The number of events.
    pub(crate) fn len(&self) -> usize {
        self.packed.as_ref().map_or(0, |packed| packed.count) + self.added.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size of all events.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) if an element of the lists is not an event.
    pub(crate) fn size(&self) -> Result<Size> {
        let packed = match &self.packed {
            Some(packed) => packed.size()?,
            None => Size::default(),
        };
        Ok(packed + self.added.size())
    }

    /// Approximate memory usage.
    pub(crate) fn bytes(&self) -> usize {
        self.packed.as_ref().map_or(0, |packed| packed.bytes) + self.added.size().estimate
    }

    /// Returns these events followed by more events.
    #[must_use]
    pub(crate) fn and(&self, more: &[StoredEvent]) -> Self {
        let mut all = self.clone();
        more.iter().for_each(|event| all.added.push(event.clone()));
        all
    }

    /// Returns the events from an offset, oldest first.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) if an element of the lists is not an event.
    pub(crate) fn since(&self, offset: usize) -> Result<Vec<EventView<'_>>> {
        let packed = self.packed.as_ref();
        let added_offset = offset.saturating_sub(packed.map_or(0, |packed| packed.count));
        let added = self.added.since(added_offset).into_iter();
        let packed = packed.into_iter().flat_map(|packed| packed.since(offset));
        let added = added.map(|event| Ok(event.view()));
        packed.chain(added).collect()
    }

    /// The type of the last event.
    pub(crate) fn last_event_type(&self) -> Option<&str> {
        match (self.added.last(), &self.packed) {
            (Some(last), _) => Some(last.event_type()),
            (None, Some(packed)) => packed.list(&EVENT_TYPES)?.last().and_then(ValueRef::as_s),
            (None, None) => None,
        }
    }

    /// The stored lists of event types and events.
    pub(crate) fn lists(&self) -> (Value, Value) {
        let packed = |name: &'static str| {
            let packed = self.packed.iter();
            let lists = packed.filter_map(move |packed| packed.list(name));
            lists.flatten().map(ValueRef::to_value)
        };
        let (types, events) = lists_of(self.added.since(0).into_iter());
        let join = |name, added| match added {
            Value::L(added) => Value::L(packed(name).chain(added).collect()),
            other => other,
        };
        (join("c", types), join("e", events))
    }
}

impl FromIterator<StoredEvent> for Events {
    fn from_iter<I: IntoIterator<Item = StoredEvent>>(events: I) -> Self {
        let mut added = EventList::default();
        events.into_iter().for_each(|event| added.push(event));
        Self {
            packed: None,
            added,
        }
    }
}

/// The stored lists of event types and events.
pub(crate) fn lists_of<'e>(
    events: impl Iterator<Item = &'e StoredEvent> + Clone,
) -> (Value, Value) {
    let types = events
        .clone()
        .map(|event| Value::S(event.event_type().clone()));
    let fields = events.map(|event| Value::M(event.fields().clone()));
    (Value::L(types.collect()), Value::L(fields.collect()))
}
