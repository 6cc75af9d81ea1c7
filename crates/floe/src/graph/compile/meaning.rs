//! What it means that the condition of a write did not hold.

use floe_store::Item;
use floe_store::op::TransactWrite;

use crate::error::ErrorKind;
use crate::graph::changes::exists;
use crate::graph::keys::Place;
use crate::graph::stored;
use crate::graph::writes::{claimed, missing};
use crate::tx::part::Failure;

/// A write, and what it means if its condition does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) write: TransactWrite,
    pub(crate) meaning: Meaning,
}

#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    /// Somebody else has changed this entity, or its edges.
    Changed(Place),
    /// The entity that was to be created is there.
    Exists(Place),
    /// The entity that was to be joined is not there.
    Missing(Place),
    /// The entity to which an edge led that is removed is not there.
    Dangling(Place),
    /// Another entity has this key.
    Claimed { index: String, key: String },
}

impl Meaning {
    pub(crate) fn failure(&self, item: Option<&Item>) -> Failure {
        let is_leaving = item.is_some_and(stored::is_leaving);
        match self {
            Self::Exists(place) | Self::Changed(place) if is_leaving => {
                let what = "the entity is being deleted; Graph::resume ends it";
                Failure::Retry(place.error(ErrorKind::TransactionFailed, what))
            }
            Self::Changed(place) => {
                let what = "somebody else changed the entity or its edges";
                Failure::Retry(place.error(ErrorKind::TransactionFailed, what))
            }
            Self::Exists(place) => Failure::Final(exists(place)),
            Self::Missing(place) => Failure::Final(missing(place)),
            Self::Dangling(place) => {
                let what = "an edge leads to nothing, which Graph::repair mends";
                Failure::Final(place.error(ErrorKind::NotFound, what))
            }
            Self::Claimed { index, key } => Failure::Final(claimed(index, key, item)),
        }
    }
}
