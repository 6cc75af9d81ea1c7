//! The versions of a group, page by page, and the latest version at a given time.
//!
//! If versions sort by number under their group, they are queried. Otherwise they are read by number, in batches, up to
//! the last number stored in the pointer.

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::op::Query;
use floe_store::{Item, Timestamp, Value};

use super::content::Content;
use super::group::Group;
use super::keys::{GroupKey, version_of};
use super::reads::Reads;
use super::schema::{Layout, PARTITION_KEY, SORT_KEY};
use super::stored::Metadata;
use super::version::Version;
use crate::cursor::Page;
use crate::error::{Error, ErrorKind, Result};

/// The attribute of the version number in a cursor.
const NUMBER: &str = "number";

/// A query of the versions of a group, including deleted ones; see [`Versions::history`](super::Versions::history).
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

    /// Returns the newest version first.
    #[must_use]
    pub fn newest_first(mut self) -> Self {
        self.is_newest_first = true;
        self
    }

    /// Maximum number of versions on a page.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit.max(1));
        self
    }

    /// Continues after a cursor.
    #[must_use]
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.after = Some(cursor.into());
        self
    }

    /// Returns one page.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) if the group is invalid, or a version does not match the type,
    /// [`InvalidCursor`](ErrorKind::InvalidCursor), [`Store`](ErrorKind::Store) if the store is unavailable.
    pub async fn page(&self) -> Result<Page<Version<R>>> {
        let group = &self.group.as_ref().map_err(Clone::clone)?.key;
        let cursors = self.reads.db.cursor_key();
        let parameters = Item::new()
            .with("registry", group.schema.name)
            .with("group", group.text.as_str())
            .with("backward", self.is_newest_first);
        let mut reader = VersionReader {
            limit: self.limit,
            ..VersionReader::new(self.reads, group, self.is_newest_first)
        };
        if let Some(after) = &self.after {
            reader.after = Some(number_of(&cursors.verify(&parameters, after)?)?);
        }
        let (now, mut rows) = (self.reads.db.engine().now(), Vec::new());
        for (_, item) in reader.next().await? {
            rows.push(Version::of_item(group.schema, &item, now)?);
        }
        let next = reader.after.filter(|_| !reader.is_done).map(|number| {
            let key = Item::new().with(NUMBER, number);
            cursors.sign(&parameters, &key)
        });
        Ok(Page {
            rows,
            next: next.transpose()?,
        })
    }

    /// Returns all versions.
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

    /// Returns the version that was the latest at a given time, if any.
    pub(super) async fn as_of(&self, timestamp: Timestamp) -> Result<Option<Version<R>>> {
        let group = &self.group.as_ref().map_err(Clone::clone)?.key;
        let mut reader = VersionReader::new(self.reads, group, true);
        reader.limit = Some(BATCH_GET_ITEMS_MAX);
        while !reader.is_done {
            for (_, item) in reader.next().await? {
                if was_deployed(&Metadata::of(group.schema, &item)?, timestamp) {
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
        let message = "the cursor was not issued by this database for this query";
        Error::new(ErrorKind::InvalidCursor, message)
    })
}

/// Whether a version was deployed at a given time. The newest deployed version was the latest: when a version is
/// retired, the newest one before it becomes the latest.
fn was_deployed(metadata: &Metadata, timestamp: Timestamp) -> bool {
    let is_published = metadata
        .published
        .is_none_or(|published| published <= timestamp);
    let is_gone = metadata.deleted.is_some_and(|deleted| deleted <= timestamp);
    is_published && !is_gone && !metadata.is_expired(timestamp)
}

/// Reads the versions of a group in batches, each after the last number of the previous one.
pub(super) struct VersionReader<'a> {
    reads: Reads<'a>,
    group: &'a GroupKey,
    is_newest_first: bool,
    pub(super) limit: Option<usize>,
    pub(super) after: Option<u64>,
    pub(super) is_done: bool,
}

impl<'a> VersionReader<'a> {
    pub(super) const fn new(reads: Reads<'a>, group: &'a GroupKey, is_newest_first: bool) -> Self {
        Self {
            reads,
            group,
            is_newest_first,
            limit: None,
            after: None,
            is_done: false,
        }
    }

    /// Returns the next versions, with their numbers.
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
        query.start_key = self.after.map(|number| group.version(number).to_item());
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
        let keys: Vec<_> = numbers.iter().map(|n| self.group.version(*n)).collect();
        let items = self.reads.stored(&keys).await?;
        let versions = numbers.into_iter().zip(items);
        let versions = versions.filter_map(|(number, item)| Some((number, item?)));
        Ok(versions.collect())
    }

    /// The last number used in the group.
    async fn last(&self) -> Result<u64> {
        let key = self.group.pointer();
        let pointer = self.reads.item(key.table, &key.to_item()).await?;
        let metadata = pointer.map(|pointer| Metadata::of(self.group.schema, &pointer));
        Ok(metadata.transpose()?.unwrap_or_default().last)
    }
}
