//! A request to the committer, from the queue to its answer.
//!
//! A write of items is [`Work`] and shares a group with others. A change of the catalog or a step of background work is
//! a closure, and has a group of its own.

use floe_store::{Error, Result};

use crate::answer::{Answer, Promise, promise};
use crate::group::{Effect, Group};

/// A write that waits for its turn.
pub(crate) struct Request {
    /// What it does, and who waits for the answer.
    pub(crate) pending: Box<dyn Pending>,
    /// Whether it has a group of its own, as changes of the catalog and background work have.
    pub(crate) is_exclusive: bool,
    /// Whether it stores more than it removes.
    pub(crate) grows: bool,
}

impl Request {
    /// A write of items, which shares its group, and what waits for its answer.
    pub(crate) fn shared<W: Work>(work: W) -> (Self, Answer<W::Output>) {
        Self::new(work, false)
    }

    /// A closure that has a group of its own, and what waits for its answer.
    pub(crate) fn exclusive<T: Send + 'static>(
        effect: Effect,
        run: impl FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    ) -> (Self, Answer<T>) {
        Self::new(Closure(Some(run), effect), true)
    }

    fn new<W: Work>(work: W, is_exclusive: bool) -> (Self, Answer<W::Output>) {
        let grows = work.effect() == Effect::Grows;
        let (promise, answer) = promise();
        let pending = Box::new(Asked {
            work,
            result: None,
            promise: Some(promise),
        });
        let request = Self {
            pending,
            is_exclusive,
            grows,
        };
        (request, answer)
    }

    /// Answers without running it.
    pub(crate) fn refuse(self, error: &Error) {
        self.pending.send(Err(error));
    }
}

/// What a request does.
pub(crate) trait Work: Send + 'static {
    /// What it answers.
    type Output: Send;

    /// What it does to the size of the store.
    fn effect(&self) -> Effect;

    /// Does it against the group, once. If it fails, it has written nothing.
    fn run(&mut self, group: &mut Group<'_>) -> Result<Self::Output>;
}

/// A request of whatever kind, from the queue to its answer.
pub(crate) trait Pending: Send {
    /// Runs it against the group, and returns whether it succeeded. What it answers is kept until the group is
    /// durable.
    fn run(&mut self, group: &mut Group<'_>) -> bool;

    /// Answers; with the error if it was not run, or if its group could not be committed.
    fn send(self: Box<Self>, committed: Result<(), &Error>);
}

/// Work that somebody waits for.
struct Asked<W: Work> {
    work: W,
    result: Option<Result<W::Output>>,
    promise: Option<Promise<W::Output>>,
}

impl<W: Work> Pending for Asked<W> {
    fn run(&mut self, group: &mut Group<'_>) -> bool {
        let result = self.result.insert(self.work.run(group));
        result.is_ok()
    }

    fn send(mut self: Box<Self>, committed: Result<(), &Error>) {
        let answer = match (self.result.take(), committed) {
            (Some(result), Ok(())) => result,
            // It wrote nothing. But it was judged on what the requests before it wrote, and that may
            // never have been.
            (Some(Err(_)), Err(error)) => Err(Error::Storage(error.to_string())),
            (_, Err(error)) => Err(error.clone()),
            (None, Ok(())) => Err(Error::Internal(
                "a request was answered before it ran".to_owned(),
            )),
        };
        if let Some(promise) = self.promise.take() {
            promise.keep(answer, self);
        }
    }
}

/// Work that is a function.
struct Closure<F>(Option<F>, Effect);

impl<F, T> Work for Closure<F>
where
    F: FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    T: Send,
{
    type Output = T;

    fn effect(&self) -> Effect {
        self.1
    }

    fn run(&mut self, group: &mut Group<'_>) -> Result<T> {
        let ran_before = || Error::Internal("a request ran twice".to_owned());
        self.0.take().ok_or_else(ran_before)?(group)
    }
}
