//! What a query has found, one after the other, and by pages.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use floe_store::{BoxFuture, Item};
use futures_core::Stream;

use super::reader::{Plan, Reader};
use crate::cursor::{Cursor, Page};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::request::Budget;
use crate::tx::Tx;

/// Who asks: a transaction, which gets tracked rows, or a database, which gets values.
pub trait Source: sealed::Sealed + Unpin {
    /// What an item becomes.
    type Found<M: Model>;

    /// The database.
    #[doc(hidden)]
    fn db(&self) -> &Db;

    /// Whether a request that failed for a reason that may pass is made again at once.
    #[doc(hidden)]
    const RETRIES: bool;

    /// Takes an item; `None` if to this source it is not there.
    #[doc(hidden)]
    fn take<M: Model>(&self, item: &Item) -> Result<Option<Self::Found<M>>>;

    /// Takes note of an error.
    #[doc(hidden)]
    fn note(&self, error: Error) -> Error;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Db {}
    impl Sealed for &crate::Tx {}
}

impl<'tx> Source for &'tx Tx {
    type Found<M: Model> = M::Row<'tx>;

    fn db(&self) -> &Db {
        Tx::db(self)
    }

    const RETRIES: bool = false;

    fn take<M: Model>(&self, item: &Item) -> Result<Option<M::Row<'tx>>> {
        self.found_row::<M>(item)
    }

    fn note(&self, error: Error) -> Error {
        Tx::note(self, error)
    }
}

impl Source for Db {
    type Found<M: Model> = M;

    fn db(&self) -> &Db {
        self
    }

    const RETRIES: bool = true;

    fn take<M: Model>(&self, item: &Item) -> Result<Option<M>> {
        M::from_item(item).map(Some)
    }

    fn note(&self, error: Error) -> Error {
        error
    }
}

/// What a query or scan finds, one after the other: see [`Select::stream`](super::Select::stream).
///
/// It is a `Stream` of results, and can be asked with [`next`](Self::next) as well.
pub struct Rows<S: Source, M> {
    source: S,
    state: State,
    /// How many may still be taken.
    left: Option<usize>,
    /// The item that was taken last.
    last: Option<Item>,
    model: PhantomData<fn() -> M>,
}

enum State {
    Resting(Box<Reader>),
    Reading(BoxFuture<'static, (Box<Reader>, Result<()>)>),
    /// It was dropped in the middle of a change, or has failed.
    Ended,
}

impl<S: Source, M> fmt::Debug for Rows<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}

impl<S: Source, M: Model> Rows<S, M> {
    pub(super) fn new(source: S, plan: Plan, start: Option<Item>, limit: Option<usize>) -> Self {
        let reader = Reader {
            db: source.db().clone(),
            plan,
            start,
            is_done: limit == Some(0),
            found: VecDeque::new(),
            budget: if S::RETRIES {
                Budget::for_read()
            } else {
                Budget::once()
            },
        };
        Self {
            source,
            state: State::Resting(Box::new(reader)),
            left: limit,
            last: None,
            model: PhantomData,
        }
    }

    /// The next one; `None` at the end.
    ///
    /// # Errors
    ///
    /// As for [`Tx::get`].
    pub async fn next(&mut self) -> Result<Option<S::Found<M>>> {
        let next = poll_fn(|context| Pin::new(&mut *self).poll_next(context));
        next.await.transpose()
    }

    /// The next ones, up to the limit. Without a limit, what one request brings.
    pub(super) async fn page(mut self) -> Result<Page<S::Found<M>>> {
        let mut rows = Vec::new();
        while let Some(found) = self.next().await? {
            rows.push(found);
            let is_read_up =
                matches!(&self.state, State::Resting(reader) if reader.found.is_empty());
            if self.left == Some(0) || (self.left.is_none() && is_read_up) {
                break;
            }
        }
        let next = self.cursor()?;
        Ok(Page { rows, next })
    }

    /// Where it stands, unless it is at the end.
    fn cursor(&self) -> Result<Option<Cursor>> {
        let (State::Resting(reader), Some(last)) = (&self.state, &self.last) else {
            return Ok(None);
        };
        if reader.is_done && reader.found.is_empty() {
            return Ok(None);
        }
        let start = reader.plan.start_behind(last);
        let key = self.source.db().cursor_key();
        key.seal(&reader.plan.asked(), &start).map(Some)
    }

    /// Takes the next of the items that were read. `Ready(None)` at the end, `Pending` if more must be read.
    fn take(&mut self) -> Poll<Option<Result<S::Found<M>>>> {
        let State::Resting(reader) = &mut self.state else {
            return Poll::Ready(None);
        };
        if self.left == Some(0) {
            return Poll::Ready(None);
        }
        while let Some(item) = reader.found.pop_front() {
            let found = self.source.take::<M>(&item);
            self.last = Some(item);
            if let Some(found) = found.transpose() {
                self.left = self.left.map(|left| left - 1);
                return Poll::Ready(Some(found));
            }
        }
        if reader.is_done {
            return Poll::Ready(None);
        }
        Poll::Pending
    }
}

impl<S: Source, M: Model> Stream for Rows<S, M> {
    type Item = Result<S::Found<M>>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<S::Found<M>>>> {
        loop {
            if let State::Reading(reading) = &mut self.state {
                let (reader, read) = ready!(reading.as_mut().poll(context));
                self.state = State::Resting(reader);
                if let Err(error) = read {
                    self.state = State::Ended;
                    return Poll::Ready(Some(Err(self.source.note(error))));
                }
            }
            if let Poll::Ready(taken) = self.take() {
                return Poll::Ready(taken);
            }
            let wanted = self.left;
            if let State::Resting(mut reader) = std::mem::replace(&mut self.state, State::Ended) {
                self.state = State::Reading(Box::pin(async move {
                    let read = reader.fetch(wanted).await;
                    (reader, read)
                }));
            }
        }
    }
}
