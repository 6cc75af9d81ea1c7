//! Searches for an order of the operations of one key that explains all answers.
//!
//! The search of Wing and Gong: choose one of the operations that may come next (those invoked before
//! every answer still to come), see whether it can happen in the state, go on, go back when stuck. With
//! Lowe's memory of configurations (which operations are done, and the state), so that two ways to the
//! same place are walked once. Four short cuts keep it fast; none of them loses an order that explains:
//!
//! - An operation that only observes, and whose answer fits the state, is taken at once. It changes
//!   nothing and takes nothing away.
//! - A state is not left while an operation still to come needs it and none can bring it back. Where every
//!   value is written once, this leaves hardly any choice.
//! - An operation of unknown outcome is optional, so of two configurations that differ only in optional
//!   operations, the one that used fewer can do all that the other can.
//! - An optional operation is taken only if something that depends on the state follows at once; without
//!   that, the same order without it explains as much. Of equal ones, the earliest is taken first.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::bits::{Bits, is_subset};
use super::supply::Supply;
use super::{Effect, Event, Operation};
use crate::history::Stamp;

/// Operations of one key and the state before them.
pub(super) struct Problem<'a, O: Operation> {
    /// Those that must have a place in the order, by invocation.
    required: Vec<Required<'a, O>>,
    /// Those that may have one, by invocation. Observations are not among them.
    optional: Vec<Optional<'a, O>>,
    start: O::State,
}

struct Required<'a, O> {
    operation: &'a O,
    invoked: Stamp,
    returned: Stamp,
    /// The first operation invoked after this one returned.
    reach: usize,
}

struct Optional<'a, O> {
    operation: &'a O,
    invoked: Stamp,
    /// The equal operation before this one, which is used first.
    twin: Option<usize>,
}

