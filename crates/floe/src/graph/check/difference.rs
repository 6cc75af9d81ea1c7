//! What can be different between the three tables, and how it is told.

use std::fmt;

use crate::graph::keys::EntityKey;
use crate::graph::stored::Edge;

/// What a check has found.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// How many entities there are.
    pub entities: u64,
    /// How many edges there are.
    pub edges: u64,
    /// How many entries of indexes there are.
    pub entries: u64,
    /// Everything that does not agree.
    pub differences: Vec<Difference>,
}

/// Something that does not agree.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Difference {
    /// An entity lacks `_meta`, so it cannot be changed: others have written it. Repaired by giving it one.
    MissingMeta(EntityKey),
    /// The function of an index cannot read an entity. Not repaired: the entity, or the function, has to change.
    Unreadable {
        /// The entity.
        entity: EntityKey,
        /// Why not.
        reason: String,
    },
    /// An edge leads from nothing. Repaired by removing it.
    MissingSubject(Edge),
    /// An edge leads to nothing. Repaired by removing it.
    MissingObject(Edge),
    /// An edge refuses the deletion of its object, or does not, other than its relation says. Repaired as it says.
    WrongHold(Edge),
    /// An entity tells another number of edges that lead to it than there are. Repaired by telling the number.
    WrongCount {
        /// The entity.
        entity: EntityKey,
        /// The number of edges, and of those that refuse its deletion.
        expected: (u64, u64),
        /// What it tells.
        actual: (u64, u64),
    },
    /// An entity tells other keys in the indexes than it has. Repaired by telling those.
    WrongKeys {
        /// The entity.
        entity: EntityKey,
    },
    /// An index lacks an entry, or has one with other attributes. Repaired by writing it, if its function is known.
    MissingEntry {
        /// The entity.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// An index has an entry that no function emits. Repaired by removing it.
    ExtraEntry {
        /// The entity.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// Nobody holds a unique key that an entity has. Repaired by letting it hold it.
    MissingClaim {
        /// The entity.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// Two entities have the same unique key. Not repaired: one of them has to change.
    DoubleClaim {
        /// The entity that does not hold it.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// A unique key is held by what does not have it. Repaired by letting go.
    ExtraClaim {
        /// The entity that holds it.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// What is done in steps was begun and not ended. Repaired by ending it; that entries are written, only by a program that
    /// has the functions of their indexes.
    Unfinished {
        /// What it is.
        what: InSteps,
        /// The entity.
        entity: EntityKey,
    },
    /// An entity is marked as one of which something is done in steps, but nobody would end it. Repaired by ending it, or
    /// for a list, of which nobody knows what it was to be, by removing the mark.
    MissingIntent {
        /// What it is.
        what: InSteps,
        /// The entity.
        entity: EntityKey,
    },
    /// Something in steps is noted of an entity that is not there or not marked. Repaired by removing the note.
    ExtraIntent {
        /// What it is.
        what: InSteps,
        /// The entity.
        entity: EntityKey,
    },
    /// An item is none of the graph's. Not repaired.
    Damaged {
        /// Its table.
        table: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// What is done in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum InSteps {
    /// A deletion.
    Deletion,
    /// The change of a list.
    List,
    /// The writing of entries.
    Entries,
}

impl fmt::Display for InSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deletion => "a deletion",
            Self::List => "the change of a list",
            Self::Entries => "the writing of entries",
        })
    }
}

impl Difference {
    /// Its kind, in one word.
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
            Self::Unreadable { .. } => "an entity cannot be read",
            Self::Unfinished { what, .. } => &format!("{what} was not ended"),
            Self::MissingIntent { what, .. } => &format!("{what} is not noted"),
            Self::ExtraIntent { what, .. } => &format!("{what} is noted in vain"),
            Self::Damaged { .. } => "an item is none of the graph's",
            Self::MissingMeta(_) => "an entity has no _meta",
            Self::WrongKeys { .. } => "the keys of an entity are wrong",
            Self::WrongCount { .. } => "the number of incoming edges is wrong",
            Self::MissingSubject(_) => "an edge leads from nothing",
            Self::MissingObject(_) => "an edge leads to nothing",
            Self::WrongHold(_) => "an edge does not hold its object as its relation says",
            Self::MissingEntry { .. } => "an entry is missing or wrong",
            Self::ExtraEntry { .. } => "an entry is one too many",
            Self::MissingClaim { .. } => "a unique key is not held",
            Self::DoubleClaim { .. } => "two have the same unique key",
            Self::ExtraClaim { .. } => "a unique key is held in vain",
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
