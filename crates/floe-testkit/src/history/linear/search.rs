//! Searches for an order of the operations of a key that explains all responses.
//!
//! The algorithm is that of Wing and Gong: choose an operation that may come next (one that was invoked before
//! every pending response), check that it can happen in the current state, continue, and backtrack if stuck. Lowe's
//! memoisation of configurations (the operations done, and the state) avoids visiting the same configuration twice.
//! Four optimisations keep it fast; none of them loses an explaining order:
//!
//! - An operation that only observes, and whose response fits the state, is done at once: it changes nothing and
//!   excludes nothing.
//! - A state is kept while a pending operation needs it and no pending operation can restore it. If every value is
//!   written once, this leaves hardly any choice.
//! - Operations of unknown outcome are optional. Of two configurations that differ only in the optional operations
//!   used, the one that used fewer can do everything that the other can.
//! - An optional operation is done only if an operation that depends on the state follows directly; otherwise the
//!   same order without it explains as much. Of equal optional operations, the earliest is used first.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::bits::{Bits, is_subset};
use super::states::StateCounts;
use super::{Effect, Event, Operation};
use crate::history::Stamp;

/// The operations of a key and the state before them.
pub(super) struct Problem<'a, O: Operation> {
    /// Operations that must occur in the order, sorted by invocation.
    required: Vec<Required<'a, O>>,
    /// Operations that may occur in the order, sorted by invocation. They do not include observations.
    optional: Vec<Optional<'a, O>>,
    start: O::State,
}

struct Required<'a, O> {
    operation: &'a O,
    invoked: Stamp,
    returned: Stamp,
    /// The index of the first operation invoked after this one returned.
    reach: usize,
}

struct Optional<'a, O> {
    operation: &'a O,
    invoked: Stamp,
    /// The previous equal operation, which is used first.
    previous_equal: Option<usize>,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Explained,
    Contradicted,
    Undecided,
}

pub(super) struct Found {
    pub(super) outcome: Outcome,
    pub(super) configurations: u64,
}