/// Whether an order was found.
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
    /// All operations of a key, which are sorted by invocation.
    pub(super) fn whole<K>(events: &[&'a Event<K, O>]) -> Self {
        Self::stretch(events, 0, Stamp::MAX, O::initial())
    }

    /// What happened from one moment until another, both included, from a state at the beginning. An
    /// operation that reaches beyond either end may have had its effect outside, so it is optional.
    pub(super) fn stretch<K>(
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
        let twin = self
            .optional
            .iter()
            .rposition(|other| other.operation == operation);
        self.optional.push(Optional {
            operation,
            invoked,
            twin,
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

/// What was done to come to a configuration, to be undone when it leads nowhere.
struct Step<S> {
    choice: Choice,
    absorbed: Vec<usize>,
    state_before: S,
    first_before: usize,
}

/// A configuration on the way, and what is still to be tried from it.
struct Frame<S> {
    /// Absent for the start.
    step: Option<Step<S>>,
    /// Whether it was come to by an optional operation on which nothing depends yet.
    dangling: bool,
    /// To be tried, last first.
    choices: Vec<Choice>,
    /// Whether the optional operations are among the choices.
    widened: bool,
}

/// What tells two configurations apart, but for the optional operations used.
#[derive(PartialEq, Eq, Hash)]
struct Place<S> {
    first: usize,
    window: Box<[u64]>,
    state: S,
    dangling: bool,
}

struct Search<'p, 'a, O: Operation> {
    problem: &'p Problem<'a, O>,
    state: O::State,
    /// Which required operations have their place.
    done: Bits,
    /// The first that has none.
    first: usize,
    /// Which optional operations were used.
    used: Bits,
    /// Which states are still needed, and which can still be made.
    supply: Supply<O::State>,
    /// For each place, the smallest sets of optional operations with which it was come to.
    seen: HashMap<Place<O::State>, Vec<Box<[u64]>>>,
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
            supply: Supply::of(
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
        if self.start_is_hopeless() {
            return Outcome::Contradicted;
        }
        self.absorb();
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
            if step.state_before != self.state && self.supply.lacks(&step.state_before) {
                self.undo(step);
                continue;
            }
            let dangling = matches!(choice, Choice::Optional(_)) && step.absorbed.is_empty();
            if self.is_new(dangling) {
                stack.push(self.frame(Some(step), dangling));
            } else {
                self.undo(step);
            }
        }
        Outcome::Contradicted
    }

    /// Whether an operation needs a state that none makes. From an unknown state, anything can be needed.
    fn start_is_hopeless(&self) -> bool {
        self.state != O::unknown() && self.supply.lacks_any_but(&self.state)
    }

    fn frame(&self, step: Option<Step<O::State>>, dangling: bool) -> Frame<O::State> {
        let mut candidates = self.candidates();
        if dangling {
            candidates.retain(|&c| self.required(c).effect() != Effect::Overwrites);
        }
        // The one that returned first is the likeliest to come first, so it goes to the end.
        candidates.sort_by_key(|&c| {
            let returned = self.problem.required.get(c).map(|r| r.returned);
            std::cmp::Reverse(returned)
        });
        Frame {
            step,
            dangling,
            choices: candidates.into_iter().map(Choice::Required).collect(),
            widened: false,
        }
    }

    fn next_choice(&self, frame: &mut Frame<O::State>) -> Option<Choice> {
        if frame.choices.is_empty() && !frame.widened {
            frame.widened = true;
            frame.choices = self.optional_choices(frame.dangling);
        }
        frame.choices.pop()
    }

    /// The required operations that may come next: invoked before every answer still to come.
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

    /// The optional operations that may come next and on which something then depends.
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
            .filter(|(at, o)| !self.used.has(*at) && o.twin.is_none_or(|t| self.used.has(t)))
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
                            || self.twin_follows(*at))
                })
            })
            .map(|(at, _)| Choice::Optional(*at))
            .collect()
    }

    /// Whether the equal operation that becomes ready by the choice can follow in any state.
    fn twin_follows(&self, chosen: usize) -> bool {
        (self.problem.optional.iter().skip(chosen))
            .any(|o| o.twin == Some(chosen) && o.operation.follows_any())
    }

    /// Gives the operation the next place, if it can happen in the state.
    fn take(&mut self, choice: Choice) -> Option<Step<O::State>> {
        let operation = match choice {
            Choice::Required(at) => self.required(at),
            Choice::Optional(at) => self.optional(at),
        };
        let state = operation.step(&self.state)?;
        let first_before = self.first;
        match choice {
            Choice::Required(at) => self.settle(at),
            Choice::Optional(at) => {
                self.used.set(at);
                self.supply.take_optional(at);
            }
        }
        let state_before = std::mem::replace(&mut self.state, state);
        Some(Step {
            choice,
            absorbed: self.absorb(),
            state_before,
            first_before,
        })
    }

    /// Takes every operation that observes the state as it is, until none is left.
    fn absorb(&mut self) -> Vec<usize> {
        let mut absorbed = Vec::new();
        loop {
            while self.first < self.problem.required.len() && self.done.has(self.first) {
                self.first += 1;
            }
            let before = absorbed.len();
            for at in self.candidates() {
                let operation = self.required(at);
                if operation.effect() == Effect::Observes
                    && operation.step(&self.state).as_ref() == Some(&self.state)
                {
                    self.settle(at);
                    absorbed.push(at);
                }
            }
            if absorbed.len() == before {
                return absorbed;
            }
        }
    }

    fn undo(&mut self, step: Step<O::State>) {
        for at in step.absorbed {
            self.unsettle(at);
        }
        match step.choice {
            Choice::Required(at) => self.unsettle(at),
            Choice::Optional(at) => {
                self.used.clear(at);
                self.supply.give_optional(at);
            }
        }
        self.state = step.state_before;
        self.first = step.first_before;
    }

    fn settle(&mut self, required: usize) {
        self.done.set(required);
        self.supply.take_required(required);
    }

    fn unsettle(&mut self, required: usize) {
        self.done.clear(required);
        self.supply.give_required(required);
    }

    /// Whether the configuration was not come to before, with the same optional operations or fewer.
    fn is_new(&mut self, dangling: bool) -> bool {
        let reach = self
            .problem
            .required
            .get(self.first)
            .map_or(self.first, |r| r.reach);
        let place = Place {
            first: self.first,
            window: self.done.words(self.first, reach),
            state: self.state.clone(),
            dangling,
        };
        let used = self.used.words(0, self.problem.optional.len());
        let smallest = self.seen.entry(place).or_default();
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

/// How an operation can follow another.
trait Follow: Operation {
    /// Whether it can happen in the state, and not in every other.
    fn depends_on(&self, state: &Self::State) -> bool {
        self.effect() != Effect::Overwrites && self.step(state).is_some()
    }

    /// Whether it can happen in any state, and what it leaves depends on it.
    fn follows_any(&self) -> bool {
        self.effect() == Effect::Depends && self.needs().is_none()
    }
}

impl<O: Operation> Follow for O {}

/// The optional operations that are ready and depend on the state before them.
struct Followers<S> {
    /// The states on which some depend.
    needed: HashSet<S>,
    /// Those that can happen in any state.
    of_any: Vec<usize>,
}

impl<S: Clone + Eq + Hash> Followers<S> {
    fn of<O: Operation<State = S>>(ready: &[(usize, &O)]) -> Self {
        let depends = || ready.iter().filter(|(_, o)| o.effect() == Effect::Depends);
        Self {
            needed: depends().filter_map(|(_, o)| o.needs()).collect(),
            of_any: depends()
                .filter(|(_, o)| o.follows_any())
                .map(|(at, _)| *at)
                .collect(),
        }
    }

    /// Whether one other than `chosen` can happen in the state that it leaves.
    fn depend_on(&self, state: &S, chosen: usize) -> bool {
        self.needed.contains(state) || self.of_any.iter().any(|&at| at != chosen)
    }
}
