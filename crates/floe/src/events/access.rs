//! Access strategies: how the state of a stream is loaded, from all events or from an unfold.
//!
//! | strategy | unfolds | read to load |
//! |---|---|---|
//! | `Unoptimized` | nothing | all events, by Query |
//! | `LatestKnownEvent` | the last event | the Tip |
//! | `Snapshot` | the state, as an event | the Tip |
//! | `MultiSnapshot` | the state, as several events or in several formats | the Tip |
//! | `RollingState` | the state; events are not stored | the Tip |
//! | `Custom` | anything | back to an origin event |
//!
//! A strategy can be replaced by another on existing streams: what is missing in the Tip is loaded from the events,
//! and written with the next append. `RollingState` does not change the version, so cached states of strategies other
//! than `RollingState` and `Custom` do not notice its writes: switch to it while no states are cached.

use super::changes::Guard;
use super::decider::{Access, Decider};

impl<D: Decider + ?Sized> Access<D> {
    /// Whether earlier events are irrelevant.
    pub(super) fn is_origin(&self, event: &D::Event) -> bool {
        match self {
            Self::Unoptimized => false,
            Self::LatestKnownEvent | Self::RollingState { .. } => true,
            Self::Snapshot { is_origin, .. }
            | Self::MultiSnapshot { is_origin, .. }
            | Self::Custom { is_origin, .. } => is_origin(event),
        }
    }

    /// Whether unfolds may be relevant.
    pub(super) const fn reads_unfolds(&self) -> bool {
        !matches!(self, Self::Unoptimized)
    }

    /// What an append requires to be unchanged.
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
    /// Returns the events to append and the unfolds to store, from the decided events and the state after them.
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
