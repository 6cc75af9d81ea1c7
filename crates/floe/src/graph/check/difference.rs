//! The kinds of differences between the three tables, and their messages.

use std::fmt;

use crate::graph::keys::EntityKey;
use crate::graph::stored::Edge;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Number of entities.
    pub entities: u64,
    /// Number of edges.
    pub edges: u64,
    /// Number of index entries.
    pub entries: u64,
    /// The differences found.
    pub differences: Vec<Difference>,
}

/// An inconsistency between the tables of a graph.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Difference {
    /// An entity was written by another program and has no `_meta`, so it cannot be changed. Repair: adds `_meta`.
    MissingMeta(EntityKey),
    /// An index function cannot read an entity. Not repaired: change the entity or the function.
    Unreadable {
        /// The entity.
        entity: EntityKey,
        /// The error of the index function.
        reason: String,
    },
    /// The subject of an edge does not exist. Repair: removes the edge.
    MissingSubject(Edge),
    /// The object of an edge does not exist. Repair: removes the edge.
    MissingObject(Edge),
    /// Whether an edge holds its object (prevents its deletion) differs from its relation. Repair: sets it as the
    /// relation defines it.
    WrongHold(Edge),
    /// The counts of incoming edges stored on an entity are wrong. Repair: stores the actual counts.
    WrongCount {
        /// The entity.
        entity: EntityKey,
        /// The actual number of incoming edges, and of those that prevent its deletion.
        expected: (u64, u64),
        /// The stored numbers.
        actual: (u64, u64),
    },
    /// The index keys stored on an entity are wrong. Repair: stores the right ones.
    WrongKeys {
        /// The entity.
        entity: EntityKey,
    },
    /// An index entry is missing or has other attributes. Repair: writes it, if the index function is known.
    MissingEntry {
        /// The entity.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// No index function emits this entry. Repair: deletes it.
    ExtraEntry {
        /// The entity.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// A unique key of an entity is not claimed. Repair: claims it for the entity.
    MissingClaim {
        /// The entity.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// Two entities have the same unique key. Not repaired: change one of them.
    DoubleClaim {
        /// The entity without the claim.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// A claim of a unique key belongs to an entity that does not have the key. Repair: deletes the claim.
    ExtraClaim {
        /// The entity that has the claim.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// A wide change was started and not completed. Repair: completes it. Pending index entries need a program that has
    /// their index functions.
    Unfinished {
        /// The kind of change.
        change: WideChange,
        /// The entity.
        entity: EntityKey,
    },
    /// An entity is marked for a wide change, but the record of this change is missing, so `resume` would not find it.
    /// Repair: completes the change. For a list, whose intended content is lost, removes the mark.
    MissingIntent {
        /// The kind of change.
        change: WideChange,
        /// The entity.
        entity: EntityKey,
    },
    /// The entity of a recorded wide change does not exist or is not marked. Repair: deletes the record.
    ExtraIntent {
        /// The kind of change.
        change: WideChange,
        /// The entity.
        entity: EntityKey,
    },
    /// An item cannot be decoded. Not repaired.
    Damaged {
        /// The table of the item.
        table: String,
        /// The decoding error.
        reason: String,
    },
}

/// A kind of wide change, which is made in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WideChange {
    /// The deletion of an entity.
    Deletion,
    /// A change of a list.
    List,
    /// The writing of index entries.
    Entries,
}

impl fmt::Display for WideChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deletion => "deletion",
            Self::List => "list change",
            Self::Entries => "writing of index entries",
        })
    }
}

impl Difference {
    /// The kind, as one word.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::MissingMeta(_) => "missing_meta",
            Self::Unreadable { .. } => "unreadable",
            Self::MissingSubject(_) => "missing_subject",
            Self::MissingObject(_) => "missing_object",
            Self::WrongHold(_) => "wrong_hold",
            Self::WrongCount { .. } => "wrong_count",
            Self::WrongKeys { .. } => "wrong_keys",
            Self::MissingEntry { .. } => "missing_entry",
            Self::ExtraEntry { .. } => "extra_entry",
            Self::MissingClaim { .. } => "missing_claim",
            Self::DoubleClaim { .. } => "double_claim",
            Self::ExtraClaim { .. } => "extra_claim",
            Self::Unfinished { .. } => "unfinished",
            Self::MissingIntent { .. } => "missing_intent",
            Self::ExtraIntent { .. } => "extra_intent",
            Self::Damaged { .. } => "damaged",
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Unreadable { .. } => "an index function cannot read an entity",
            Self::Unfinished { change, .. } => &format!("unfinished {change}"),
            Self::MissingIntent { change, .. } => &format!("unrecorded {change}"),
            Self::ExtraIntent { change, .. } => &format!("needless record of a {change}"),
            Self::Damaged { .. } => "an item cannot be decoded",
            Self::MissingMeta(_) => "an entity has no _meta",
            Self::WrongKeys { .. } => "the index keys stored on an entity are wrong",
            Self::WrongCount { .. } => "the stored number of incoming edges is wrong",
            Self::MissingSubject(_) => "the subject of an edge does not exist",
            Self::MissingObject(_) => "the object of an edge does not exist",
            Self::WrongHold(_) => "the hold of an edge on its object differs from its relation",
            Self::MissingEntry { .. } => "an index entry is missing or wrong",
            Self::ExtraEntry { .. } => "no index function emits an entry",
            Self::MissingClaim { .. } => "a unique key is not claimed",
            Self::DoubleClaim { .. } => "two entities have the same unique key",
            Self::ExtraClaim { .. } => "a unique key is claimed by an entity that does not have it",
        };
        write!(f, "{what}: ")?;
        match self {
            Self::Unreadable { entity, reason } => write!(f, "{reason} entity={entity}"),
            Self::Damaged { table, reason } => write!(f, "table={table} reason={reason}"),
            Self::WrongCount {
                entity,
                expected,
                actual,
            } => write!(f, "entity={entity} expected={expected:?} actual={actual:?}"),
            Self::MissingSubject(edge) | Self::MissingObject(edge) | Self::WrongHold(edge) => {
                let (subject, predicate, object) = (&edge.subject, &edge.predicate, &edge.object);
                write!(f, "subject={subject} predicate={predicate} object={object}")
            }
            Self::MissingEntry { entity, index, key }
            | Self::ExtraEntry { entity, index, key }
            | Self::MissingClaim { entity, index, key }
            | Self::DoubleClaim { entity, index, key }
            | Self::ExtraClaim { entity, index, key } => {
                write!(f, "entity={entity} index={index} key={key}")
            }
            Self::MissingMeta(entity)
            | Self::WrongKeys { entity }
            | Self::Unfinished { entity, .. }
            | Self::MissingIntent { entity, .. }
            | Self::ExtraIntent { entity, .. } => write!(f, "entity={entity}"),
        }
    }
}
