//! What it means that the condition of a write did not hold.

use floe_store::Item;
use floe_store::op::TransactWrite;

use crate::error::{Error, ErrorKind};
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
                Failure::Retry(leaving(place))
            }
            Self::Changed(place) => Failure::Retry(changed(place)),
            Self::Exists(place) => Failure::Final(exists(place)),
            Self::Missing(place) => Failure::Final(missing(place)),
            Self::Dangling(place) => Failure::Final(dangling(place)),
            Self::Claimed { index, key } => Failure::Final(claimed(index, key, item)),
        }
    }
}

fn changed(place: &Place) -> Error {
    let message = format!("somebody else changed the entity or its edges: entity={place}");
    Error::new(ErrorKind::TransactionFailed, message)
}

fn dangling(place: &Place) -> Error {
    let message = format!("an edge leads to nothing, which Graph::repair mends: entity={place}");
    Error::new(ErrorKind::NotFound, message)
}

fn leaving(place: &Place) -> Error {
    let message = format!("the entity is being deleted; Graph::resume ends it: entity={place}");
    Error::new(ErrorKind::TransactionFailed, message)
}
