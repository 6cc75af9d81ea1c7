//! Counts which states the operations still to come need, and which they can make.

use std::collections::HashMap;
use std::hash::Hash;

use super::{Effect, Operation};

/// What one operation takes part in, as positions among the states.
struct Part {
    needs: Option<usize>,
    makes: Made,
}

enum Made {
    Nothing,
    State(usize),
    /// A state that depends on the one before.
    Any,
}

/// The states that operations still to come need and make. Optional operations make states; what they
/// need is no need, since they can be left out.
pub(super) struct Supply<S> {
    states: HashMap<S, usize>,
    counts: Counts,
    required: Vec<Part>,
    optional: Vec<Part>,
}

impl<S: Clone + Eq + Hash> Supply<S> {
    pub(super) fn of<'a, O>(
        required: impl Iterator<Item = &'a O>,
        optional: impl Iterator<Item = &'a O>,
    ) -> Self
    where
        O: Operation<State = S> + 'a,
    {
        let mut supply = Self {
            states: HashMap::new(),
            counts: Counts::default(),
            required: Vec::new(),
            optional: Vec::new(),
        };
        supply.required = required.map(|o| supply.part(o)).collect();
        supply.optional = optional
            .map(|o| Part {
                needs: None,
                ..supply.part(o)
            })
            .collect();
        for at in 0..supply.required.len() {
            supply.give_required(at);
        }
        for at in 0..supply.optional.len() {
            supply.give_optional(at);
        }
        supply
    }

    fn part<O: Operation<State = S>>(&mut self, operation: &O) -> Part {
        let makes = match operation.effect() {
            Effect::Observes => Made::Nothing,
            Effect::Overwrites | Effect::Depends => match operation.makes() {
                Some(state) => Made::State(self.state(state)),
                None => Made::Any,
            },
        };
        Part {
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

    /// Whether the state is needed and nothing can make it.
    pub(super) fn lacks(&self, state: &S) -> bool {
        let at = self.states.get(state);
        at.is_some_and(|&at| self.counts.lack(at))
    }

    /// Whether a state other than this one is needed and nothing can make it.
    pub(super) fn lacks_any_but(&self, present: &S) -> bool {
        let present = self.states.get(present);
        (0..self.states.len()).any(|at| Some(&at) != present && self.counts.lack(at))
    }

    /// A required operation has its place.
    pub(super) fn take_required(&mut self, at: usize) {
        self.counts.step(self.required.get(at), |n| n - 1);
    }

    /// A required operation is without a place again.
    pub(super) fn give_required(&mut self, at: usize) {
        self.counts.step(self.required.get(at), |n| n + 1);
    }

    /// An optional operation is used.
    pub(super) fn take_optional(&mut self, at: usize) {
        self.counts.step(self.optional.get(at), |n| n - 1);
    }

    /// An optional operation can be used again.
    pub(super) fn give_optional(&mut self, at: usize) {
        self.counts.step(self.optional.get(at), |n| n + 1);
    }
}

/// How many operations still to come need and make each state, by its position.
#[derive(Default)]
struct Counts {
    needed: Vec<usize>,
    makers: Vec<usize>,
    /// How many operations may make any state.
    makers_of_any: usize,
}

impl Counts {
    /// Counts an operation in or out.
    fn step(&mut self, part: Option<&Part>, step: impl Fn(usize) -> usize) {
        let Some(part) = part else { return };
        if let Some(needed) = part.needs.and_then(|at| self.needed.get_mut(at)) {
            *needed = step(*needed);
        }
        match part.makes {
            Made::Nothing => {}
            Made::State(at) => {
                if let Some(makers) = self.makers.get_mut(at) {
                    *makers = step(*makers);
                }
            }
            Made::Any => self.makers_of_any = step(self.makers_of_any),
        }
    }

    fn lack(&self, state: usize) -> bool {
        self.makers_of_any == 0
            && self.makers.get(state) == Some(&0)
            && self.needed.get(state).is_some_and(|&needed| needed > 0)
    }
}
