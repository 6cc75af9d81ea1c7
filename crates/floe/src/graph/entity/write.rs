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
pub(crate) enum Change<'o> {
    Create(Node),
    /// Replaces the stored entity.
    Update(Node),
    /// Merges into the stored entity.
    Merge(Node),
    /// Merges into the stored entity, or creates it.
    Upsert(Node),
    /// Replaces the stored entity, or creates it.
    Set(Node),
    /// Computes new attributes from the stored ones.
    Modify(EntityKey, Modify<'o>),
}

/// A function from the stored entity to the new one.
pub(crate) type Modify<'o> = &'o (dyn Fn(Node) -> Result<Node> + Send + Sync);

/// A written entity.
pub(crate) struct Written {
    pub(crate) node: Node,
    /// Whether its entries did not fit into the commit and have to follow in steps.
    pub(crate) entries_follow: bool,
}

impl Graph<'_> {
    /// Writes an entity. Outside of transactions, entries that do not fit into the commit follow in steps.
    pub(in crate::graph) async fn write(&self, change: &Change<'_>) -> Result<Node> {
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
        // Entries that an interrupted process left pending are completed as well.
        let defer = || {
            context.changes(|changes| {
                let had_pending = changes.has_pending_entries(&scoped_key);
                let is_wide = changes.defer_entries(schema, &scoped_key, items_max)?;
                Ok::<_, Error>(is_wide || had_pending)
            })
        };
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
            Self::Create(node)
            | Self::Update(node)
            | Self::Merge(node)
            | Self::Upsert(node)
            | Self::Set(node) => node,
        };
        let scoped_key = prepared(context, node).await?;
        let old = match self {
            Self::Create(_) => {
                // Read only if the entity was found to be under deletion. If it exists, `create` rejects it.
                context.read_unexpected(vec![node.key.clone()]).await?;
                None
            }
            Self::Update(_) | Self::Merge(_) => Some(context.require(&scoped_key).await?),
            _ => context.load(&scoped_key).await?,
        };
        if old.is_none() && context.changes(|changes| changes.deleting(&scoped_key).is_some())? {
            return Err(complete_deletion(context, scoped_key).await?);
        }
        let node = match (self, old) {
            (_, None) => {
                context.changes(|changes| changes.create(&scoped_key, node.clone()))??;
                return Ok((scoped_key, node.clone()));
            }
            (Self::Set(_) | Self::Update(_), Some(_)) => node.clone(),
            (_, Some(StoredEntity { node: mut old, .. })) => {
                merge(&mut old.attributes, &node.attributes);
                old
            }
        };
        context.changes(|changes| changes.update(&scoped_key, node.clone()))?;
        Ok((scoped_key, node))
    }
}

/// Completes the deletion of an entity that is written again. The process that started it may have stopped. The steps
/// are no part of the transaction. Returns the error with which it runs again.
async fn complete_deletion(context: OperationContext<'_>, scoped_key: ScopedKey) -> Result<Error> {
    let outside = context.outside();
    Box::pin(outside.complete_deletion(scoped_key.clone())).await?;
    let what = "the entity was being deleted";
    let error = scoped_key.error(ErrorKind::TransactionFailed, what);
    Ok(context.tx.retry(error))
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
