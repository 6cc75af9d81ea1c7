//! Tests deciders without a store: given events, when a decision is made, then events are expected.
//!
//! Every event is also encoded and decoded, so that a type with a broken round trip fails here and not in a stored
//! stream.

use std::convert::Infallible;
use std::fmt::{Debug, Write};

use super::decider::{Decider, Decision};
use super::typed::{Event, Metadata, Unknown, of_data, to_data};

/// A given-when-then test of a decider.
///
/// A failed `then` panics, and shows the given events, the decision and the expectation.
///
/// ```
/// use floe::Event;
/// use floe::events::Decider;
/// use floe::events::harness::Harness;
///
/// #[derive(Debug, PartialEq, Event)]
/// enum DoorEvent { Opened, Closed { by: String } }
///
/// enum Door {}
///
/// impl Decider for Door {
///     const CATEGORY: &'static str = "Door";
///     type Id = str;
///     type Event = DoorEvent;
///     type State = bool;
///
///     fn initial() -> bool { false }
///
///     fn evolve(_: bool, event: &DoorEvent) -> bool { matches!(event, DoorEvent::Opened) }
/// }
///
/// #[derive(Debug, PartialEq)]
/// struct AlreadyClosed;
///
/// fn close(is_open: bool, by: &str) -> Result<Vec<DoorEvent>, AlreadyClosed> {
///     if !is_open {
///         return Err(AlreadyClosed);
///     }
///     Ok(vec![DoorEvent::Closed { by: by.to_owned() }])
/// }
///
/// Harness::<Door>::new()
///     .given([DoorEvent::Opened])
///     .when(|is_open| close(*is_open, "ann"))
///     .then([DoorEvent::Closed { by: "ann".to_owned() }]);
///
/// Harness::<Door>::new()
///     .when(|is_open| close(*is_open, "ann"))
///     .then_err(AlreadyClosed);
/// ```
#[derive(Debug)]
#[must_use = "a harness decides nothing before `when`"]
pub struct Harness<D: Decider> {
    given: Vec<D::Event>,
}

/// The outcome of a decision, to compare with expectations.
#[derive(Debug)]
pub struct Decided<D: Decider, R, X> {
    given: Vec<D::Event>,
    outcome: Result<(R, Vec<D::Event>), X>,
}

impl<D: Decider> Default for Harness<D> {
    fn default() -> Self {
        Self { given: Vec::new() }
    }
}

impl<D: Decider<Event: Debug + PartialEq>> Harness<D> {
    /// Starts with a stream without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds events to the stream.
    ///
    /// # Panics
    ///
    /// If an event changes when it is encoded and decoded.
    #[track_caller]
    pub fn given(mut self, events: impl IntoIterator<Item = D::Event>) -> Self {
        for event in events {
            check_codec(&event);
            self.given.push(event);
        }
        self
    }

    /// Makes a decision on the state of the stream.
    ///
    /// # Panics
    ///
    /// If a decided event changes when it is encoded and decoded.
    #[track_caller]
    #[must_use = "nothing is checked before a `then`"]
    pub fn when<C, X>(
        self,
        decide: impl FnOnce(&D::State) -> Result<C, X>,
    ) -> Decided<D, C::Output, X>
    where
        C: Decision<D::Event>,
    {
        let state = D::fold(D::initial(), &self.given);
        let outcome = decide(&state).map(Decision::into_parts);
        if let Ok((_, events)) = &outcome {
            events.iter().for_each(check_codec);
        }
        Decided {
            given: self.given,
            outcome,
        }
    }

    /// Makes a decision that cannot fail.
    ///
    /// # Panics
    ///
    /// If a decided event changes when it is encoded and decoded.
    #[track_caller]
    #[must_use = "nothing is checked before a `then`"]
    pub fn when_infallible<C>(
        self,
        decide: impl FnOnce(&D::State) -> C,
    ) -> Decided<D, C::Output, Infallible>
    where
        C: Decision<D::Event>,
    {
        self.when(|state| Ok(decide(state)))
    }
}

