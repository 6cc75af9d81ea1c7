//! The index: the active epoch of each partition.
//!
//! It is one stream, `$AppendsIndex-0`, of `Started` events, with the whole map as the unfold `Snapshotted`. It saves
//! readers a walk from the first epoch. It may be behind, if a process died between closing an epoch and updating the
//! index, but never ahead: readers and ingesters that find a closed epoch continue with
//! the next.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::partition::Partition;
use crate::error::{Error, ErrorKind, Result};
use crate::events::event::EventData;
use crate::events::keys::StreamName;

/// The category of the index stream.
pub const INDEX_CATEGORY: &str = "$AppendsIndex";

/// The id of the index. A table has one.
const INDEX_ID: &str = "0";

const STARTED: &str = "Started";
/// A temporary name used by Propulsion.
const STARTED_V2: &str = "Started2";
const SNAPSHOTTED: &str = "Snapshotted";

/// The name of the index stream.
///
/// # Errors
///
/// Never for this id; stream names are always validated.
pub fn index_stream() -> Result<StreamName> {
    StreamName::new(INDEX_CATEGORY, INDEX_ID)
}

/// An event or unfold of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexEvent {
    /// An epoch is active.
    Started {
        /// The partition.
        partition: Partition,
        /// The epoch.
        epoch: u32,
    },
    /// The complete state, replacing all earlier events.
    Snapshotted(IndexState),
}

impl IndexEvent {
    /// Whether earlier events are irrelevant.
    pub const fn is_origin(&self) -> bool {
        matches!(self, Self::Snapshotted(_))
    }

    /// Encodes the event or unfold.
    pub fn encode(&self) -> EventData {
        let (event_type, json) = match self {
            Self::Started { partition, epoch } => (
                STARTED,
                json!({"partition": partition.number(), "epoch": epoch}),
            ),
            Self::Snapshotted(IndexState(active)) => {
                let active: Map<String, Value> = active
                    .iter()
                    .map(|(partition, epoch)| (partition.to_string(), (*epoch).into()))
                    .collect();
                (SNAPSHOTTED, json!({ "active": active }))
            }
        };
        EventData::new(event_type, json.to_string())
    }

    /// Decodes an event or unfold.
    ///
    /// # Errors
    ///
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) if it is not an event of the index.
    pub fn decode(event: &EventData) -> Result<Self> {
        let invalid = || {
            let message = format!(
                "cannot read an event of the index: type={} data={}",
                event.event_type,
                String::from_utf8_lossy(&event.data)
            );
            Error::new(ErrorKind::InvalidEvent, message)
        };
        let json: Value = serde_json::from_slice(&event.data).map_err(|_| invalid())?;
        let read = match event.event_type.as_str() {
            STARTED | STARTED_V2 => started(&json),
            SNAPSHOTTED => snapshotted(&json),
            _ => None,
        };
        read.ok_or_else(invalid)
    }
}

fn started(json: &Value) -> Option<IndexEvent> {
    // Old events of Propulsion use the partition's former name.
    let partition = ["partition", "tranche"]
        .iter()
        .find_map(|name| json.get(name).filter(|value| !value.is_null()))?;
    Some(IndexEvent::Started {
        partition: Partition::new(number(partition)?),
        epoch: number(json.get("epoch")?)?,
    })
}

fn snapshotted(json: &Value) -> Option<IndexEvent> {
    let active = json.get("active")?.as_object()?;
    let active: Option<_> = active
        .iter()
        .map(|(partition, epoch)| Some((Partition::new(partition.parse().ok()?), number(epoch)?)))
        .collect();
    Some(IndexEvent::Snapshotted(IndexState(active?)))
}

/// Parses a number. The JavaScript library writes some of them as text.
fn number(json: &Value) -> Option<u32> {
    match json {
        Value::String(text) => text.parse().ok(),
        number => u32::try_from(number.as_u64()?).ok(),
    }
}

/// The active epoch of each partition.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IndexState(BTreeMap<Partition, u32>);

impl IndexState {
    /// The active epoch of a partition, as far as known; the first by default.
    pub fn active(&self, partition: Partition) -> u32 {
        self.0.get(&partition).copied().unwrap_or_default()
    }

    /// The known partitions.
    pub fn partitions(&self) -> impl Iterator<Item = Partition> {
        self.0.keys().copied()
    }

    /// Applies an event.
    pub fn apply(&mut self, event: IndexEvent) {
        match event {
            IndexEvent::Started { partition, epoch } => {
                self.0.insert(partition, epoch);
            }
            IndexEvent::Snapshotted(state) => *self = state,
        }
    }

