//! States of the feed that are kept whole: one small item each, in the index table.
//!
//! Each change replaces the item, under the condition that it is as it was read.

use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::events::{Access, Decider, Event, EventStore, Load, Stream, StreamId};

/// A state that is kept whole, as JSON.
pub(super) trait State: Clone + Default + Send + Sync + 'static {
    /// What its streams are named by.
    const CATEGORY: &'static str;
    /// The rest of the name.
    type Id: StreamId + ?Sized;
    /// The type under which it is stored.
    const EVENT_TYPE: &'static str;
    /// What it is, to whoever reads messages.
    const WHAT: &'static str;

    fn write(&self) -> Value;

    fn read(json: &Value) -> Option<Self>;
}

/// A state, as its stream holds it.
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
    /// The stream of a state, read as it is now.
    pub(super) fn kept<S: State>(&self, id: &S::Id) -> Stream<Kept<S>> {
        let stream = self.feed_index().stream::<Kept<S>>(id);
        stream.load(Load::RequireLeader)
    }
}

/// Reads what is stored as JSON.
///
/// # Errors
///
/// [`InvalidEvent`](ErrorKind::InvalidEvent) when it is something else.
pub(super) fn read_json<T>(
    what: &str,
    data: &[u8],
    read: impl Fn(&Value) -> Option<T>,
) -> Result<T> {
    let json: Option<Value> = serde_json::from_slice(data).ok();
    json.as_ref().and_then(read).ok_or_else(|| {
        let data = String::from_utf8_lossy(data);
        let message = format!("{what} cannot be read: data={data}");
        Error::new(ErrorKind::InvalidEvent, message)
    })
}
