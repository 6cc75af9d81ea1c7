//! The events of an item.

use std::sync::{Arc, OnceLock};

use floe_store::item::{Elements, ValueRef};
use floe_store::size::item_size;
use floe_store::{Item, Value};

use super::added::Added;
use super::event::{EventView, StoredEvent, Weight};
use super::{CASES, EVENTS};
use crate::error::Result;

/// The events of an item, in their order. Cheap to clone.
///
/// Those that were read stay in their item, as they are stored, until somebody looks at them: a state that is found in
/// an unfold, an append to a Tip with room and a calving want none of what they say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    read: Option<Arc<Read>>,
    /// Those after them.
    added: Added,
}

/// The item that events were read of.
#[derive(Debug)]
struct Read {
    item: Item,
    count: usize,
    bytes: usize,
    weight: OnceLock<Weight>,
}

impl Read {
    /// A list of the item, which may be missing where it is empty.
    fn list(&self, name: &str) -> Option<Elements<'_>> {
        let mut attributes = self.item.value_refs();
        let (_, list) = attributes.find(|(at, _)| *at == name)?;
        list.elements()
    }

    /// The events from this place on.
    fn since(&self, place: usize) -> impl Iterator<Item = Result<EventView<'_>>> {
        let cases = self.list(&CASES).into_iter().flatten().skip(place);
        let events = self.list(&EVENTS).into_iter().flatten().skip(place);
        cases
            .zip(events)
            .map(|(case, fields)| EventView::of(case, fields))
    }

    fn weight(&self) -> Result<Weight> {
        if let Some(weight) = self.weight.get() {
            return Ok(*weight);
        }
        let weights = self.since(0).map(|event| Ok(event?.weight()));
        let weight = weights.sum::<Result<Weight>>()?;
        Ok(*self.weight.get_or_init(|| weight))
    }
}

impl Events {
    /// The events in the lists of an item, which are so many.
    pub(super) fn of_item(item: Item, count: usize) -> Self {
        if count == 0 {
            return Self::default();
        }
        Self {
            read: Some(Arc::new(Read {
                bytes: item.packed_bytes().unwrap_or_else(|| item_size(&item)),
                weight: OnceLock::new(),
                item,
                count,
            })),
            ..Self::default()
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.read.as_ref().map_or(0, |read| read.count) + self.added.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What they weigh.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) when one of them is none.
    pub(crate) fn weight(&self) -> Result<Weight> {
        let read = self
            .read
            .as_ref()
            .map_or(Ok(Weight::default()), |read| read.weight());
        Ok(read? + self.added.weight())
    }

    /// About how much memory they take.
    pub(crate) fn bytes(&self) -> usize {
        self.read.as_ref().map_or(0, |read| read.bytes) + self.added.weight().model
    }

    /// These events and others after them.
    #[must_use]
    pub(crate) fn and(&self, others: &[StoredEvent]) -> Self {
        let mut both = self.clone();
        others
            .iter()
            .for_each(|event| both.added.push(event.clone()));
        both
    }

    /// The events from this place on, the oldest first.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) when one of them is none.
    pub(crate) fn since(&self, place: usize) -> Result<Vec<EventView<'_>>> {
        let read = self.read.as_ref();
        let place_added = place.saturating_sub(read.map_or(0, |read| read.count));
        let added = self.added.since(place_added).into_iter();
        let read = read.into_iter().flat_map(|read| read.since(place));
        read.chain(added.map(|event| Ok(event.view()))).collect()
    }

    /// The name of the type of the last one.
    pub(crate) fn last_case(&self) -> Option<&str> {
        match (self.added.last(), &self.read) {
            (Some(last), _) => Some(last.case()),
            (None, Some(read)) => read.list(&CASES)?.last().and_then(ValueRef::as_s),
            (None, None) => None,
        }
    }

    /// The lists of types and of events, as they are stored.
    pub(crate) fn lists(&self) -> (Value, Value) {
        let read = |name: &'static str| {
            let lists = self.read.iter().filter_map(move |read| read.list(name));
            lists.flatten().map(ValueRef::to_value)
        };
        let (cases, events) = lists_of(self.added.since(0).into_iter());
        let join = |name, added| match added {
            Value::L(added) => Value::L(read(name).chain(added).collect()),
            other => other,
        };
        (join("c", cases), join("e", events))
    }
}

impl FromIterator<StoredEvent> for Events {
    fn from_iter<I: IntoIterator<Item = StoredEvent>>(events: I) -> Self {
        let mut added = Added::default();
        events.into_iter().for_each(|event| added.push(event));
        Self { read: None, added }
    }
}

/// The lists of types and of events.
pub(crate) fn lists_of<'e>(
    events: impl Iterator<Item = &'e StoredEvent> + Clone,
) -> (Value, Value) {
    let cases = events.clone().map(|event| Value::S(event.case().clone()));
    let fields = events.map(|event| Value::M(event.fields().clone()));
    (Value::L(cases.collect()), Value::L(fields.collect()))
}
