//! How the state of a stream is found: from all of its events, or from something kept beside them.
//!
//! | strategy | what is kept beside the events | what loading takes |
//! |---|---|---|
//! | `Unoptimized` | nothing | all events, by Query |
//! | `LatestKnownEvent` | the last event | the Tip |
//! | `Snapshot` | a state, as an event | the Tip |
//! | `MultiSnapshot` | a state, as several events or in several forms | the Tip |
//! | `RollingState` | a state; events are not kept at all | the Tip |
//! | `Custom` | whatever is asked for | as far back as an origin is found |
//!
//! A strategy can be exchanged for another on streams that are there: what is not found in the Tip is looked for in the
//! events, and written with the next append. `RollingState` leaves the version as it is, so that who keeps a state of a
//! strategy other than `RollingState` and `Custom` in memory does not notice its writes: exchange it for those while no
//! states are kept.

use super::changes::Guard;
use super::decider::{Access, Decider};

impl<D: Decider + ?Sized> Access<D> {
    /// Whether nothing before the event counts.
    pub(super) fn is_origin(&self, event: &D::Event) -> bool {
        match self {
            Self::Unoptimized => false,
            Self::LatestKnownEvent | Self::RollingState { .. } => true,
            Self::Snapshot { is_origin, .. }
            | Self::MultiSnapshot { is_origin, .. }
            | Self::Custom { is_origin, .. } => is_origin(event),
        }
    }

    /// Whether there may be unfolds that count.
    pub(super) const fn looks_at_unfolds(&self) -> bool {
        !matches!(self, Self::Unoptimized)
    }

    /// What must not have changed for an append.
    pub(super) const fn guard(&self) -> Guard {
        match self {
            Self::RollingState { .. } | Self::Custom { .. } => Guard::Etag,
            _ => Guard::Version,
        }
    }
}

impl<D: Decider + ?Sized> Access<D>
where
    D::Event: Clone,
{
    /// Of what was decided, and the state after it: the events to append, and the unfolds to keep.
    pub(super) fn parts(
        &self,
        events: Vec<D::Event>,
        state: &D::State,
    ) -> (Vec<D::Event>, Vec<D::Event>) {
        match self {
            Self::Unoptimized => (events, Vec::new()),
            Self::LatestKnownEvent => {
                let latest = events.last().cloned().into_iter().collect();
                (events, latest)
            }
            Self::Snapshot { to_snapshot, .. } => (events, vec![to_snapshot(state)]),
            Self::MultiSnapshot { to_snapshots, .. } => (events, to_snapshots(state)),
            Self::RollingState { to_snapshot } => (Vec::new(), vec![to_snapshot(state)]),
            Self::Custom { transmute, .. } => transmute(events, state),
        }
    }
}
