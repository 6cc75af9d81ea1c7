//! The results of a query, as a stream and by pages.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use floe_store::{BoxFuture, Item};
use futures_core::Stream;

use super::own_writes::OwnWrites;
use super::reader::{ReadPlan, Reader};
use crate::cursor::{Cursor, Page};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::request::Budget;
use crate::tx::Tx;

/// The source of a query: a transaction, which returns tracked rows, or a database, which returns values.
pub trait Source: sealed::Sealed + Unpin {
    /// The type of a result.
    type Found<M: Model>;

    /// The database.
    #[doc(hidden)]
    fn db(&self) -> &Db;

    /// Whether transient errors of a request are retried.
    #[doc(hidden)]
    const RETRIES: bool;

    /// Converts an item to a result; `None` if it does not exist for this source.
    #[doc(hidden)]
    fn convert<M: Model>(&self, item: &Item) -> Result<Option<Self::Found<M>>>;

    /// Records an error.
    #[doc(hidden)]
    fn note_error(&self, error: Error) -> Error;

    /// The transaction, if it is one.
    #[doc(hidden)]
    fn transaction(&self) -> Option<&Tx>;
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

    fn convert<M: Model>(&self, item: &Item) -> Result<Option<M::Row<'tx>>> {
        self.row_of_found::<M>(item)
    }

    fn note_error(&self, error: Error) -> Error {
        Tx::note_error(self, error)
    }

    fn transaction(&self) -> Option<&Tx> {
        Some(self)
    }
}

impl Source for Db {
    type Found<M: Model> = M;

    fn db(&self) -> &Db {
        self
    }

    const RETRIES: bool = true;

    fn convert<M: Model>(&self, item: &Item) -> Result<Option<M>> {
        M::from_item(item).map(Some)
    }

    fn note_error(&self, error: Error) -> Error {
        error
    }

    fn transaction(&self) -> Option<&Tx> {
        None
    }
}

/// The results of a query or scan: see [`Select::stream`](super::Select::stream).
///
/// It is a `Stream`, and has a method [`next`](Self::next).
pub struct Rows<S: Source, M> {
    source: S,
    state: State,
    /// What the transaction has written.
    own: OwnWrites,
    /// How many results may still be returned.
    remaining: Option<usize>,
    /// The item that was returned last.
    last: Option<Item>,
    /// Whether the transaction has written it.
    is_own_last: bool,
    model: PhantomData<fn() -> M>,
}

enum State {
    Idle(Box<Reader>),
    Reading(BoxFuture<'static, (Box<Reader>, Result<()>)>),
    /// A read failed, or panicked.
    Ended,
}

impl<S: Source, M> fmt::Debug for Rows<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}

impl<S: Source, M: Model> Rows<S, M> {
    pub(super) fn new(
        source: S,
        plan: ReadPlan,
        start: Option<Item>,
        limit: Option<usize>,
    ) -> Result<Self> {
        let own = match source.transaction() {
            Some(tx) => OwnWrites::of(tx, &plan, start.as_ref())?,
            None => OwnWrites::default(),
        };
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
        Ok(Self {
            source,
            state: State::Idle(Box::new(reader)),
            own,
            remaining: limit,
            last: None,
            is_own_last: false,
            model: PhantomData,
        })
    }

    /// Returns the next result; `None` at the end.
    ///
    /// # Errors
    ///
    /// As for [`Tx::get`].
    pub async fn next(&mut self) -> Result<Option<S::Found<M>>> {
        let next = poll_fn(|context| Pin::new(&mut *self).poll_next(context));
        next.await.transpose()
    }

    /// Returns the next results up to the limit, or those of one request if there is no limit.
    pub(super) async fn page(mut self) -> Result<Page<S::Found<M>>> {
        let mut rows = Vec::new();
        while let Some(found) = self.next().await? {
            rows.push(found);
            let is_page_consumed = matches!(&self.state, State::Idle(reader)
                if reader.found.is_empty() && (!reader.is_done || self.own.matching.is_empty()));
            if self.remaining == Some(0) || (self.remaining.is_none() && is_page_consumed) {
                break;
            }
        }
        let next = self.cursor()?;
        Ok(Page { rows, next })
    }

    /// The cursor of the current position, unless it is at the end.
    fn cursor(&self) -> Result<Option<Cursor>> {
        let (State::Idle(reader), Some(last)) = (&self.state, &self.last) else {
            return Ok(None);
        };
        if reader.is_done && reader.found.is_empty() && self.own.matching.is_empty() {
            return Ok(None);
        }
        if self.is_own_last && reader.plan.range.is_none() {
            return Err(Error::invalid_use(format!(
                "a page of a scan cannot end between items that the transaction has written; scan before writing, or \
                 without a limit: model={}",
                reader.plan.schema.model
            )));
        }
        let start = reader.plan.start_after(last);
        let key = self.source.db().cursor_key();
        key.sign(&reader.plan.cursor_scope(), &start).map(Some)
    }

    /// Returns the next of the items that were read: `Ready(None)` at the end, `Pending` if more must be read.
    fn take(&mut self) -> Poll<Option<Result<S::Found<M>>>> {
        let State::Idle(reader) = &mut self.state else {
            return Poll::Ready(None);
        };
        if self.remaining == Some(0) {
            return Poll::Ready(None);
        }
        loop {
            let stored = reader.found.front();
            let is_own = self.own.is_next(&reader.plan, stored, reader.is_done);
            let next = if is_own {
                self.own.matching.pop_front()
            } else {
                reader.found.pop_front()
            };
            let Some(item) = next else {
                break;
            };
            if !is_own && self.own.replaces(reader.plan.schema, &item) {
                self.last = Some(item);
                self.is_own_last = false;
                continue;
            }
            let found = self.source.convert::<M>(&item);
            self.last = Some(item);
            self.is_own_last = is_own;
            if let Some(found) = found.transpose() {
                self.remaining = self.remaining.map(|remaining| remaining - 1);
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
                self.state = State::Idle(reader);
                if let Err(error) = read {
                    self.state = State::Ended;
                    return Poll::Ready(Some(Err(self.source.note_error(error))));
                }
            }
            if let Poll::Ready(taken) = self.take() {
                return Poll::Ready(taken);
            }
            let wanted = self.remaining;
            if let State::Idle(mut reader) = std::mem::replace(&mut self.state, State::Ended) {
                self.state = State::Reading(Box::pin(async move {
                    let read = reader.fetch(wanted).await;
                    (reader, read)
                }));
            }
        }
    }
}
