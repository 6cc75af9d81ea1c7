//! Events that were added to others, one after the other.
//!
//! A list that is kept in memory and another one that has an event more share all but that event: to append to a stream
//! costs the same however many events are in its Tip.

use std::sync::Arc;

use super::event::{StoredEvent, Weight};

/// Events in their order. Cheap to clone and to add to; what is added to one copy is in no other.
#[derive(Clone, Debug, Default)]
pub(super) struct Added {
    last: Option<Arc<Link>>,
    len: usize,
    weight: Weight,
}

/// An event, and those before it.
#[derive(Debug)]
struct Link {
    event: StoredEvent,
    before: Option<Arc<Self>>,
}

impl Drop for Link {
    /// One link after the other: each would drop the one before it, and a long list would take the whole stack.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut link) = before.and_then(Arc::into_inner) {
            before = link.before.take();
        }
    }
}

impl Added {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// What they weigh.
    pub(super) const fn weight(&self) -> Weight {
        self.weight
    }

    /// Adds an event.
    pub(super) fn push(&mut self, event: StoredEvent) {
        self.len += 1;
        self.weight = self.weight + event.weight();
        let before = self.last.take();
        self.last = Some(Arc::new(Link { event, before }));
    }

    /// The last one.
    pub(super) fn last(&self) -> Option<&StoredEvent> {
        self.last.as_ref().map(|link| &link.event)
    }

    /// Those from this place on, the oldest first.
    pub(super) fn since(&self, place: usize) -> Vec<&StoredEvent> {
        let first = self.last.as_deref();
        let links = std::iter::successors(first, |link| link.before.as_deref());
        let newest_first = links.take(self.len.saturating_sub(place));
        let mut events: Vec<_> = newest_first.map(|link| &link.event).collect();
        events.reverse();
        events
    }
}

#[cfg(test)]
mod tests {
    use floe_store::Timestamp;

    use super::*;
    use crate::events::EventData;
    use crate::events::codec::Compression;

    fn event(number: usize) -> StoredEvent {
        let data = EventData::new(number.to_string(), "");
        StoredEvent::new(data, Timestamp::from_millis(0), Compression::default())
    }

    fn added(numbers: impl IntoIterator<Item = usize>) -> Added {
        let mut added = Added::default();
        numbers.into_iter().for_each(|n| added.push(event(n)));
        added
    }

    fn since(added: &Added, place: usize) -> Vec<&str> {
        let events = added.since(place).into_iter();
        events.map(|event| event.case().as_str()).collect()
    }

    #[test]
    fn they_are_in_their_order_from_any_place_on() {
        let added = added(0..3);
        assert_eq!(since(&added, 0), ["0", "1", "2"]);
        assert_eq!(since(&added, 2), ["2"]);
        for place in [3, 4] {
            assert!(since(&added, place).is_empty());
        }
        assert!(since(&Added::default(), 0).is_empty());
    }

    #[test]
    fn copies_share_what_they_have_in_common_and_nothing_else() {
        let common = added(0..2);
        let (mut one, mut other) = (common.clone(), common.clone());
        one.push(event(7));
        other.push(event(8));
        assert_eq!(since(&common, 0), ["0", "1"]);
        assert_eq!(since(&one, 0), ["0", "1", "7"]);
        assert_eq!(since(&other, 1), ["1", "8"]);
        assert_eq!((one.len(), common.len()), (3, 2));
        assert_eq!(one.weight(), common.weight() + event(7).weight());
        drop((common, one));
        assert_eq!(since(&other, 0), ["0", "1", "8"]);
    }

    #[test]
    fn a_long_list_is_dropped_on_a_small_stack() {
        let long = added(0..100_000);
        let dropping = std::thread::Builder::new().stack_size(64 << 10);
        dropping.spawn(|| drop(long)).unwrap().join().unwrap();
    }
}
