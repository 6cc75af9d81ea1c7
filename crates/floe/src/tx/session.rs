//! The session of an attempt: what its body has read and changed, by pattern.
//!
//! Each pattern keeps [`Changes`] of its own type, which the session finds by the type. After the body, they become the
//! [parts](Part) of the commit, in the order in which the body first used the patterns.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use floe_store::Timestamp;

use super::part::Part;
use crate::db::Db;
use crate::error::{Error, Result};

/// What a body has read and changed of one pattern.
pub(crate) trait Changes: Default + Send + 'static {
    /// Turns the changes into parts of the commit. Returns none if nothing was used.
    ///
    /// # Errors
    ///
    /// If they cannot be committed.
    fn into_parts(self, context: PartContext<'_>) -> Result<Vec<Box<dyn Part>>>;
}

/// The context in which changes become parts.
#[derive(Clone, Copy)]
pub(crate) struct PartContext<'a> {
    pub(crate) db: &'a Db,
    /// The time of the commit, by the clock of the engine.
    pub(crate) now: Timestamp,
}

/// [`Changes`] of any type.
trait AnyChanges: Any + Send {
    fn into_parts(self: Box<Self>, context: PartContext<'_>) -> Result<Vec<Box<dyn Part>>>;
}

impl<C: Changes> AnyChanges for C {
    fn into_parts(self: Box<Self>, context: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        Changes::into_parts(*self, context)
    }
}

/// The changes of an attempt so far.
#[derive(Default)]
pub(crate) struct Session {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// One of each type, in the order of first use. There are few, so a linear search is fast.
    changes: Vec<Box<dyn AnyChanges>>,
    /// Why the body should run again: the body or one of its reads failed with a transient error.
    retry: Option<Error>,
    /// Whether the body has ended.
    is_closed: bool,
}

impl Session {
    /// Accesses the changes of one type.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if the body has ended.
    pub(crate) fn with<C: Changes, T>(&self, access: impl FnOnce(&mut C) -> T) -> Result<T> {
        let mut state = self.lock();
        state.check_open()?;
        Ok(state.with(access))
    }

    /// Like [`with`](Self::with), but also allowed after the body. For the end of reads and rows that began before.
    pub(crate) fn settle<C: Changes, T>(&self, access: impl FnOnce(&mut C) -> T) -> T {
        self.lock().with(access)
    }

    /// Requests that the body runs again if it fails.
    pub(crate) fn request_retry(&self, cause: Error) {
        self.lock().retry.get_or_insert(cause);
    }

    /// Why the body should run again, if that was requested.
    pub(crate) fn retry_cause(&self) -> Option<Error> {
        self.lock().retry.clone()
    }

    /// Closes the session: all further reads and writes fail.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Closes the session and returns its changes as parts of a commit.
    ///
    /// # Errors
    ///
    /// If the changes of a pattern cannot be committed.
    pub(crate) fn finish(&self, context: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        self.close();
        let changes = std::mem::take(&mut self.lock().changes);
        let mut parts = Vec::with_capacity(changes.len());
        for changes in changes {
            parts.extend(changes.into_parts(context)?);
        }
        Ok(parts)
    }

    /// Closes the session and takes the changes of one type.
    #[cfg(test)]
    pub(crate) fn take<C: Changes>(&self) -> C {
        self.close();
        self.settle(|changes: &mut C| std::mem::take(changes))
    }

    /// Checks that the body has not ended.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if the body has ended.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.lock().check_open()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check_open(&self) -> Result<()> {
        if self.is_closed {
            let what = "the transaction has ended and accepts no further reads or writes";
            return Err(Error::invalid_use(what));
        }
        Ok(())
    }

    fn with<C: Changes, T>(&mut self, access: impl FnOnce(&mut C) -> T) -> T {
        for changes in &mut self.changes {
            let changes: &mut dyn Any = changes.as_mut();
            if let Some(found) = changes.downcast_mut() {
                return access(found);
            }
        }
        let mut new = C::default();
        let output = access(&mut new);
        self.changes.push(Box::new(new));
        output
    }
}
