//! Writes an entity: its attributes and its index entries, in one commit if they fit.
//!
//! The attributes determine the entries. If there are more than fit into a commit, only the entity is committed, marked
//! as having pending entries, and the entries follow in steps (`index/pending.rs`).

use floe_store::Item;

use crate::error::{Error, ErrorKind, Result};
use crate::graph::handle::Graph;
use crate::graph::index;
use crate::graph::keys::{EntityKey, ScopedKey, invalid};
use crate::graph::node::{Node, check_names, merge};
use crate::graph::operation::{Operation, OperationContext};
use crate::graph::stored::StoredEntity;

/// A change of an entity.
pub(super) enum Change<'o> {
    Create(Node),
    /// Merges into the stored entity.
    Update(Node),
    /// Merges into the stored entity, or creates it.
    Upsert(Node),
    /// Replaces the stored entity, or creates it.
    Set(Node),
    /// Computes new attributes from the stored ones.
    Modify(EntityKey, Modify<'o>),
}

/// A function from the stored entity to the new one.
pub(super) type Modify<'o> = &'o (dyn Fn(Node) -> Result<Node> + Send + Sync);

/// A written entity.
pub(super) struct Written {
    pub(super) node: Node,
    /// Whether its entries did not fit into the commit and have to follow in steps.
    entries_follow: bool,
}

impl Graph<'_> {
    /// Writes an entity. Outside of transactions, entries that do not fit into the commit follow in steps.
    pub(super) async fn write(&self, change: &Change<'_>) -> Result<Node> {
        let written = self.run(change).await?;
        if written.entries_follow {
            let scoped_key = self.scoped_key(&written.node.key)?;
            index::write_pending(&self.reads(), &scoped_key).await?;
        }
        Ok(written.node)
    }
}

impl Operation for Change<'_> {
    type Output = Written;

    async fn apply(&self, context: OperationContext<'_>) -> Result<Written> {
        let (scoped_key, node) = self.note(context).await?;
        let (schema, items_max) = (context.schema(), context.items_max());
        let defer =
            || context.changes(|changes| changes.defer_entries(schema, &scoped_key, items_max));
        Ok(Written {
            node,
            entries_follow: context.is_own && defer()??,
        })
    }
}

impl Change<'_> {
    /// Records the new state of the entity.
    async fn note(&self, context: OperationContext<'_>) -> Result<(ScopedKey, Node)> {
        let node = match self {
            Self::Modify(key, modify) => return modified(context, key, *modify).await,
            Self::Create(node) | Self::Update(node) | Self::Upsert(node) | Self::Set(node) => node,
        };
        let scoped_key = prepared(context, node).await?;
        let old = match self {
            Self::Create(_) => None,
            Self::Update(_) => Some(context.require(&scoped_key).await?),
            _ => context.load(&scoped_key).await?,
        };
        let node = match (self, old) {
            (_, None) => {
                context.changes(|changes| changes.create(&scoped_key, node.clone()))??;
                return Ok((scoped_key, node.clone()));
            }
            (Self::Set(_), Some(_)) => node.clone(),
            (_, Some(StoredEntity { node: mut old, .. })) => {
                merge(&mut old.attributes, &node.attributes);
                old
            }
        };
        context.changes(|changes| changes.update(&scoped_key, node.clone()))?;
        Ok((scoped_key, node))
    }
}

async fn modified(
    context: OperationContext<'_>,
    key: &EntityKey,
    modify: Modify<'_>,
) -> Result<(ScopedKey, Node)> {
    let scoped_key = context.scoped_key(key)?;
    let old = context.require(&scoped_key).await?.node;
    let new = modify(old)?;
    if new.key != *key {
        let message = format!(
            "the key of an entity cannot change: old={key} new={}",
            new.key
        );
        return Err(Error::new(ErrorKind::InvalidUse, message));
    }
    prepared(context, &new).await?;
    context.changes(|changes| changes.update(&scoped_key, new.clone()))?;
    Ok((scoped_key, new))
}

/// Validates an entity before it is written, and makes sure that its indexes have a state.
async fn prepared(context: OperationContext<'_>, node: &Node) -> Result<ScopedKey> {
    check_names(&node.attributes)?;
    check_nesting(&node.attributes)?;
    let scoped_key = context.scoped_key(&node.key)?;
    index::begin(context.reads(), context.scope, node.key.type_name()).await?;
    Ok(scoped_key)
}

/// Checks the nesting of values. The store would not name the attribute in its error.
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
