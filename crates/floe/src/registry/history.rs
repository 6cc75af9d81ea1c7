//! The versions of a group, page by page, and what was the latest at some moment.
//!
//! Where versions sort by their numbers under the group, they are queried. Otherwise they are got by their numbers, in
//! batches: the pointer tells how many there are.

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::op::Query;
use floe_store::{Item, Timestamp, Value};

use super::content::Content;
use super::group::Group;
use super::keys::{GroupPlace, version_of};
use super::reads::Reads;
use super::schema::{Layout, PARTITION_KEY, SORT_KEY};
use super::stored::Facts;
use super::version::Version;
use crate::cursor::Page;
use crate::error::{Error, ErrorKind, Result};

/// The attribute of the number in a cursor.
const NUMBER: &str = "number";

/// The versions of a group, also those that are gone: see [`Versions::history`](super::Versions::history).
pub struct History<'a, R> {
    pub(super) reads: Reads<'a>,
    pub(super) group: Result<Group<R>>,
    is_newest_first: bool,
    limit: Option<usize>,
    after: Option<String>,
}

impl<'a, R: Content> History<'a, R> {
    pub(super) const fn new(reads: Reads<'a>, group: Result<Group<R>>) -> Self {
        Self {
            reads,
            group,
            is_newest_first: false,
            limit: None,
            after: None,
        }
    }

    /// The newest comes first.
    #[must_use]
    pub fn newest_first(mut self) -> Self {
        self.is_newest_first = true;
        self
    }

    /// At most so many on a page.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit.max(1));
        self
    }

    /// Goes on behind a cursor.
    #[must_use]
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.after = Some(cursor.into());
        self
    }

    /// A page.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when the group cannot be, or a version is of another form,
    /// [`InvalidCursor`](ErrorKind::InvalidCursor), [`Store`](ErrorKind::Store) when the store cannot answer.
    pub async fn page(&self) -> Result<Page<Version<R>>> {
        let group = &self.group.as_ref().map_err(Clone::clone)?.place;
        let cursors = self.reads.db.cursor_key();
        let asked = Item::new()
            .with("registry", group.schema.name)
            .with("group", group.text.as_str())
            .with("backward", self.is_newest_first);
        let mut walk = Walk {
            limit: self.limit,
            ..Walk::new(self.reads, group, self.is_newest_first)
        };
        if let Some(after) = &self.after {
            walk.after = Some(number_of(&cursors.open(&asked, after)?)?);
        }
        let (now, mut rows) = (self.reads.db.engine().now(), Vec::new());
        for (_, item) in walk.next().await? {
            rows.push(Version::of_item(group.schema, &item, now)?);
        }
        let next = walk.after.filter(|_| !walk.is_done).map(|number| {
            let key = Item::new().with(NUMBER, number);
            cursors.seal(&asked, &key)
        });
        Ok(Page {
            rows,
            next: next.transpose()?,
        })
    }

    /// All of them.
    ///
    /// # Errors
    ///
    /// As for [`page`](Self::page).
    pub async fn collect(mut self) -> Result<Vec<Version<R>>> {
        let mut all = Vec::new();
        loop {
            let page = self.page().await?;
            all.extend(page.rows);
            match page.next {
                Some(next) => self.after = Some(next.into()),
                None => return Ok(all),
            }
        }
    }

    /// The version that was the latest at a moment, if any was.
    pub(super) async fn as_of(&self, moment: Timestamp) -> Result<Option<Version<R>>> {
        let group = &self.group.as_ref().map_err(Clone::clone)?.place;
        let mut walk = Walk::new(self.reads, group, true);
        walk.limit = Some(BATCH_GET_ITEMS_MAX);
        while !walk.is_done {
            for (_, item) in walk.next().await? {
                if was_deployed(&Facts::of(group.schema, &item)?, moment) {
                    let now = self.reads.db.engine().now();
                    return Version::of_item(group.schema, &item, now).map(Some);
                }
            }
        }
        Ok(None)
    }
}

