//! Deciders: the rules of a stream. Events are folded into a state, and a decision turns the state into further
//! events.
//!
//! Deciders are independent of a store: they are tested with the [harness](super::harness), and used through a
//! [stream](super::stream).

use super::keys::StreamId;
use super::typed::{Event, Unknown};

/// A category of streams, and how their events become a state.
///
/// The type is never instantiated: use an empty enum or a unit struct. Decisions are functions from the state to a
/// [`Decision`].
///
/// ```
/// use floe::Event;
/// use floe::events::{Decider, StreamName};
///
/// #[derive(Event)]
/// enum CartEvent {
///     ItemAdded { sku: String },
///     CheckedOut,
/// }
///
/// #[derive(Clone, Debug, Default, PartialEq)]
/// struct CartState {
///     skus: Vec<String>,
///     is_closed: bool,
/// }
///
/// enum Cart {}
///
/// impl Decider for Cart {
///     const CATEGORY: &'static str = "Cart";
///     type Id = str;
///     type Event = CartEvent;
///     type State = CartState;
///
///     fn initial() -> CartState {
///         CartState::default()
///     }
///
///     fn evolve(mut state: CartState, event: &CartEvent) -> CartState {
///         match event {
///             CartEvent::ItemAdded { sku } => state.skus.push(sku.clone()),
///             CartEvent::CheckedOut => state.is_closed = true,
///         }
///         state
///     }
/// }
///
/// /// Adds an item, unless it is already there.
/// fn add(state: &CartState, sku: &str) -> Result<Option<CartEvent>, &'static str> {
///     if state.is_closed {
///         return Err("the cart is closed");
///     }
///     let is_new = !state.skus.iter().any(|known| known == sku);
///     Ok(is_new.then(|| CartEvent::ItemAdded { sku: sku.to_owned() }))
/// }
///
/// # fn main() -> Result<(), floe::Error> {
/// let tea = CartEvent::ItemAdded { sku: "tea".to_owned() };
/// let open = Cart::fold(Cart::initial(), [&tea]);
/// assert!(matches!(add(&open, "tea"), Ok(None)));
/// assert!(matches!(add(&open, "jam"), Ok(Some(CartEvent::ItemAdded { .. }))));
///
/// let closed = Cart::fold(open, [&CartEvent::CheckedOut]);
/// assert!(add(&closed, "jam").is_err());
///
/// assert_eq!(StreamName::new(Cart::CATEGORY, "c1")?.as_str(), "Cart-c1");
/// # Ok(())
/// # }
/// ```
pub trait Decider: Send + Sync + 'static {
    /// The category of its streams.
    const CATEGORY: &'static str;

    /// The type of stream ids: `str`, `Uuid`, `(Uuid, u32)`.
    type Id: StreamId + ?Sized;

    /// The type of its events.
    type Event: Event;

    /// The type of the state that decisions depend on.
    type State: Clone + Send + Sync + 'static;

    /// The state of a stream without events.
    fn initial() -> Self::State;

    /// The state after an event. Must accept every event.
    fn evolve(state: Self::State, event: &Self::Event) -> Self::State;

    /// The state after several events.
    fn fold<'e>(
        state: Self::State,
        events: impl IntoIterator<Item = &'e Self::Event>,
    ) -> Self::State {
        events.into_iter().fold(state, Self::evolve)
    }

    /// The access strategy. Default: all events.
    fn access() -> Access<Self>
    where
        Self: Sized,
    {
        Access::Unoptimized
    }

    /// The handling of stored events of unknown types. Default: skip them.
    fn unknown() -> Unknown {
        Unknown::Skip
    }
}

/// An access strategy: how the state of a stream is loaded.
///
/// An origin is an event that determines the state without earlier events.
pub enum Access<D: Decider + ?Sized> {
    /// Loads all events.
    Unoptimized,
    /// Loads the last event only.
    LatestKnownEvent,
    /// Loads a snapshot stored as an unfold, which each append replaces.
    Snapshot {
        /// Whether earlier events are irrelevant.
        is_origin: fn(&D::Event) -> bool,
        /// Converts the state into an event.
        to_snapshot: fn(&D::State) -> D::Event,
    },
    /// Loads one of several snapshots, for example in the formats of two program versions.
    MultiSnapshot {
        /// Whether earlier events are irrelevant.
        is_origin: fn(&D::Event) -> bool,
        /// Converts the state into events; the last one is tried first.
        to_snapshots: fn(&D::State) -> Vec<D::Event>,
    },
    /// Loads a snapshot that replaces the events, which are not stored.
    RollingState {
        /// Converts the state into an event.
        to_snapshot: fn(&D::State) -> D::Event,
    },
    /// Uses custom functions.
    Custom {
        /// Whether earlier events are irrelevant.
        is_origin: fn(&D::Event) -> bool,
        /// Returns the events to append and the unfolds to store, from the decided events and the state after them.
        transmute: Transmute<D>,
    },
}

/// The conversion of a [custom](Access::Custom) strategy.
pub type Transmute<D> = fn(
    Vec<<D as Decider>::Event>,
    &<D as Decider>::State,
) -> (Vec<<D as Decider>::Event>, Vec<<D as Decider>::Event>);

/// The result of a decision: events to append, and an output for the caller.
///
/// | type | events | output |
/// |---|---|---|
/// | `()` | none | none |
/// | `Option<E>` | one or none | none |
/// | `Vec<E>`, `[E; N]` | all of them, atomically | none |
/// | `(R, D)` where `D` is a decision without output | those of `D` | `R` |
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a decision about events of type `{E}`",
    note = "a decision is `Vec<{E}>`, `[{E}; N]`, `Option<{E}>`, `()`, or `(R, Vec<{E}>)` with the output `R`"
)]
pub trait Decision<E> {
    /// The output for the caller.
    type Output;

    /// Splits into output and events.
    fn into_parts(self) -> (Self::Output, Vec<E>);
}

impl<E> Decision<E> for () {
    type Output = ();

    fn into_parts(self) -> ((), Vec<E>) {
        ((), Vec::new())
    }
}

impl<E> Decision<E> for Vec<E> {
    type Output = ();

    fn into_parts(self) -> ((), Vec<E>) {
        ((), self)
    }
}

impl<E, const N: usize> Decision<E> for [E; N] {
    type Output = ();

    fn into_parts(self) -> ((), Vec<E>) {
        ((), self.into())
    }
}

impl<E> Decision<E> for Option<E> {
    type Output = ();

    fn into_parts(self) -> ((), Vec<E>) {
        ((), self.into_iter().collect())
    }
}

impl<E, R, D: Decision<E, Output = ()>> Decision<E> for (R, D) {
    type Output = R;

    fn into_parts(self) -> (R, Vec<E>) {
        (self.0, self.1.into_parts().1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<D: Decision<u8>>(decision: D) -> (D::Output, Vec<u8>) {
        decision.into_parts()
    }

    #[test]
    fn decisions_have_several_types() {
        assert_eq!(parts(()), ((), vec![]));
        assert_eq!(parts(vec![1, 2]), ((), vec![1, 2]));
        assert_eq!(parts([1, 2]), ((), vec![1, 2]));
        assert_eq!(parts(Some(1)), ((), vec![1]));
        assert_eq!(parts(None), ((), vec![]));
        assert_eq!(parts(("r", vec![1, 2])), ("r", vec![1, 2]));
        assert_eq!(parts(("r", None)), ("r", vec![]));
        assert_eq!(parts((7, ())), (7, vec![]));
    }
}
