//! A version, as it is read.

use floe_store::{Item, Timestamp};

use super::content::Content;
use super::schema::RegistrySchema;
pub use super::status::Status;
use super::stored::Facts;
use crate::attribute::Expiry;
use crate::attribute::missing;
use crate::error::{Error, Result};

/// A published version: what was published, and what became of it.
///
/// One whose time has come reads as it will when the store has removed it: without status and expiry, deleted at that
/// moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Version<R> {
    /// Its number: the first of a group is 1.
    pub number: u64,
    /// What was published.
    pub value: R,
    /// What it is to its group; absent if it is gone, or if versions of the registry have none.
    pub status: Option<Status>,
    /// When it was published, where that is known.
    pub published: Option<Timestamp>,
    /// When it goes, if it does.
    pub expires: Option<Expiry>,
    /// Since when it is gone, if it is.
    pub deleted: Option<Timestamp>,
    /// Whether retention leaves it alone.
    pub is_pinned: bool,
    /// The aliases that lead to it, in the order of their names.
    pub aliases: Vec<String>,
    /// The hash of its content.
    pub hash: Option<String>,
}

impl<R: Content> Version<R> {
    /// The version that an item holds.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the item is of another form.
    pub(super) fn of_item(
        schema: &'static RegistrySchema,
        item: &Item,
        now: Timestamp,
    ) -> Result<Self> {
        let facts = Facts::of(schema, item)?;
        Self::of_facts(schema, facts, item, now)
    }

    /// The version that a pointer is a copy of, if it points to any.
    pub(super) fn of_pointer(
        schema: &'static RegistrySchema,
        item: &Item,
        now: Timestamp,
    ) -> Result<Option<Self>> {
        let mut facts = Facts::of(schema, item)?;
        if facts.number.is_none() {
            return Ok(None);
        }
        facts.status = schema.status.map(|_| Status::Latest);
        Self::of_facts(schema, facts, item, now).map(Some)
    }

    fn of_facts(
        schema: &'static RegistrySchema,
        facts: Facts,
        item: &Item,
        now: Timestamp,
    ) -> Result<Self> {
        let is_gone = facts.gone(now).is_some();
        let no_number = || Error::invalid(schema.name, schema.version, &missing());
        Ok(Self {
            number: facts.number.ok_or_else(no_number)?,
            value: R::of_version(schema, item)?,
            status: facts.status.filter(|_| !is_gone),
            published: facts.published,
            expires: facts.expires.filter(|_| !is_gone),
            deleted: facts.gone(now),
            is_pinned: facts.is_pinned,
            aliases: facts.aliases,
            hash: facts.hash,
        })
    }
}

impl<R> Version<R> {
    /// Whether it is deployed: neither retired nor expired.
    pub const fn is_deployed(&self) -> bool {
        self.deleted.is_none()
    }
}
