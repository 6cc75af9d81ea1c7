//! Lists of deployed versions: from the sparse indexes by status, and from the shared partition of the pointers.

use std::fmt;
use std::marker::PhantomData;

use floe_store::Value;
use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::op::Query;

use super::content::Content;
use super::reads::Reads;
use super::schema::{PARTITION_KEY, RegistrySchema, StatusIndex};
use super::version::{Status, Version};
use crate::attribute::{Attribute, missing};
use crate::error::{Error, Result};

/// A sparse index of a registry: deployed versions by a field of the group.
pub struct RegistryIndex<R, K> {
    pub(super) index: &'static StatusIndex,
    types: PhantomData<fn() -> (R, K)>,
}

impl<R, K> RegistryIndex<R, K> {
    /// Called by derived code.
    #[doc(hidden)]
    pub const fn of(index: &'static StatusIndex) -> Self {
        Self {
            index,
            types: PhantomData,
        }
    }

    /// Returns the name of the index.
    pub const fn name(&self) -> &'static str {
        self.index.name
    }
}

impl<R, K> Clone for RegistryIndex<R, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, K> Copy for RegistryIndex<R, K> {}

impl<R, K> fmt::Debug for RegistryIndex<R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RegistryIndex").field(&self.name()).finish()
    }
}

/// The key of an index for a value.
pub(super) fn index_key<K: Attribute>(
    schema: &RegistrySchema,
    index: &StatusIndex,
    key: &K,
) -> Result<Value> {
    let field = schema
        .index_field(index)
        .map_or(index.name, |field| field.name);
    let invalid = |invalid| Error::invalid(schema.name, field, &invalid);
    let key = key.to_value().map_err(invalid)?;
    key.ok_or_else(|| invalid(missing()))
}

/// The deployed versions with a key of an index, of one status or of both. Expired versions are left out.
pub(super) async fn deployed<R: Content>(
    reads: Reads<'_>,
    (schema, index): (&'static RegistrySchema, &StatusIndex),
    key: Value,
    status: Option<Status>,
) -> Result<Vec<Version<R>>> {
    let (Some(field), Some(attribute)) = (schema.index_field(index), schema.status) else {
        return Ok(Vec::new());
    };
    let mut condition = KeyCondition::partition(field.attribute, key);
    if let Some(status) = status {
        condition = condition.and(attribute, KeyOp::Eq(Value::from(status.as_str())));
    }
    let query = Query::new(schema.table, condition).index(index.name);
    let (items, now) = (reads.query(query, None).await?, reads.db.engine().now());
    let versions = items.iter().map(|item| Version::of_item(schema, item, now));
    let mut versions: Vec<Version<R>> = versions.collect::<Result<_>>()?;
    versions.retain(Version::is_deployed);
    Ok(versions)
}

/// The latest version of every group.
pub(super) async fn latest_of_groups<R: Content>(
    reads: Reads<'_>,
    schema: &'static RegistrySchema,
) -> Result<Vec<Version<R>>> {
    let condition = KeyCondition::partition(PARTITION_KEY, schema.latest);
    let query = Query::new(schema.table, condition).consistent();
    let (items, now) = (reads.query(query, None).await?, reads.db.engine().now());
    let versions = items
        .iter()
        .map(|item| Version::of_pointer(schema, item, now));
    versions.filter_map(Result::transpose).collect()
}
