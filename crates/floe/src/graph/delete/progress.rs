//! What a deletion has done, and how far it is.

use crate::graph::keys::EntityKey;

/// What a deletion has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// The entities that are gone: with those that went with others.
    pub entities: u64,
    /// The edges that are gone.
    pub edges: u64,
    /// What should have gone with others, but others refer to it. Only where the deletion took more than one
    /// transaction; one that fits into one is refused instead.
    pub kept: Vec<EntityKey>,
}

/// How far a deletion is that takes more than one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The entity whose edges are being removed.
    pub entity: EntityKey,
    /// The entities that are gone.
    pub entities: u64,
    /// The edges that are gone.
    pub edges: u64,
    /// How many edges still lead to the entity.
    pub incoming_left: u64,
    /// How many more entities are known to follow.
    pub entities_left: u64,
}

/// Receives the progress of a job.
pub(super) type Listener<'a> = &'a (dyn Fn(&Progress) + Send + Sync);
