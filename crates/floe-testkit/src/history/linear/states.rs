//! Counts which states the pending operations need and which they can make.

use std::collections::HashMap;
use std::hash::Hash;

use super::{Effect, Operation};

/// The states that one operation needs and makes, as indexes.
struct StateUse {
    needs: Option<usize>,
    makes: Makes,
}

enum Makes {
    Nothing,
    State(usize),
    /// A state that depends on the one before.
    Any,
}

/// The states that pending operations need and make. Needs of optional operations do not count, because those can
/// be left out.
pub(super) struct StateCounts<S> {
    states: HashMap<S, usize>,
    counts: Counts,
    required: Vec<StateUse>,
    optional: Vec<StateUse>,
}

impl<S: Clone + Eq + Hash> StateCounts<S> {
    pub(super) fn of<'a, O>(
        required: impl Iterator<Item = &'a O>,
        optional: impl Iterator<Item = &'a O>,
    ) -> Self
    where
        O: Operation<State = S> + 'a,
    {
        let mut states = Self {
            states: HashMap::new(),
            counts: Counts::default(),
            required: Vec::new(),
            optional: Vec::new(),
        };
        states.required = required.map(|o| states.state_use(o)).collect();
        states.optional = optional
            .map(|o| StateUse {
                needs: None,
                ..states.state_use(o)
            })
            .collect();
        for at in 0..states.required.len() {
            states.required_undone(at);
        }
        for at in 0..states.optional.len() {
            states.optional_unused(at);
        }
        states
    }

    fn state_use<O: Operation<State = S>>(&mut self, operation: &O) -> StateUse {
        let makes = match operation.effect() {
            Effect::Observes => Makes::Nothing,
            Effect::Overwrites | Effect::Depends => match operation.makes() {
                Some(state) => Makes::State(self.state(state)),
                None => Makes::Any,
            },
        };
        StateUse {
            needs: operation.needs().map(|state| self.state(state)),
            makes,
        }
    }

    fn state(&mut self, state: S) -> usize {
        let next = self.states.len();
        let at = *self.states.entry(state).or_insert(next);
        if at == next {
            self.counts.needed.push(0);
            self.counts.makers.push(0);
        }
        at
    }

    /// Whether the state is needed and no pending operation can make it.
    pub(super) fn is_missing(&self, state: &S) -> bool {
        let at = self.states.get(state);
        at.is_some_and(|&at| self.counts.is_missing(at))
    }

    /// Whether a state other than this one is needed and no pending operation can make it.
    pub(super) fn is_any_missing_except(&self, present: &S) -> bool {
        let present = self.states.get(present);
        (0..self.states.len()).any(|at| Some(&at) != present && self.counts.is_missing(at))
    }

    /// Called when a required operation is done.
    pub(super) fn required_done(&mut self, at: usize) {
        self.counts.step(self.required.get(at), |n| n - 1);
    }

    /// Called when a required operation is undone.
    pub(super) fn required_undone(&mut self, at: usize) {
        self.counts.step(self.required.get(at), |n| n + 1);
    }

    /// Called when an optional operation is used.
    pub(super) fn optional_used(&mut self, at: usize) {
        self.counts.step(self.optional.get(at), |n| n - 1);
    }

    /// Called when the use of an optional operation is undone.
    pub(super) fn optional_unused(&mut self, at: usize) {
        self.counts.step(self.optional.get(at), |n| n + 1);
    }
}

/// The number of pending operations that need and make each state, by its index.
#[derive(Default)]
struct Counts {
    needed: Vec<usize>,
    makers: Vec<usize>,
    /// The number of operations that may make any state.
    makers_of_any: usize,
}

impl Counts {
    /// Updates the counts for one operation.
    fn step(&mut self, state_use: Option<&StateUse>, step: impl Fn(usize) -> usize) {
        let Some(state_use) = state_use else { return };
        if let Some(needed) = state_use.needs.and_then(|at| self.needed.get_mut(at)) {
            *needed = step(*needed);
        }
        match state_use.makes {
            Makes::Nothing => {}
            Makes::State(at) => {
                if let Some(makers) = self.makers.get_mut(at) {
                    *makers = step(*makers);
                }
            }
            Makes::Any => self.makers_of_any = step(self.makers_of_any),
        }
    }

    fn is_missing(&self, state: usize) -> bool {
        self.makers_of_any == 0
            && self.makers.get(state) == Some(&0)
            && self.needed.get(state).is_some_and(|&needed| needed > 0)
    }
}
