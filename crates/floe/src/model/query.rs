//! Finding items by key or index, and reading whole tables.
//!
//! ```
//! use floe::{Db, Error, Model};
//!
//! #[derive(Model)]
//! #[model(index(name = "by_product", key(product), sort(quantity)))]
//! struct Order {
//!     #[model(key)]
//!     customer: String,
//!     #[model(sort_key)]
//!     number: u32,
//!     product: String,
//!     quantity: u32,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! # let db = Db::memory()?;
//! # db.ensure_tables(&[Order::SCHEMA]).await?;
//! # db.transact(async |tx| {
//! #     for number in 1..=30 {
//! #         let (customer, product) = ("Ann".to_owned(), "tea".to_owned());
//! #         tx.create(Order { customer, number, product, quantity: number })?;
//! #     }
//! #     Ok::<_, Error>(())
//! # }).await?;
//! // In a transaction: rows, tracked as if each had been read by key.
//! db.transact(async |tx| {
//!     let orders = tx.query::<Order>(|o| o.customer.eq("Ann").and(o.number.ge(29)));
//!     for mut order in orders.all().await? {
//!         order.quantity += 1;
//!     }
//!     Ok::<_, Error>(())
//! })
//! .await?;
//!
//! // Outside of a transaction: plain values, without a limit on their number.
//! let large = db
//!     .query::<Order>(|o| o.product.eq("tea").and(o.quantity.gt(25)))
//!     .index(Order::BY_PRODUCT)
//!     .descending();
//! assert_eq!(large.all().await?.len(), 5);
//!
//! // By pages, each with a cursor for the next.
//! let first = db.query::<Order>(|o| o.customer.eq("Ann")).limit(20).page().await?;
//! let cursor = first.next.expect("there are ten more");
//! let second = db.query::<Order>(|o| o.customer.eq("Ann")).limit(20).after(&cursor);
//! assert_eq!(second.page().await?.rows.len(), 10);
//! # Ok(())
//! # }
//! ```
//!
//! The commit of a transaction checks each row that a query found. It does not check for new items in the range: where
//! that matters, keep an item that every writer of the range changes.
//!
//! # What the transaction has written itself
//!
//! A query in a transaction sees the items as the transaction has left them: those that it created are found, those that
//! it deleted are not, and those that it changed are found by their new values, in their new order. As with
//! [`Tx::get`], an item that the transaction has used before is returned again only with
//! [`cache_rows`](crate::tx::TxOptions::cache_rows); without it, a query that finds one fails with
//! [`FetchedTwice`](crate::ErrorKind::FetchedTwice). An item that was written without a read, by [`Tx::update`] or
//! [`Tx::create_or_put`], is not known: a query that may contain it fails with
//! [`InvalidUse`](crate::ErrorKind::InvalidUse). Changes of a row count once the row is dropped, and changes made after a
//! stream has begun do not count for it.

mod column;
mod cursor_scope;
mod own_writes;
mod predicate;
mod range;
mod reader;
mod rows;

use std::fmt;
use std::marker::PhantomData;

use floe_store::op::Segment;

pub use column::{Column, Operand};
pub use predicate::Predicate;
pub use rows::{Rows, Source};

use super::Model;
use super::schema::{IndexSchema, Schema};
pub use crate::cursor::{Cursor, Page};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::Tx;
use predicate::{Node, Term};
use reader::ReadPlan;

/// An index of a model. The derive generates a constant for each: `Order::BY_PRODUCT` for `by_product`.
pub struct Index<M> {
    schema: &'static IndexSchema,
    model: PhantomData<fn() -> M>,
}

impl<M> Clone for Index<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Index<M> {}

impl<M> fmt::Debug for Index<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Index").field(&self.schema.name).finish()
    }
}

impl<M> Index<M> {
    /// The index with this schema.
    #[doc(hidden)]
    pub const fn of(schema: &'static IndexSchema) -> Self {
        let model = PhantomData;
        Self { schema, model }
    }
}

