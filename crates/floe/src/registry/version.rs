//! A version as read.

use floe_store::{Item, Timestamp};

use super::content::Content;
use super::schema::RegistrySchema;
pub use super::status::Status;
use super::stored::Metadata;
use crate::attribute::Expiry;
use crate::attribute::missing;
use crate::error::{Error, Result};

/// A published version: its content and its present state.
///
/// An expired version reads as it will after the store has removed it: without status and expiry, deleted at the time
/// of its expiry.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Version<R> {
    /// The version number. The first version of a group has number 1.
    pub number: u64,
    /// The published content.
    pub value: R,
    /// The status in its group; `None` if it is deleted, or if the registry has no status.
    pub status: Option<Status>,
    /// The time of publication, if known.
    pub published: Option<Timestamp>,
    /// The expiry, if any.
    pub expires: Option<Expiry>,
    /// The time of deletion, if it is deleted.
    pub deleted: Option<Timestamp>,
    /// Whether it is pinned, that is, exempt from expiry.
    pub is_pinned: bool,
    /// Its aliases, ordered by name.
    pub aliases: Vec<String>,
    /// The content hash.
    pub hash: Option<String>,
}

impl<R: Content> Version<R> {
    /// Decodes the version of an item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the item does not match the registry.
    pub(super) fn of_item(
        schema: &'static RegistrySchema,
        item: &Item,
        now: Timestamp,
    ) -> Result<Self> {
        let metadata = Metadata::of(schema, item)?;
        Self::of_metadata(schema, metadata, item, now)
    }

    /// Decodes the version that a pointer is a copy of, if it has one.
    pub(super) fn of_pointer(
        schema: &'static RegistrySchema,
        item: &Item,
        now: Timestamp,
    ) -> Result<Option<Self>> {
        let mut metadata = Metadata::of(schema, item)?;
        if metadata.number.is_none() {
            return Ok(None);
        }
        metadata.status = schema.status.map(|_| Status::Latest);
        Self::of_metadata(schema, metadata, item, now).map(Some)
    }

    fn of_metadata(
        schema: &'static RegistrySchema,
        metadata: Metadata,
        item: &Item,
        now: Timestamp,
    ) -> Result<Self> {
        let is_gone = metadata.deleted_at(now).is_some();
        let no_number = || Error::invalid(schema.name, schema.version, &missing());
        Ok(Self {
            number: metadata.number.ok_or_else(no_number)?,
            value: R::of_version(schema, item)?,
            status: metadata.status.filter(|_| !is_gone),
            published: metadata.published,
            expires: metadata.expires.filter(|_| !is_gone),
            deleted: metadata.deleted_at(now),
            is_pinned: metadata.is_pinned,
            aliases: metadata.aliases,
            hash: metadata.hash,
        })
    }
}

impl<R> Version<R> {
    /// Whether it is deployed: neither retired nor expired.
    pub const fn is_deployed(&self) -> bool {
        self.deleted.is_none()
    }
}