    /// The event to append when an epoch becomes active; `None` if this or a later one is recorded.
    pub fn start(&self, partition: Partition, epoch: u32) -> Option<IndexEvent> {
        let is_new = self.0.get(&partition).is_none_or(|known| *known < epoch);
        is_new.then_some(IndexEvent::Started { partition, epoch })
    }

    /// The unfold to store with the events.
    pub fn snapshot(&self) -> IndexEvent {
        IndexEvent::Snapshotted(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use floe_store::env::SeededRandom;

    use super::*;

    fn data(event: &IndexEvent) -> (String, String) {
        let event = event.encode();
        (event.event_type, String::from_utf8(event.data).unwrap())
    }

    fn started(partition: u32, epoch: u32) -> IndexEvent {
        let partition = Partition::new(partition);
        IndexEvent::Started { partition, epoch }
    }

    fn folded(events: impl IntoIterator<Item = IndexEvent>) -> IndexState {
        let mut state = IndexState::default();
        events.into_iter().for_each(|event| state.apply(event));
        state
    }

    #[test]
    fn index_is_one_stream() {
        assert_eq!(index_stream().unwrap().as_str(), "$AppendsIndex-0");
    }

    #[test]
    fn event_json_is_compatible() {
        let (event_type, json) = data(&started(2, 7));
        assert_eq!(event_type, "Started");
        assert_eq!(json, r#"{"epoch":7,"partition":2}"#);
        let state = folded([started(10, 7), started(2, 1)]);
        let (event_type, json) = data(&state.snapshot());
        assert_eq!(event_type, "Snapshotted");
        assert_eq!(json, r#"{"active":{"10":7,"2":1}}"#);
        assert!(state.snapshot().is_origin() && !started(2, 7).is_origin());
    }

    #[test]
    fn events_of_all_dialects_are_decoded() {
        for (event_type, json) in [
            ("Started", r#"{"partition":2,"epoch":7}"#),
            ("Started", r#"{"tranche":2,"epoch":7}"#),
            ("Started", r#"{"partition":null,"tranche":2,"epoch":7}"#),
            ("Started2", r#"{"partition":2,"epoch":7}"#),
            ("Started", r#"{"partition":"2","epoch":"7"}"#),
        ] {
            let event = EventData::new(event_type, json.as_bytes());
            assert_eq!(IndexEvent::decode(&event).unwrap(), started(2, 7));
        }
        let event = EventData::new("Snapshotted", *br#"{"active":{"0":"3","1":4}}"#);
        let state = folded([IndexEvent::decode(&event).unwrap()]);
        assert_eq!(state, folded([started(0, 3), started(1, 4)]));
    }

    #[test]
    fn invalid_index_events_are_rejected() {
        for (event_type, json) in [
            ("Started", ""),
            ("Started", r#"{"partition":2}"#),
            ("Started", r#"{"partition":-2,"epoch":1}"#),
            ("Snapshotted", r#"{"active":{"x":1}}"#),
            ("Other", "{}"),
        ] {
            let event = EventData::new(event_type, json.as_bytes());
            let error = IndexEvent::decode(&event).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidEvent);
            assert_eq!(
                error.to_string(),
                format!("cannot read an event of the index: type={event_type} data={json}")
            );
        }
    }

    #[test]
    fn epoch_starts_once_and_never_after_a_later_one() {
        let state = folded([started(0, 3)]);
        assert_eq!(state.start(Partition::new(0), 4), Some(started(0, 4)));
        assert_eq!(state.start(Partition::new(0), 3), None);
        assert_eq!(state.start(Partition::new(0), 2), None);
        assert_eq!(state.start(Partition::new(1), 0), Some(started(1, 0)));
        assert_eq!(state.active(Partition::new(0)), 3);
        assert_eq!(state.active(Partition::new(1)), 0);
    }

    #[test]
    fn snapshot_equals_the_applied_events() {
        for seed in 0..100 {
            let random = SeededRandom::new(seed);
            let mut state = IndexState::default();
            let mut highest = BTreeMap::new();
            for _ in 0..random.below(30) {
                let (partition, epoch) = (random.below(12) as u32, random.below(20) as u32);
                let known = highest.entry(partition).or_insert(epoch);
                *known = epoch.max(*known);
                if let Some(event) = state.start(Partition::new(partition), epoch) {
                    let read = IndexEvent::decode(&event.encode()).unwrap();
                    assert_eq!(read, event);
                    state.apply(read);
                }
            }
            for (partition, epoch) in &highest {
                assert_eq!(state.active(Partition::new(*partition)), *epoch);
            }
            assert_eq!(state.partitions().count(), highest.len());
            let snapshot = IndexEvent::decode(&state.snapshot().encode()).unwrap();
            assert_eq!(folded([started(99, 99), snapshot]), state);
        }
    }
}