fn number_of(key: &Item) -> Result<u64> {
    let number = key.get(NUMBER).and_then(Value::as_n);
    number.and_then(|number| number.to_u64()).ok_or_else(|| {
        let message = "the cursor is not one that this database has made for this query";
        Error::new(ErrorKind::InvalidCursor, message)
    })
}

/// Of those that were, the newest was the latest: whoever was retired made way for the newest before it.
fn was_deployed(facts: &Facts, moment: Timestamp) -> bool {
    let is_published = facts.published.is_none_or(|published| published <= moment);
    let is_gone = facts.deleted.is_some_and(|deleted| deleted <= moment);
    is_published && !is_gone && !facts.is_expired(moment)
}

/// Reads the versions of a group some at a time, behind the one it has come to.
pub(super) struct Walk<'a> {
    reads: Reads<'a>,
    group: &'a GroupPlace,
    is_newest_first: bool,
    pub(super) limit: Option<usize>,
    pub(super) after: Option<u64>,
    pub(super) is_done: bool,
}

impl<'a> Walk<'a> {
    pub(super) const fn new(
        reads: Reads<'a>,
        group: &'a GroupPlace,
        is_newest_first: bool,
    ) -> Self {
        Self {
            reads,
            group,
            is_newest_first,
            limit: None,
            after: None,
            is_done: false,
        }
    }

    /// The next versions, with their numbers.
    pub(super) async fn next(&mut self) -> Result<Vec<(u64, Item)>> {
        let schema = self.group.schema;
        if schema.layout == Layout::Grouped && !schema.legacy_keys {
            self.query().await
        } else {
            self.by_number().await
        }
    }

    async fn query(&mut self) -> Result<Vec<(u64, Item)>> {
        let (group, schema) = (self.group, self.group.schema);
        let prefix = KeyOp::BeginsWith(Value::from(schema.version_prefix));
        let key = KeyCondition::partition(PARTITION_KEY, group.text.as_str()).and(SORT_KEY, prefix);
        let mut query = Query::new(schema.table, key).consistent();
        query.forward = !self.is_newest_first;
        query.limit = self.limit;
        query.start_key = self.after.map(|number| group.version(number).key());
        let page = self.reads.page(&query).await?;
        let last = page.last_key.and_then(|last| version_of(schema, &last));
        (self.is_done, self.after) = (last.is_none(), last);
        let items = page.items.into_iter();
        let versions = items.filter_map(|item| Some((version_of(schema, &item)?, item)));
        Ok(versions.collect())
    }

    async fn by_number(&mut self) -> Result<Vec<(u64, Item)>> {
        let (first, last) = match (self.is_newest_first, self.after) {
            (true, Some(after)) => (1, after.saturating_sub(1)),
            (_, after) => (after.unwrap_or_default() + 1, self.last().await?),
        };
        let limit = self.limit.unwrap_or(BATCH_GET_ITEMS_MAX);
        let limit = limit.min(BATCH_GET_ITEMS_MAX);
        let (numbers, end): (Vec<u64>, u64) = if self.is_newest_first {
            ((first..=last).rev().take(limit).collect(), first)
        } else {
            ((first..=last).take(limit).collect(), last)
        };
        self.after = numbers.last().copied();
        self.is_done = numbers.last().is_none_or(|number| *number == end);
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let places: Vec<_> = numbers.iter().map(|n| self.group.version(*n)).collect();
        let items = self.reads.placed(&places).await?;
        let versions = numbers.into_iter().zip(items);
        let versions = versions.filter_map(|(number, item)| Some((number, item?)));
        Ok(versions.collect())
    }

    /// The greatest number that the group has given.
    async fn last(&self) -> Result<u64> {
        let place = self.group.pointer();
        let pointer = self.reads.item(place.table, &place.key()).await?;
        let facts = pointer.map(|pointer| Facts::of(self.group.schema, &pointer));
        Ok(facts.transpose()?.unwrap_or_default().last)
    }
}
