//! The error that results from the failed condition of a write.

use floe_store::Item;
use floe_store::op::TransactWrite;

use crate::error::ErrorKind;
use crate::graph::changes::exists;
use crate::graph::keys::ScopedKey;
use crate::graph::stored;
use crate::graph::writes::{claimed, missing};
use crate::tx::part::Failure;

/// A write, and the meaning of a failure of its condition.
#[derive(Clone, Debug)]
pub(crate) struct PlannedWrite {
    pub(crate) write: TransactWrite,
    pub(crate) on_failure: ConditionFailure,
}

/// What a failed condition means.
#[derive(Clone, Debug)]
pub(crate) enum ConditionFailure {
    /// Another writer changed the entity or its edges.
    Changed(ScopedKey),
    /// The entity to create already exists.
    Exists(ScopedKey),
    /// The entity to link does not exist.
    Missing(ScopedKey),
    /// The object of an edge to remove does not exist.
    Dangling(ScopedKey),
    /// Another entity has the unique key.
    Claimed { index: String, key: String },
}

impl ConditionFailure {
    /// The entity whose state caused the failure, if the next attempt has to read it.
    pub(crate) fn unexpected(&self, item: Option<&Item>) -> Option<&ScopedKey> {
        match self {
            Self::Dangling(scoped_key) => Some(scoped_key),
            Self::Exists(scoped_key) if item.is_some_and(stored::is_deleting) => Some(scoped_key),
            _ => None,
        }
    }

    pub(crate) fn failure(&self, item: Option<&Item>) -> Failure {
        let is_deleting = item.is_some_and(stored::is_deleting);
        match self {
            Self::Exists(scoped_key) | Self::Changed(scoped_key) if is_deleting => {
                let what = "the entity is being deleted";
                Failure::Retry(scoped_key.error(ErrorKind::TransactionFailed, what))
            }
            Self::Changed(scoped_key) => {
                let what = "another writer changed the entity or its edges";
                Failure::Retry(scoped_key.error(ErrorKind::TransactionFailed, what))
            }
            Self::Exists(scoped_key) => Failure::Final(exists(scoped_key)),
            Self::Missing(scoped_key) => Failure::Final(missing(scoped_key)),
            Self::Dangling(scoped_key) => {
                let what = "the object of an edge does not exist";
                Failure::Retry(scoped_key.error(ErrorKind::TransactionFailed, what))
            }
            Self::Claimed { index, key } => Failure::Final(claimed(index, key, item)),
        }
    }
}
