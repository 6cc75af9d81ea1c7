//! The harness for deciders: met expectations pass, and failures show given events, decision and expectation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use floe::Event;
use floe::events::harness::Harness;
use floe::events::{Decider, StreamName};
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Event)]
enum CartEvent {
    ItemAdded { sku: String, quantity: u32 },
    Weighed(f64),
    CheckedOut,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct CartState {
    items: u32,
    is_closed: bool,
}

enum Cart {}

impl Decider for Cart {
    const CATEGORY: &'static str = "Cart";
    type Id = (Uuid, u32);
    type Event = CartEvent;
    type State = CartState;

    fn initial() -> CartState {
        CartState::default()
    }

    fn evolve(mut state: CartState, event: &CartEvent) -> CartState {
        match event {
            CartEvent::ItemAdded { quantity, .. } => state.items += quantity,
            CartEvent::Weighed(_) => {}
            CartEvent::CheckedOut => state.is_closed = true,
        }
        state
    }
}

#[derive(Debug, PartialEq)]
enum CartError {
    Closed,
    Full { items: u32 },
}

fn added(sku: &str, quantity: u32) -> CartEvent {
    CartEvent::ItemAdded {
        sku: sku.to_owned(),
        quantity,
    }
}

/// Adds items one by one. Returns their number afterwards.
fn add(state: &CartState, sku: &str, times: u32) -> Result<(u32, Vec<CartEvent>), CartError> {
    if state.is_closed {
        return Err(CartError::Closed);
    }
    let items = state.items + times;
    if items > 9 {
        return Err(CartError::Full { items });
    }
    Ok((items, (0..times).map(|_| added(sku, 1)).collect()))
}

fn check_out(state: &CartState) -> Option<CartEvent> {
    (!state.is_closed).then_some(CartEvent::CheckedOut)
}

/// The panic message of a failing test.
fn failure<T>(test: impl FnOnce() -> T) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(test)) else {
        return "the test passes".to_owned();
    };
    *panic.downcast::<String>().unwrap()
}

#[test]
fn met_expectations_pass() {
    Harness::<Cart>::new()
        .given([added("tea", 2)])
        .given(vec![added("jam", 3)])
        .when(|state| add(state, "tea", 2))
        .then([added("tea", 1), added("tea", 1)])
        .then_result(7);
    Harness::<Cart>::new()
        .given([CartEvent::CheckedOut])
        .when(|state| add(state, "tea", 1))
        .then_err(CartError::Closed);
    Harness::<Cart>::new()
        .when(|state| add(state, "tea", 10))
        .then_error(|error| matches!(error, CartError::Full { items: 10 }));
    Harness::<Cart>::new()
        .when(|state| add(state, "tea", 0))
        .then_nothing()
        .then_result(0);
}

#[test]
fn infallible_decisions_need_no_result() {
    Harness::<Cart>::new()
        .when_infallible(check_out)
        .then([CartEvent::CheckedOut]);
    Harness::<Cart>::new()
        .given([CartEvent::CheckedOut])
        .when_infallible(check_out)
        .then_nothing();
    Harness::<Cart>::new()
        .given([added("tea", 2)])
        .when_infallible(|state| (state.items, ()))
        .then_result(2);
}

#[test]
fn unexpected_events_are_shown_next_to_the_expected_ones() {
    let test = || {
        Harness::<Cart>::new()
            .given([added("jam", 3)])
            .when(|state| add(state, "tea", 2))
            .then([
                added("tea", 1),
                CartEvent::Weighed(1.5),
                CartEvent::CheckedOut,
            ])
    };
    assert_eq!(
        failure(test),
        r#"unexpected events
given
  ItemAdded { sku: "jam", quantity: 3 }
when
  result 5
  ItemAdded { sku: "tea", quantity: 1 }
  ItemAdded { sku: "tea", quantity: 1 }
then
  expected                              | actual
  ItemAdded { sku: "tea", quantity: 1 } | ItemAdded { sku: "tea", quantity: 1 }
! Weighed(1.5)                          | ItemAdded { sku: "tea", quantity: 1 }
! CheckedOut                            | -
"#
    );
}

#[test]
fn error_instead_of_events_is_shown() {
    let test = || {
        Harness::<Cart>::new()
            .given([CartEvent::CheckedOut])
            .when(|state| add(state, "tea", 1))
            .then([added("tea", 1)])
    };
    assert_eq!(
        failure(test),
        r#"unexpected events
given
  CheckedOut
when
  error Closed
then
  expected                              | actual
! ItemAdded { sku: "tea", quantity: 1 } | -
"#
    );
    // An error does not satisfy an expectation of no events.
    let test = || {
        Harness::<Cart>::new()
            .given([CartEvent::CheckedOut])
            .when(|state| add(state, "tea", 1))
            .then_nothing()
    };
    assert!(failure(test).contains("error Closed"));
}

#[test]
fn unexpected_results_and_errors_are_shown() {
    let decided = || Harness::<Cart>::new().when(|state| add(state, "tea", 1));
    assert_eq!(
        failure(|| decided().then_result(2)),
        "unexpected result\ngiven\n  no events\nwhen\n  result 1\n  \
         ItemAdded { sku: \"tea\", quantity: 1 }\nthen\n  expected result 2\n"
    );
    assert_eq!(
        failure(|| decided().then_err(CartError::Closed)),
        "unexpected error\ngiven\n  no events\nwhen\n  result 1\n  \
         ItemAdded { sku: \"tea\", quantity: 1 }\nthen\n  expected error Closed\n"
    );
    let rejected = || Harness::<Cart>::new().when(|state| add(state, "tea", 10));
    assert_eq!(
        failure(|| rejected().then_error(|error| *error == CartError::Closed)),
        "unexpected error\ngiven\n  no events\nwhen\n  error Full { items: 10 }\nthen\n  \
         expected an error that satisfies the check\n"
    );
}

#[test]
fn event_with_a_broken_round_trip_is_rejected() {
    // JSON cannot represent infinity.
    let given = || Harness::<Cart>::new().given([CartEvent::Weighed(f64::INFINITY)]);
    assert_eq!(
        failure(given),
        "an event changes when it is encoded and decoded\nencoded\n  Weighed(inf)\ndecoded\n  error cannot decode \
         the body of an event: invalid type: null, expected f64 at line 1 column 4: type=Weighed\n"
    );
    let decided =
        || Harness::<Cart>::new().when_infallible(|_| [CartEvent::Weighed(f64::NEG_INFINITY)]);
    assert!(
        failure(decided).starts_with(
            "an event changes when it is encoded and decoded\nencoded\n  Weighed(-inf)"
        )
    );
}

#[test]
fn stream_ids_can_have_several_parts() {
    fn name<D: Decider>(id: &D::Id) -> String {
        StreamName::new(D::CATEGORY, id).unwrap().to_string()
    }
    let id = (Uuid::from_u128(0xab), 7);
    assert_eq!(name::<Cart>(&id), "Cart-000000000000000000000000000000ab_7");
}
