//! Entities with more index entries than fit into one transaction. The entries follow in steps, and the process may
//! crash after any step.
//!
//! One transaction writes the entity with its index keys, its claims of unique keys, a mark for pending entries, and an
//! intent. Then the stored entries are compared with the output of the index functions, once, and differences are written
//! in batches. At last the mark and the intent are deleted. Each step depends on the version of the entity: so every
//! process that finds an intent can continue, and a late process changes nothing. If a step fails, the entity has changed,
//! and its entries are compared again.

use std::collections::BTreeMap;

use floe_store::Item;
use floe_store::expr::{Condition, Update};
use floe_store::op::{DeleteItem, PutItem, TransactWrite};

use crate::error::Result;
use crate::graph::keys::ScopedKey;
use crate::graph::reads::{self, Reads};
use crate::graph::steps::send;
use crate::graph::stored::{
    self, INDEX_NAME, PENDING, PENDING_ID, SUBJECT_KEY, StoredEntity, UNIQUE_KEY, meta,
};
use crate::graph::writes::{entity_check, entity_update, intent_delete, is_deleting, is_version};

/// Writes the pending entries of all entities with an intent.
pub(crate) async fn resume_entries(reads: &Reads<'_>, scope: &str) -> Result<()> {
    for intent in reads.intents(PENDING_ID, scope).await? {
        let scoped_key = ScopedKey::new(scope, stored::intent_owner(&intent)?)?;
        write_pending(reads, &scoped_key).await?;
    }
    Ok(())
}

/// Writes the pending entries of an entity, unless the index functions of another program are needed.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) if an index function cannot read the entity.
pub(crate) async fn write_pending(reads: &Reads<'_>, scoped_key: &ScopedKey) -> Result<()> {
    loop {
        let stored = reads.entity(scoped_key).await?;
        let Some(stored) =
            stored.filter(|stored| stored.has_pending_entries && !stored.is_deleting)
        else {
            return delete_stale_intent(reads, scoped_key).await;
        };
        if !can_complete(reads, &stored) {
            return Ok(());
        }
        let changes = changes(reads, scoped_key, &stored).await?;
        if write_changes(reads, scoped_key, &stored, &changes).await?
            && clear_mark(reads, scoped_key, &stored).await?
        {
            return Ok(());
        }
    }
}

/// Writes changes of entries in steps. Returns `false` if the entity has changed.
async fn write_changes(
    reads: &Reads<'_>,
    scoped_key: &ScopedKey,
    stored: &StoredEntity,
    changes: &[TransactWrite],
) -> Result<bool> {
    let max = reads.items_max().saturating_sub(1).max(1);
    for some in changes.chunks(max) {
        let as_seen = entity_check(reads.schema(), scoped_key, is_version(stored.version));
        let writes = std::iter::once(as_seen).chain(some.iter().cloned());
        if !send(reads.db, writes.collect()).await?.is_applied() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether this program has the functions that index the entity. Entries of an entity that was changed without a
/// function are left to a rebuild.
fn can_complete(reads: &Reads<'_>, stored: &StoredEntity) -> bool {
    stored.entries.iter().all(|(name, indexed)| {
        match reads.schema().index_of(stored.node.key.type_name(), name) {
            Some(index) => index.version == indexed.version,
            None => indexed.version == 0,
        }
    })
}

/// The differences between the stored entries and those that the functions of this program emit.
async fn changes(
    reads: &Reads<'_>,
    scoped_key: &ScopedKey,
    stored: &StoredEntity,
) -> Result<Vec<TransactWrite>> {
    let schema = reads.schema();
    let table = schema.entries();
    let mut wanted: BTreeMap<String, Item> = BTreeMap::new();
    for index in schema.indexes_of(scoped_key.key.type_name()) {
        for (key, attributes) in index.emitted(&stored.node)? {
            let entry = stored::entry(scoped_key, &index.name, &key, &attributes);
            wanted.insert(stored::text(&entry, &UNIQUE_KEY)?.to_owned(), entry);
        }
    }
    let mut changes: Vec<TransactWrite> = Vec::new();
    let entries = reads::entries_query(schema, scoped_key);
    for entry in reads.query(entries, None).await? {
        let index = stored::text(&entry, &INDEX_NAME)?;
        let is_known = schema.index_of(scoped_key.key.type_name(), index).is_some();
        match wanted.remove(stored::text(&entry, &UNIQUE_KEY)?) {
            Some(same) if same == entry => {}
            Some(other) => changes.push(PutItem::new(table.as_str(), other).into()),
            None if is_known => {
                let key = entry.pick(&[SUBJECT_KEY, UNIQUE_KEY]);
                changes.push(DeleteItem::new(table.as_str(), key).into());
            }
            None => {}
        }
    }
    let missing = wanted.into_values();
    changes.extend(missing.map(|entry| PutItem::new(table.as_str(), entry).into()));
    Ok(changes)
}

/// Deletes the mark and the intent. Returns `false` if the entity has changed.
async fn clear_mark(
    reads: &Reads<'_>,
    scoped_key: &ScopedKey,
    stored: &StoredEntity,
) -> Result<bool> {
    let schema = reads.schema();
    let update = Update::new().remove(meta(&PENDING));
    let update = entity_update(schema, scoped_key, update, is_version(stored.version));
    let intent = intent_delete(schema, PENDING_ID, scoped_key);
    Ok(send(reads.db, vec![update, intent]).await?.is_applied())
}

/// Deletes an intent whose entity has no pending entries.
async fn delete_stale_intent(reads: &Reads<'_>, scoped_key: &ScopedKey) -> Result<()> {
    let schema = reads.schema();
    let is_done = Condition::attribute_not_exists(meta(&PENDING)).or(is_deleting());
    let check = entity_check(schema, scoped_key, is_done);
    let intent = intent_delete(schema, PENDING_ID, scoped_key);
    // A failed condition means there are new pending entries.
    send(reads.db, vec![check, intent]).await.map(drop)
}