impl<'a, O: Operation> Problem<'a, O> {
    /// All operations of a key. `events` must be sorted by invocation.
    pub(super) fn whole<K>(events: &[&'a Event<K, O>]) -> Self {
        Self::interval(events, 0, Stamp::MAX, O::initial())
    }

    /// The operations of an interval, both ends included, from a given state. An operation that extends beyond the
    /// interval may have taken effect outside, so it is optional.
    pub(super) fn interval<K>(
        events: &[&'a Event<K, O>],
        from: Stamp,
        until: Stamp,
        start: O::State,
    ) -> Self {
        let mut problem = Self {
            required: Vec::new(),
            optional: Vec::new(),
            start,
        };
        for event in events.iter().filter(|e| e.invoked <= until) {
            match event.returned {
                Some(returned) if returned < from => {}
                Some(returned) if event.invoked >= from && returned <= until => {
                    problem.required.push(Required {
                        operation: &event.operation,
                        invoked: event.invoked,
                        returned,
                        reach: 0,
                    });
                }
                _ => problem.push_optional(&event.operation, event.invoked),
            }
        }
        problem.find_reach();
        problem
    }

    pub(super) fn solve(&self, configurations_max: u64) -> Found {
        Search::new(self).run(configurations_max)
    }

    fn push_optional(&mut self, operation: &'a O, invoked: Stamp) {
        if operation.effect() == Effect::Observes {
            return;
        }
        let previous_equal = self
            .optional
            .iter()
            .rposition(|other| other.operation == operation);
        self.optional.push(Optional {
            operation,
            invoked,
            previous_equal,
        });
    }

    fn find_reach(&mut self) {
        let invoked: Vec<Stamp> = self.required.iter().map(|r| r.invoked).collect();
        for required in &mut self.required {
            required.reach = invoked.partition_point(|&i| i <= required.returned);
        }
    }
}

#[derive(Clone, Copy)]
enum Choice {
    Required(usize),
    Optional(usize),
}

/// A step of the search, with what is needed to undo it.
struct Step<S> {
    choice: Choice,
    observations: Vec<usize>,
    state_before: S,
    first_before: usize,
}

/// A configuration on the stack, with the choices left to try.
struct Frame<S> {
    /// `None` for the initial configuration.
    step: Option<Step<S>>,
    /// Whether it was reached by an optional operation on which no other depends yet.
    dangling: bool,
    /// The choices left, in reverse order.
    choices: Vec<Choice>,
    /// Whether the choices include the optional operations.
    has_optional: bool,
}

/// Identifies a configuration, except for the optional operations used.
#[derive(PartialEq, Eq, Hash)]
struct Configuration<S> {
    first: usize,
    window: Box<[u64]>,
    state: S,
    dangling: bool,
}

struct Search<'p, 'a, O: Operation> {
    problem: &'p Problem<'a, O>,
    state: O::State,
    /// The required operations that are done.
    done: Bits,
    /// The first required operation that is not done.
    first: usize,
    /// The optional operations used.
    used: Bits,
    /// The states that pending operations need and make.
    states: StateCounts<O::State>,
    /// For each configuration, the minimal sets of optional operations with which it was reached.
    seen: HashMap<Configuration<O::State>, Vec<Box<[u64]>>>,
    configurations: u64,
}

impl<'p, 'a, O: Operation> Search<'p, 'a, O> {
    fn new(problem: &'p Problem<'a, O>) -> Self {
        Self {
            problem,
            state: problem.start.clone(),
            done: Bits::zeros(problem.required.len()),
            first: 0,
            used: Bits::zeros(problem.optional.len()),
            states: StateCounts::of(
                problem.required.iter().map(|r| r.operation),
                problem.optional.iter().map(|o| o.operation),
            ),
            seen: HashMap::new(),
            configurations: 0,
        }
    }

    fn run(mut self, configurations_max: u64) -> Found {
        let outcome = self.search(configurations_max);
        Found {
            outcome,
            configurations: self.configurations,
        }
    }

    fn search(&mut self, configurations_max: u64) -> Outcome {
        if self.start_is_contradictory() {
            return Outcome::Contradicted;
        }
        self.do_observations();
        let mut stack = vec![self.frame(None, false)];
        while let Some(mut frame) = stack.pop() {
            if self.first == self.problem.required.len() {
                return Outcome::Explained;
            }
            let Some(choice) = self.next_choice(&mut frame) else {
                if let Some(step) = frame.step {
                    self.undo(step);
                }
                continue;
            };
            stack.push(frame);
            let Some(step) = self.take(choice) else {
                continue;
            };
            if self.configurations == configurations_max {
                return Outcome::Undecided;
            }
            if step.state_before != self.state && self.states.is_missing(&step.state_before) {
                self.undo(step);
                continue;
            }
            let dangling = matches!(choice, Choice::Optional(_)) && step.observations.is_empty();
            if self.is_new(dangling) {
                stack.push(self.frame(Some(step), dangling));
            } else {
                self.undo(step);
            }
        }
        Outcome::Contradicted
    }

    /// Whether an operation needs a state that no operation makes. If the start is unknown, it may be any state.
    fn start_is_contradictory(&self) -> bool {
        self.state != O::unknown() && self.states.is_any_missing_except(&self.state)
    }

    fn frame(&self, step: Option<Step<O::State>>, dangling: bool) -> Frame<O::State> {
        let mut candidates = self.candidates();
        if dangling {
            candidates.retain(|&c| self.required(c).effect() != Effect::Overwrites);
        }
        // The operation that returned first probably comes first; choices are taken from the end.
        candidates.sort_by_key(|&c| {
            let returned = self.problem.required.get(c).map(|r| r.returned);
            std::cmp::Reverse(returned)
        });
        Frame {
            step,
            dangling,
            choices: candidates.into_iter().map(Choice::Required).collect(),
            has_optional: false,
        }
    }

    fn next_choice(&self, frame: &mut Frame<O::State>) -> Option<Choice> {
        if frame.choices.is_empty() && !frame.has_optional {
            frame.has_optional = true;
            frame.choices = self.optional_choices(frame.dangling);
        }
        frame.choices.pop()
    }

    /// The required operations that may come next: those invoked before every pending response.
    fn candidates(&self) -> Vec<usize> {
        let mut earliest = Stamp::MAX;
        let mut candidates = Vec::new();
        for (at, required) in self.problem.required.iter().enumerate().skip(self.first) {
            if required.invoked > earliest {
                break;
            }
            if !self.done.has(at) {
                earliest = earliest.min(required.returned);
                candidates.push(at);
            }
        }
        candidates
    }

    /// The optional operations that may come next and on which a later operation can depend.
    fn optional_choices(&self, dangling: bool) -> Vec<Choice> {
        let candidates = self.candidates();
        let earliest = candidates
            .iter()
            .filter_map(|&c| self.problem.required.get(c).map(|r| r.returned))
            .min()
            .unwrap_or(Stamp::MAX);
        let ready: Vec<(usize, &O)> = self
            .problem
            .optional
            .iter()
            .enumerate()
            .take_while(|(_, o)| o.invoked <= earliest)
            .filter(|(at, o)| {
                !self.used.has(*at) && o.previous_equal.is_none_or(|t| self.used.has(t))
            })
            .map(|(at, o)| (at, o.operation))
            .collect();
        let followers = Followers::of(&ready);
        ready
            .iter()
            .filter(|(_, o)| !dangling || o.effect() == Effect::Depends)
            .filter(|(at, o)| {
                o.step(&self.state).is_some_and(|next| {
                    let required = |&c: &usize| self.required(c).depends_on(&next);
                    next != self.state
                        && (candidates.iter().any(required)
                            || followers.depend_on(&next, *at)
                            || self.next_equal_follows(*at))
                })
            })
            .map(|(at, _)| Choice::Optional(*at))
            .collect()
    }

    /// Whether the equal operation that becomes available can follow in any state.
    fn next_equal_follows(&self, chosen: usize) -> bool {
        (self.problem.optional.iter().skip(chosen))
            .any(|o| o.previous_equal == Some(chosen) && o.operation.follows_any())
    }

    /// Does an operation, if it can happen in the state.
    fn take(&mut self, choice: Choice) -> Option<Step<O::State>> {
        let operation = match choice {
            Choice::Required(at) => self.required(at),
            Choice::Optional(at) => self.optional(at),
        };
        let state = operation.step(&self.state)?;
        let first_before = self.first;
        match choice {
            Choice::Required(at) => self.mark_done(at),
            Choice::Optional(at) => {
                self.used.set(at);
                self.states.optional_used(at);
            }
        }
        let state_before = std::mem::replace(&mut self.state, state);
        Some(Step {
            choice,
            observations: self.do_observations(),
            state_before,
            first_before,
        })
    }

    /// Does all operations that observe the current state, until none is left.
    fn do_observations(&mut self) -> Vec<usize> {
        let mut observations = Vec::new();
        loop {
            while self.first < self.problem.required.len() && self.done.has(self.first) {
                self.first += 1;
            }
            let before = observations.len();
            for at in self.candidates() {
                let operation = self.required(at);
                if operation.effect() == Effect::Observes
                    && operation.step(&self.state).as_ref() == Some(&self.state)
                {
                    self.mark_done(at);
                    observations.push(at);
                }
            }
            if observations.len() == before {
                return observations;
            }
        }
    }

    fn undo(&mut self, step: Step<O::State>) {
        for at in step.observations {
            self.mark_pending(at);
        }
        match step.choice {
            Choice::Required(at) => self.mark_pending(at),
            Choice::Optional(at) => {
                self.used.clear(at);
                self.states.optional_unused(at);
            }
        }
        self.state = step.state_before;
        self.first = step.first_before;
    }

    fn mark_done(&mut self, required: usize) {
        self.done.set(required);
        self.states.required_done(required);
    }

    fn mark_pending(&mut self, required: usize) {
        self.done.clear(required);
        self.states.required_undone(required);
    }

    /// Whether the configuration was not reached before with the same or fewer optional operations.
    fn is_new(&mut self, dangling: bool) -> bool {
        let reach = self
            .problem
            .required
            .get(self.first)
            .map_or(self.first, |r| r.reach);
        let configuration = Configuration {
            first: self.first,
            window: self.done.words(self.first, reach),
            state: self.state.clone(),
            dangling,
        };
        let used = self.used.words(0, self.problem.optional.len());
        let smallest = self.seen.entry(configuration).or_default();
        if smallest.iter().any(|other| is_subset(other, &used)) {
            return false;
        }
        smallest.retain(|other| !is_subset(&used, other));
        smallest.push(used);
        self.configurations += 1;
        true
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "choices are made from the indices of this vector"
    )]
    fn required(&self, at: usize) -> &'a O {
        self.problem.required[at].operation
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "choices are made from the indices of this vector"
    )]
    fn optional(&self, at: usize) -> &'a O {
        self.problem.optional[at].operation
    }
}