/// Marks a query by key.
#[derive(Debug)]
pub enum ByKey {}

/// Marks a scan of all items.
#[derive(Debug)]
pub enum AllItems {}

/// A query or scan. Created by `query` or `scan`, and run by [`all`](Self::all), [`first`](Self::first),
/// [`page`](Self::page) or [`stream`](Self::stream).
#[must_use]
pub struct Select<S, M, Kind> {
    source: S,
    key: Option<Node>,
    index: Option<&'static IndexSchema>,
    filter: Option<Predicate<M>>,
    forward: bool,
    consistent: bool,
    segment: Option<Segment>,
    limit: Option<usize>,
    after: Option<String>,
    kind: PhantomData<fn() -> Kind>,
}

/// A query: items under one partition key, in the order of the sort key.
pub type Query<S, M> = Select<S, M, ByKey>;

/// A scan: all items of a model, in unspecified order.
pub type Scan<S, M> = Select<S, M, AllItems>;

impl<S, M, Kind> fmt::Debug for Select<S, M, Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut select = f.debug_struct("Select");
        let index = self.index.map(|index| index.name);
        select.field("key", &self.key).field("index", &index);
        select.field("filter", &self.filter);
        select.field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Db {
    /// Finds the items under a key, or under a key of an index, as plain values: see
    /// [`query`](self). Nothing is tracked, so the number of items is not limited.
    pub fn query<M: Model>(&self, key: impl FnOnce(&M::Fields) -> Predicate<M>) -> Query<Self, M> {
        Query::by_key(self.clone(), key)
    }

    /// Reads all items of a model as plain values, optionally in parallel [segments](Scan::segment).
    pub fn scan<M: Model>(&self) -> Scan<Self, M> {
        Scan::new(self.clone(), None)
    }
}

impl Tx {
    /// Finds the items under a key, or under a key of an [index](Select::index): `eq` on every field of the partition key
    /// and, optionally, conditions on the leading fields of the sort key. Results are tracked as if they had been read by
    /// key; see [`query`](self).
    pub fn query<M: Model>(&self, key: impl FnOnce(&M::Fields) -> Predicate<M>) -> Query<&Self, M> {
        Query::by_key(self, key)
    }

    /// Reads all items of a model, tracked as if they had been read by key. For more than a few items, prefer
    /// [`Db::scan`], which tracks nothing.
    pub fn scan<M: Model>(&self) -> Scan<&Self, M> {
        Scan::new(self, None)
    }
}

impl<S, M: Model> Query<S, M> {
    pub(crate) fn by_key(source: S, key: impl FnOnce(&M::Fields) -> Predicate<M>) -> Self {
        let key = key(M::fields()).node;
        Self::new(source, Some(key))
    }

    /// Returns the results in descending order.
    pub const fn descending(mut self) -> Self {
        self.forward = false;
        self
    }
}

impl<S, M: Model> Scan<S, M> {
    /// Reads one of `total` segments, counted from 0. Every item is in exactly one of them, so that several tasks can read
    /// a table in parallel.
    pub const fn segment(mut self, index: usize, total: usize) -> Self {
        self.segment = Some(Segment { index, total });
        self
    }
}

impl<S, M: Model, Kind> Select<S, M, Kind> {
    const fn new(source: S, key: Option<Node>) -> Self {
        Self {
            source,
            key,
            index: None,
            filter: None,
            forward: true,
            consistent: true,
            segment: None,
            limit: None,
            after: None,
            kind: PhantomData,
        }
    }

    /// Reads an index, which is eventually consistent. If it projects only a part of each item, the items are then read
    /// from the table, 100 per request.
    pub const fn index(mut self, index: Index<M>) -> Self {
        self.index = Some(index.schema);
        self
    }

    /// Returns only items that match the filter. The store reads the other items too, and charges for them.
    pub fn filter(mut self, filter: impl FnOnce(&M::Fields) -> Predicate<M>) -> Self {
        let filter = filter(M::fields());
        self.filter = Some(match self.filter {
            Some(before) => before.and(filter),
            None => filter,
        });
        self
    }

