//! Changing an entity: its attributes and its entries in the indexes, in one commit as far as they fit.
//!
//! When the attributes are known, so are the entries. Where these are more than a commit holds, only the entity is
//! committed, marked as one whose entries are behind, and these follow in steps (`index/steps.rs`).

use floe_store::Item;

use crate::error::{Error, ErrorKind, Result};
use crate::graph::handle::Graph;
use crate::graph::index;
use crate::graph::keys::{EntityKey, Place, invalid};
use crate::graph::node::{Node, check_names, merge};
use crate::graph::stored::Stored;
use crate::graph::work::{Operation, Work};

/// A change of an entity.
pub(super) enum Change<'o> {
    Create(Node),
    /// Merges into what is there.
    Update(Node),
    /// Merges into what is there, or creates it.
    Upsert(Node),
    /// Replaces what is there, or creates it.
    Set(Node),
    /// Makes new attributes of old ones.
    Modify(EntityKey, Modify<'o>),
}

/// A function from an entity to what it becomes.
pub(super) type Modify<'o> = &'o (dyn Fn(Node) -> Result<Node> + Send + Sync);

/// An entity as it was written.
pub(super) struct Written {
    pub(super) node: Node,
    /// Its entries do not fit into the commit and have to follow in steps.
    entries_follow: bool,
}

impl Graph<'_> {
    /// Writes an entity. Outside of transactions, entries that do not fit into the commit follow in steps.
    pub(super) async fn write(&self, change: &Change<'_>) -> Result<Node> {
        let written = self.run(change).await?;
        if written.entries_follow {
            let place = self.place(&written.node.key)?;
            index::write_behind(&self.reads(), &place).await?;
        }
        Ok(written.node)
    }
}

impl Operation for Change<'_> {
    type Done = Written;

    async fn apply(&self, work: Work<'_>) -> Result<Written> {
        let (place, node) = self.note(work).await?;
        let (schema, items_max) = (work.schema(), work.items_max());
        let defer = || work.changes(|changes| changes.defer_entries(schema, &place, items_max));
        Ok(Written {
            node,
            entries_follow: work.is_own && defer()??,
        })
    }
}

impl Change<'_> {
    /// Takes note of the entity as it is to be.
    async fn note(&self, work: Work<'_>) -> Result<(Place, Node)> {
        let node = match self {
            Self::Modify(key, modify) => return modified(work, key, *modify).await,
            Self::Create(node) | Self::Update(node) | Self::Upsert(node) | Self::Set(node) => node,
        };
        let place = prepared(work, node).await?;
        let old = match self {
            Self::Create(_) => None,
            Self::Update(_) => Some(work.require(&place).await?),
            _ => work.load(&place).await?,
        };
        let node = match (self, old) {
            (_, None) => {
                work.changes(|changes| changes.create(&place, node.clone()))??;
                return Ok((place, node.clone()));
            }
            (Self::Set(_), Some(_)) => node.clone(),
            (_, Some(Stored { node: mut old, .. })) => {
                merge(&mut old.attributes, &node.attributes);
                old
            }
        };
        work.changes(|changes| changes.update(&place, node.clone()))?;
        Ok((place, node))
    }
}

async fn modified(work: Work<'_>, key: &EntityKey, modify: Modify<'_>) -> Result<(Place, Node)> {
    let place = work.place(key)?;
    let old = work.require(&place).await?.node;
    let new = modify(old)?;
    if new.key != *key {
        let message = format!(
            "the key of an entity cannot change: old={key} new={}",
            new.key
        );
        return Err(Error::new(ErrorKind::InvalidUse, message));
    }
    prepared(work, &new).await?;
    work.changes(|changes| changes.update(&place, new.clone()))?;
    Ok((place, new))
}

/// Checks an entity before it is written, and that its indexes are known.
async fn prepared(work: Work<'_>, node: &Node) -> Result<Place> {
    check_names(&node.attributes)?;
    check_nesting(&node.attributes)?;
    let place = work.place(&node.key)?;
    index::begin(work.reads(), work.scope, node.key.type_name()).await?;
    Ok(place)
}

/// Values nest to a limit, which the store would refuse without a word on where.
fn check_nesting(attributes: &Item) -> Result<()> {
    let max = floe_store::limits::NESTING_LEVELS_MAX;
    let Some((name, _)) = attributes.iter().find(|(_, value)| value.depth() > max) else {
        return Ok(());
    };
    Err(invalid(
        name,
        &format!("values nest too deep: levels_max={max}"),
    ))
}
