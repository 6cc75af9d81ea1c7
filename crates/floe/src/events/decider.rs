//! Deciders: what a stream is to a program. Events are folded into a state, and a decision turns the state into
//! further events.
//!
//! Nothing here knows of a store: a decider is tested with the [harness](super::harness), and used through a
//! [stream](super::stream).

use super::keys::StreamId;
use super::typed::{Event, Unknown};

/// A category of streams, and how their events become a state.
///
/// It is only named, never made: an empty enum or a unit struct will do. What is decided is not a part of it, but a
/// function from the state to a [`Decision`].
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
/// /// Adds an item; does nothing if it is there already.
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

    /// What tells one stream from another: `str`, `Uuid`, `(Uuid, u32)`.
    type Id: StreamId + ?Sized;

    /// What happens in the streams.
    type Event: Event;

    /// What decisions depend on.
    type State: Clone + Send + Sync + 'static;

    /// The state of a stream without events.
    fn initial() -> Self::State;

    /// The state after an event. Events have happened: there is nothing to refuse.
    fn evolve(state: Self::State, event: &Self::Event) -> Self::State;

    /// The state after several events.
    fn fold<'e>(
        state: Self::State,
        events: impl IntoIterator<Item = &'e Self::Event>,
    ) -> Self::State {
        events.into_iter().fold(state, Self::evolve)
    }

    /// How the state of a stream is found. By default from all of its events.
    fn access() -> Access<Self>
    where
        Self: Sized,
    {
        Access::Unoptimized
    }

    /// What becomes of stored events of a type that the program does not know. By default they are passed over.
    fn unknown() -> Unknown {
        Unknown::Skip
    }
}

/// How the state of a stream is found.
///
/// An origin is an event from which the state can be told without those before it.
pub enum Access<D: Decider + ?Sized> {
    /// From all events.
    Unoptimized,
    /// From the last event alone.
    LatestKnownEvent,
    /// From a snapshot beside the events, which is replaced by each append.
    Snapshot {
        /// Whether nothing before the event counts.
        is_origin: fn(&D::Event) -> bool,
        /// The state as an event.
        to_snapshot: fn(&D::State) -> D::Event,
    },
    /// From one of several snapshots, for instance in the forms of two versions of a program.
    MultiSnapshot {
        /// Whether nothing before the event counts.
        is_origin: fn(&D::Event) -> bool,
        /// The state as events, the one that is looked at first last.
        to_snapshots: fn(&D::State) -> Vec<D::Event>,
    },
    /// From a snapshot, in place of events: what happened is not kept.
    RollingState {
        /// The state as an event.
        to_snapshot: fn(&D::State) -> D::Event,
    },
    /// As the functions say.
    Custom {
        /// Whether nothing before the event counts.
        is_origin: fn(&D::Event) -> bool,
        /// Of what was decided, and the state after it: the events to append, and the unfolds to keep.
        transmute: Transmute<D>,
    },
}

/// What a [custom](Access::Custom) strategy makes of a decision.
pub type Transmute<D> = fn(
    Vec<<D as Decider>::Event>,
    &<D as Decider>::State,
) -> (Vec<<D as Decider>::Event>, Vec<<D as Decider>::Event>);

/// What a decision comes to: events to append, and what the caller is told.
///
/// | type | events | what the caller is told |
/// |---|---|---|
/// | `()` | none | nothing |
/// | `Option<E>` | one or none | nothing |
/// | `Vec<E>`, `[E; N]` | all of them, at once | nothing |
/// | `(R, D)` where `D` is a decision that tells nothing | those of `D` | `R` |
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a decision about events of type `{E}`",
    note = "a decision is `Vec<{E}>`, `[{E}; N]`, `Option<{E}>`, `()`, or `(R, Vec<{E}>)` where the caller is told `R`"
)]
pub trait Decision<E> {
    /// What the caller is told.
    type Output;

    /// What the caller is told, and the events.
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
    fn decisions_come_as_it_suits_them() {
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