impl<D, R, X> Decided<D, R, X>
where
    D: Decider<Event: Debug + PartialEq>,
    R: Debug,
    X: Debug,
{
    /// Expects exactly these events, in order.
    ///
    /// # Panics
    ///
    /// If there are other events, or an error.
    #[track_caller]
    pub fn then(self, expected: impl IntoIterator<Item = D::Event>) -> Self {
        let expected: Vec<_> = expected.into_iter().collect();
        let is_met = matches!(&self.outcome, Ok((_, events)) if *events == expected);
        let comparison = side_by_side(&expected, self.events());
        self.check(is_met, "unexpected events", &comparison)
    }

    /// Expects no events and no error.
    ///
    /// # Panics
    ///
    /// If there are any.
    #[track_caller]
    pub fn then_nothing(self) -> Self {
        self.then([])
    }

    /// Expects this output for the caller.
    ///
    /// # Panics
    ///
    /// If the output differs, or there is an error.
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tests pass literals")]
    pub fn then_result(self, expected: R) -> Self
    where
        R: PartialEq,
    {
        let is_met = matches!(&self.outcome, Ok((result, _)) if *result == expected);
        let expected = format!("  expected result {expected:?}\n");
        self.check(is_met, "unexpected result", &expected)
    }

    /// Expects this error.
    ///
    /// # Panics
    ///
    /// If there is another error or none.
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tests pass literals")]
    pub fn then_err(self, expected: X) -> Self
    where
        X: PartialEq,
    {
        let is_met = matches!(&self.outcome, Err(error) if *error == expected);
        let expected = format!("  expected error {expected:?}\n");
        self.check(is_met, "unexpected error", &expected)
    }

    /// Expects an error that satisfies the predicate.
    ///
    /// # Panics
    ///
    /// If the error does not satisfy it, or there is no error.
    #[track_caller]
    pub fn then_error(self, is_expected: impl FnOnce(&X) -> bool) -> Self {
        let is_met = self.outcome.as_ref().err().is_some_and(is_expected);
        let expected = "  expected an error that satisfies the check\n";
        self.check(is_met, "unexpected error", expected)
    }

    #[track_caller]
    fn check(self, is_met: bool, what: &str, expected: &str) -> Self {
        assert!(is_met, "{}", self.report(what, expected));
        self
    }

    fn events(&self) -> &[D::Event] {
        self.outcome.as_ref().map_or(&[], |(_, events)| events)
    }

    fn report(&self, what: &str, expected: &str) -> String {
        let mut report = format!("{what}\ngiven\n{}", lines(&self.given));
        report += "when\n";
        report += &match &self.outcome {
            Ok((result, events)) => format!("  result {result:?}\n{}", lines(events)),
            Err(error) => format!("  error {error:?}\n"),
        };
        report + "then\n" + expected
    }
}

/// Formats values, one per line.
fn lines<T: Debug>(values: &[T]) -> String {
    let mut lines: String = values
        .iter()
        .map(|value| format!("  {value:?}\n"))
        .collect();
    if lines.is_empty() {
        lines.push_str("  no events\n");
    }
    lines
}

/// Formats expected and actual events in columns. Marks lines that differ.
fn side_by_side<E: Debug + PartialEq>(expected: &[E], actual: &[E]) -> String {
    let shown =
        |event: Option<&E>| event.map_or_else(|| "-".to_owned(), |event| format!("{event:?}"));
    let rows = (0..expected.len().max(actual.len())).map(|at| (expected.get(at), actual.get(at)));
    let rows: Vec<_> = rows
        .map(|(left, right)| (left != right, shown(left), shown(right)))
        .collect();
    let widths = rows.iter().map(|(_, left, _)| left.chars().count());
    let width = widths.max().unwrap_or_default().max("expected".len());
    let mut table = format!("  {:width$} | actual\n", "expected");
    for (differs, left, right) in rows {
        let mark = if differs { '!' } else { ' ' };
        // Writing to a string does not fail.
        let _ = writeln!(table, "{mark} {left:width$} | {right}");
    }
    table
}

/// Checks that an event does not change when it is encoded and decoded.
#[track_caller]
fn check_codec<E: Event + Debug + PartialEq>(event: &E) {
    let read =
        to_data(event, &Metadata::new()).and_then(|stored| of_data::<E>(&stored, Unknown::Refuse));
    assert!(
        matches!(&read, Ok(Some(read)) if read == event),
        "an event changes when it is encoded and decoded\nencoded\n  {event:?}\ndecoded\n  {}\n",
        match &read {
            Ok(Some(read)) => format!("{read:?}"),
            Ok(None) => "nothing".to_owned(),
            Err(error) => format!("error {error}"),
        }
    );
}