/// How an operation can follow another one.
trait Follow: Operation {
    /// Whether it can happen in this state, but not in every state.
    fn depends_on(&self, state: &Self::State) -> bool {
        self.effect() != Effect::Overwrites && self.step(state).is_some()
    }

    /// Whether it can happen in any state and the state after it depends on the state before.
    fn follows_any(&self) -> bool {
        self.effect() == Effect::Depends && self.needs().is_none()
    }
}

impl<O: Operation> Follow for O {}

/// The available optional operations that depend on the state before them.
struct Followers<S> {
    /// The states that some of them depend on.
    needed: HashSet<S>,
    /// Those that can happen in any state.
    any_state: Vec<usize>,
}

impl<S: Clone + Eq + Hash> Followers<S> {
    fn of<O: Operation<State = S>>(ready: &[(usize, &O)]) -> Self {
        let depends = || ready.iter().filter(|(_, o)| o.effect() == Effect::Depends);
        Self {
            needed: depends().filter_map(|(_, o)| o.needs()).collect(),
            any_state: depends()
                .filter(|(_, o)| o.follows_any())
                .map(|(at, _)| *at)
                .collect(),
        }
    }

    /// Whether an operation other than `chosen` can happen in the state after it.
    fn depend_on(&self, state: &S, chosen: usize) -> bool {
        self.needed.contains(state) || self.any_state.iter().any(|&at| at != chosen)
    }
}
