//! What one run of a body has read and written, pattern by pattern.
//!
//! Each pattern keeps [`Changes`] of its own type, which the session finds by the type. When the body has ended, they
//! become the [parts](Part) of the commit, in the order in which the body first used the patterns.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use floe_store::Timestamp;

use super::part::Part;
use crate::db::Db;
use crate::error::{Error, Result};

/// What a run of a body has read and changed of one pattern.
pub(crate) trait Changes: Default + Send + 'static {
    /// Turns them into parts of the commit: none if nothing was touched.
    ///
    /// # Errors
    ///
    /// When they cannot be committed.
    fn into_parts(self, context: PartContext<'_>) -> Result<Vec<Box<dyn Part>>>;
}

/// What changes become parts with.
#[derive(Clone, Copy)]
pub(crate) struct PartContext<'a> {
    pub(crate) db: &'a Db,
    /// When the commit is made, by the clock of the engine.
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

/// What a run has done so far.
#[derive(Default)]
pub(crate) struct Session {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// One of each type, in the order in which they were first used. There are few, so looking through them is fast.
    changes: Vec<Box<dyn AnyChanges>>,
    /// Why the body should run again: it, or one of its reads, failed for a reason that may pass.
    retry: Option<Error>,
    /// The run has ended.
    is_closed: bool,
}

impl Session {
    /// Looks at the changes of one type, or adds to them.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) when the run has ended.
    pub(crate) fn with<C: Changes, T>(&self, look: impl FnOnce(&mut C) -> T) -> Result<T> {
        let mut state = self.lock();
        state.check_open()?;
        Ok(state.with(look))
    }

    /// As [`with`](Self::with), also when the run has ended. For what ends a read or a row that was begun before.
    pub(crate) fn settle<C: Changes, T>(&self, look: impl FnOnce(&mut C) -> T) -> T {
        self.lock().with(look)
    }

    /// Asks that the body runs again if it fails.
    pub(crate) fn ask_retry(&self, cause: Error) {
        self.lock().retry.get_or_insert(cause);
    }

    /// Why the body should run again, if something in it asked for that.
    pub(crate) fn retry_cause(&self) -> Option<Error> {
        self.lock().retry.clone()
    }

    /// Ends the run: nothing can be read or written in it any more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Ends the run and returns what it did as parts of a commit.
    ///
    /// # Errors
    ///
    /// When the changes of a pattern cannot be committed.
    pub(crate) fn finish(&self, context: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        self.close();
        let changes = std::mem::take(&mut self.lock().changes);
        let mut parts = Vec::with_capacity(changes.len());
        for changes in changes {
            parts.extend(changes.into_parts(context)?);
        }
        Ok(parts)
    }

    /// Ends the run and takes the changes of one type out.
    #[cfg(test)]
    pub(crate) fn take<C: Changes>(&self) -> C {
        self.close();
        self.settle(|changes: &mut C| std::mem::take(changes))
    }

    /// Refuses to go on when the run has ended.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) when the run has ended.
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
            let what = "the transaction has ended; nothing can be read or written in it any more";
            return Err(Error::invalid_use(what));
        }
        Ok(())
    }

    fn with<C: Changes, T>(&mut self, look: impl FnOnce(&mut C) -> T) -> T {
        for changes in &mut self.changes {
            let changes: &mut dyn Any = changes.as_mut();
            if let Some(found) = changes.downcast_mut() {
                return look(found);
            }
        }
        let mut new = C::default();
        let looked = look(&mut new);
        self.changes.push(Box::new(new));
        looked
    }
}
