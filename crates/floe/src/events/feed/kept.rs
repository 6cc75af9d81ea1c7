//! States of the feed that are stored as one small item each, in the index table.
//!
//! Each change replaces the item, on the condition that it is unchanged since it was read.

use serde_json::Value;

use super::json::read_json;
use crate::error::Result;
use crate::events::{Access, Decider, Event, EventStore, Load, Stream, StreamId};

/// A state that is stored as one JSON value.
pub(super) trait State: Clone + Default + Send + Sync + 'static {
    /// The category of its streams.
    const CATEGORY: &'static str;
    /// The id of its streams.
    type Id: StreamId + ?Sized;
    /// The stored event type.
    const EVENT_TYPE: &'static str;
    /// A description for error messages.
    const WHAT: &'static str;

    fn write(&self) -> Value;

    fn read(json: &Value) -> Option<Self>;
}

/// A state as the event of its stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept<S>(pub(super) S);

impl<S: State> Event for Kept<S> {
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
        read_json(S::WHAT, data, S::read).map(|state| Some(Self(state)))
    }
}

impl<S: State> Decider for Kept<S> {
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
    pub(super) fn kept<S: State>(&self, id: &S::Id) -> Stream<Kept<S>> {
        let stream = self.feed_index().stream::<Kept<S>>(id);
        stream.load(Load::RequireLeader)
    }
}
