//! A request to the committer, from the queue to its response.
//!
//! A write of items is [`Work`] and shares a group with others. A change of the catalog or a step of background work is
//! a closure, and has its own group.

use floe_store::{Error, Result};

use crate::group::{DiskUse, Group};
use crate::response::{PendingResponse, Responder, channel};

/// A write in the queue.
pub(crate) struct Request {
    /// The work, and the caller's responder.
    pub(crate) pending: Box<dyn Pending>,
    /// Whether it needs its own group, as changes of the catalog and background work do.
    pub(crate) is_exclusive: bool,
    /// Whether it adds data.
    pub(crate) grows: bool,
}

impl Request {
    /// Creates a request for a write of items, which shares a group, and its response.
    pub(crate) fn shared<W: Work>(work: W) -> (Self, PendingResponse<W::Output>) {
        Self::new(work, false)
    }

    /// Creates a request for a closure with its own group, and its response.
    pub(crate) fn exclusive<T: Send + 'static>(
        disk_use: DiskUse,
        run: impl FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    ) -> (Self, PendingResponse<T>) {
        Self::new(Closure(Some(run), disk_use), true)
    }

    fn new<W: Work>(work: W, is_exclusive: bool) -> (Self, PendingResponse<W::Output>) {
        let grows = work.disk_use() == DiskUse::Grows;
        let (responder, response) = channel();
        let pending = Box::new(PendingWork {
            work,
            result: None,
            responder: Some(responder),
        });
        let request = Self {
            pending,
            is_exclusive,
            grows,
        };
        (request, response)
    }

    /// Responds with an error without running the request.
    pub(crate) fn reject(self, error: &Error) {
        self.pending.send(Err(error));
    }
}

/// The work of a request.
pub(crate) trait Work: Send + 'static {
    /// The content of the response.
    type Output: Send;

    /// Its effect on the size of the store.
    fn disk_use(&self) -> DiskUse;

    /// Applies the work to the group, once. If it fails, it has written nothing.
    fn run(&mut self, group: &mut Group<'_>) -> Result<Self::Output>;
}

/// A request of any type, from the queue to its response.
pub(crate) trait Pending: Send {
    /// Runs it against the group, and returns whether it succeeded. The result is kept until the group is durable.
    fn run(&mut self, group: &mut Group<'_>) -> bool;

    /// Sends the response, or the error if the request did not run or its group could not be committed.
    fn send(self: Box<Self>, committed: Result<(), &Error>);
}

/// Work with a waiting caller.
struct PendingWork<W: Work> {
    work: W,
    result: Option<Result<W::Output>>,
    responder: Option<Responder<W::Output>>,
}

impl<W: Work> Pending for PendingWork<W> {
    fn run(&mut self, group: &mut Group<'_>) -> bool {
        let result = self.result.insert(self.work.run(group));
        result.is_ok()
    }

    fn send(mut self: Box<Self>, committed: Result<(), &Error>) {
        let response = match (self.result.take(), committed) {
            (Some(result), Ok(())) => result,
            // It wrote nothing, but failed based on writes of earlier requests that may not have been committed.
            (Some(Err(_)), Err(error)) => Err(Error::Storage(error.to_string())),
            (_, Err(error)) => Err(error.clone()),
            (None, Ok(())) => Err(Error::Internal(
                "a response was sent before the request ran".to_owned(),
            )),
        };
        if let Some(responder) = self.responder.take() {
            responder.send(response, self);
        }
    }
}

/// Work that is a closure.
struct Closure<F>(Option<F>, DiskUse);

impl<F, T> Work for Closure<F>
where
    F: FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    T: Send,
{
    type Output = T;

    fn disk_use(&self) -> DiskUse {
        self.1
    }

    fn run(&mut self, group: &mut Group<'_>) -> Result<T> {
        let ran_before = || Error::Internal("a request ran twice".to_owned());
        self.0.take().ok_or_else(ran_before)?(group)
    }
}
