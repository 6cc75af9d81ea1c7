//! The result and the progress of a deletion.

use crate::graph::keys::EntityKey;

/// The result of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// Number of deleted entities, including those deleted because of relations.
    pub entities: u64,
    /// Number of deleted edges.
    pub edges: u64,
    /// Entities that relations would have deleted, but that others refer to. Only for deletions of more than one
    /// transaction; a deletion that fits into one is refused instead.
    pub kept: Vec<EntityKey>,
}

/// The progress of a deletion that takes more than one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeletionProgress {
    /// The entity whose edges are being removed.
    pub entity: EntityKey,
    /// Number of deleted entities so far.
    pub entities: u64,
    /// Number of deleted edges so far.
    pub edges: u64,
    /// Number of remaining edges to the entity.
    pub incoming_left: u64,
    /// Number of further entities known to be deleted.
    pub entities_left: u64,
}

/// Receives the progress of a job.
pub(super) type Listener<'a> = &'a (dyn Fn(&DeletionProgress) + Send + Sync);
