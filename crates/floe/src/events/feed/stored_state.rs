//! States of the feed that are each stored as one small item in the index table.
//!
//! Each change replaces the item, on the condition that it is unchanged since it was read.

use serde_json::Value;

use super::json::read_json;
use crate::error::Result;
use crate::events::{Access, Decider, Event, EventStore, Load, Stream, StreamId};

/// A state that is stored as one JSON value.
pub(super) trait StoredState: Clone + Default + Send + Sync + 'static {
    /// The category of its streams.
    const CATEGORY: &'static str;
    /// The id of its streams.
    type Id: StreamId + ?Sized;
    /// The stored event type.
    const EVENT_TYPE: &'static str;
    /// A description for error messages.
    const DESCRIPTION: &'static str;

    fn write(&self) -> Value;

    fn read(json: &Value) -> Option<Self>;
}

/// The event of the stream of a state: it contains the complete state, and replaces the previous event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StateEvent<S>(pub(super) S);

impl<S: StoredState> Event for StateEvent<S> {
    fn event_type(&self) -> &'static str {
        S::EVENT_TYPE
    }

    fn encode(&self) -> Result<Vec<u8>> {
        Ok(self.0.write().to_string().into_bytes())
    }

    fn decode(event_type: &str, data: &[u8]) -> Result<Option<Self>> {
        if event_type != S::EVENT_TYPE {
            return Ok(None);
        }
        read_json(S::DESCRIPTION, data, S::read).map(|state| Some(Self(state)))
    }
}

impl<S: StoredState> Decider for StateEvent<S> {
    const CATEGORY: &'static str = S::CATEGORY;
    type Id = S::Id;
    type Event = Self;
    type State = S;

    fn initial() -> S {
        S::default()
    }

    fn evolve(_: S, event: &Self) -> S {
        event.0.clone()
    }

    fn access() -> Access<Self> {
        Access::RollingState {
            to_snapshot: |state| Self(state.clone()),
        }
    }
}

impl EventStore {
    /// The stream of a state, read with strong consistency.
    pub(super) fn state_stream<S: StoredState>(&self, id: &S::Id) -> Stream<StateEvent<S>> {
        let stream = self.feed_index().stream::<StateEvent<S>>(id);
        stream.load(Load::RequireLeader)
    }
}
