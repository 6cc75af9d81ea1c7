//! A persistent list of events.
//!
//! A list and a copy with one more event share everything but that event. So the cost of an append to a cached stream is
//! independent of the number of events in its Tip.

use std::sync::Arc;

use super::event::{Size, StoredEvent};

/// A list of events. Cheap to clone and to extend; extending a copy does not change the others.
#[derive(Clone, Debug, Default)]
pub(super) struct EventList {
    last: Option<Arc<Node>>,
    len: usize,
    size: Size,
}

/// An event, and the events before it.
#[derive(Debug)]
struct Node {
    event: StoredEvent,
    before: Option<Arc<Self>>,
}

impl Drop for Node {
    /// Drops the nodes in a loop: recursion would overflow the stack for a long list.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut node) = before.and_then(Arc::into_inner) {
            before = node.before.take();
        }
    }
}

impl EventList {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The size of all events.
    pub(super) const fn size(&self) -> Size {
        self.size
    }

    /// Appends an event.
    pub(super) fn push(&mut self, event: StoredEvent) {
        self.len += 1;
        self.size = self.size + event.size();
        let before = self.last.take();
        self.last = Some(Arc::new(Node { event, before }));
    }

    /// The last event.
    pub(super) fn last(&self) -> Option<&StoredEvent> {
        self.last.as_ref().map(|node| &node.event)
    }

    /// Returns the events from an offset, oldest first.
    pub(super) fn since(&self, offset: usize) -> Vec<&StoredEvent> {
        let last = self.last.as_deref();
        let nodes = std::iter::successors(last, |node| node.before.as_deref());
        let newest_first = nodes.take(self.len.saturating_sub(offset));
        let mut events: Vec<_> = newest_first.map(|node| &node.event).collect();
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

    fn list(numbers: impl IntoIterator<Item = usize>) -> EventList {
        let mut list = EventList::default();
        numbers.into_iter().for_each(|n| list.push(event(n)));
        list
    }

    fn since(list: &EventList, offset: usize) -> Vec<&str> {
        let events = list.since(offset).into_iter();
        events.map(|event| event.event_type().as_str()).collect()
    }

    #[test]
    fn events_are_in_order_from_any_offset() {
        let list = list(0..3);
        assert_eq!(since(&list, 0), ["0", "1", "2"]);
        assert_eq!(since(&list, 2), ["2"]);
        for offset in [3, 4] {
            assert!(since(&list, offset).is_empty());
        }
        assert!(since(&EventList::default(), 0).is_empty());
    }

    #[test]
    fn copies_are_extended_independently() {
        let common = list(0..2);
        let (mut one, mut other) = (common.clone(), common.clone());
        one.push(event(7));
        other.push(event(8));
        assert_eq!(since(&common, 0), ["0", "1"]);
        assert_eq!(since(&one, 0), ["0", "1", "7"]);
        assert_eq!(since(&other, 1), ["1", "8"]);
        assert_eq!((one.len(), common.len()), (3, 2));
        assert_eq!(one.size(), common.size() + event(7).size());
        drop((common, one));
        assert_eq!(since(&other, 0), ["0", "1", "8"]);
    }

    #[test]
    fn long_list_is_dropped_on_a_small_stack() {
        let long = list(0..100_000);
        let dropping = std::thread::Builder::new().stack_size(64 << 10);
        dropping.spawn(|| drop(long)).unwrap().join().unwrap();
    }
}