    /// Reads with eventual consistency, at half the cost.
    pub const fn eventual(mut self) -> Self {
        self.consistent = false;
        self
    }

    /// Maximum number of results, counted after the filter. Default: no limit.
    pub const fn limit(mut self, rows: usize) -> Self {
        self.limit = Some(rows);
        self
    }

    /// Continues after a page of the same query.
    pub fn after(mut self, cursor: impl AsRef<str>) -> Self {
        self.after = Some(cursor.as_ref().to_owned());
        self
    }
}

impl<S: Source, M: Model, Kind> Select<S, M, Kind> {
    /// Returns all results, up to the limit.
    ///
    /// # Errors
    ///
    /// As for [`stream`](Self::stream) and [`Tx::get`](crate::Tx::get).
    pub async fn all(self) -> Result<Vec<S::Found<M>>> {
        let mut rows = self.stream()?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().await? {
            all.push(row);
        }
        Ok(all)
    }

    /// Returns the first result.
    ///
    /// # Errors
    ///
    /// As for [`all`](Self::all).
    pub async fn first(self) -> Result<Option<S::Found<M>>> {
        self.limit(1).stream()?.next().await
    }

    /// Returns one page, up to the limit or the results of one request, with the cursor of the next page.
    ///
    /// # Errors
    ///
    /// As for [`all`](Self::all).
    pub async fn page(self) -> Result<Page<S::Found<M>>> {
        self.stream()?.page().await
    }

    /// One after the other, read as they are requested.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if the key condition does not fit the key, or a filter names a field that
    /// cannot be filtered by, or if the transaction has written an item without a read that the query may contain;
    /// [`InvalidCursor`](ErrorKind::InvalidCursor) if the cursor belongs to another query;
    /// [`InvalidField`](ErrorKind::InvalidField) if a value cannot be stored.
    pub fn stream(self) -> Result<Rows<S, M>> {
        let (limit, after) = (self.limit, self.after.clone());
        let (source, plan) = self.plan()?;
        let key = source.db().cursor_key();
        let start = after.map(|after| key.verify(&plan.cursor_scope(), &after));
        let start = start.transpose()?;
        Rows::new(source, plan, start, limit)
    }

    fn plan(self) -> Result<(S, ReadPlan)> {
        let schema = M::SCHEMA;
        self.check_index(schema)?;
        let range = self.key.map(|key| range::range(schema, self.index, key));
        let mut plan = ReadPlan {
            schema,
            index: self.index,
            range: range.transpose()?,
            filter: None,
            forward: self.forward,
            consistent: self.consistent,
            segment: self.segment,
        };
        if let Some(filter) = self.filter {
            let check = |term: &Term| check_filter(&plan, term);
            plan.filter = Some(filter.node.condition(&check)?);
        }
        Ok((self.source, plan))
    }

    fn check_index(&self, schema: &Schema) -> Result<()> {
        let Some(index) = self.index else {
            return Ok(());
        };
        let has_several = index.key.len() > 1 || index.sort.len() > 1;
        let can = self.source.db().engine().capabilities();
        if has_several && !can.multi_attribute_keys {
            let what = "the engine does not support indexes with several key fields";
            let message = format!("{what}: model={} index={}", schema.model, index.name);
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(())
    }
}

/// Rejects fields that cannot be filtered by.
fn check_filter(plan: &ReadPlan, term: &Term) -> Result<()> {
    let field = plan.schema.field(term.field);
    let what = if field.is_some_and(|field| !plan.schema.is_stored(field)) {
        "a key component is not stored as an attribute and cannot be filtered by; move it to the key condition"
    } else if plan.is_key(term.attribute) {
        "a field of the queried key cannot be filtered by; move it to the key condition"
    } else {
        return Ok(());
    };
    let (model, field) = (term.model, term.field);
    Err(Error::invalid_use(format!(
        "{what}: model={model} field={field}"
    )))
}
