//! Entities with more entries than fit into one transaction: the entries follow in steps, each of which can be the last
//! before a crash.
//!
//! The entity is written with the keys that it is to have, with its claims of unique keys, a mark that its entries are
//! behind, and an intent, in one transaction. Then what the indexes hold of it is compared with what the functions emit,
//! and what differs is written, some entries at a time, until nothing does; at last the mark and the intent go. Each step
//! depends on the version of the entity: so whoever finds an intent can go on, and who comes too late changes nothing.

use std::collections::BTreeMap;

use floe_store::Item;
use floe_store::expr::{Condition, Update};
use floe_store::op::{DeleteItem, PutItem, TransactWrite};

use crate::error::Result;
use crate::graph::keys::Place;
use crate::graph::reads::{self, Reads};
use crate::graph::steps::send;
use crate::graph::stored::{
    self, BEHIND, BEHIND_ID, INDEX_NAME, SUBJECT_KEY, Stored, UNIQUE_KEY, meta,
};
use crate::graph::writes::{entity_check, entity_update, intent_delete, is_leaving, is_version};

/// Brings entries up to date of entities where that was begun and not ended.
pub(crate) async fn resume_entries(reads: &Reads<'_>, scope: &str) -> Result<()> {
    for intent in reads.intents(BEHIND_ID, scope).await? {
        let place = Place::new(scope, stored::intent_owner(&intent)?)?;
        write_behind(reads, &place).await?;
    }
    Ok(())
}

/// Brings the entries of an entity that are behind up to date, unless they are those of another program.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) when a function cannot read the entity.
pub(crate) async fn write_behind(reads: &Reads<'_>, place: &Place) -> Result<()> {
    let max = reads.items_max();
    loop {
        let stored = reads.entity(place).await?;
        let Some(stored) = stored.filter(|stored| stored.is_behind && !stored.is_leaving) else {
            return forget(reads, place).await;
        };
        if !can_end(reads, &stored) {
            return Ok(());
        }
        let changes = changes(reads, place, &stored).await?;
        if changes.is_empty() {
            if free(reads, place, &stored).await? {
                return Ok(());
            }
            continue;
        }
        let as_seen = entity_check(reads.schema(), place, is_version(stored.version));
        let some = changes.into_iter().take(max.saturating_sub(1).max(1));
        let writes = std::iter::once(as_seen).chain(some);
        // Refused, the entity was changed, and is looked at again.
        send(reads.db, writes.collect()).await?;
    }
}

/// Whether this program has the functions by which the entity is indexed. What was changed without a function is for a
/// rebuild.
fn can_end(reads: &Reads<'_>, stored: &Stored) -> bool {
    stored.entries.iter().all(|(name, indexed)| {
        match reads.schema().index_of(stored.node.key.type_name(), name) {
            Some(index) => index.version == indexed.version,
            None => indexed.version == 0,
        }
    })
}

/// What differs between the entries that are there and those that the functions of this program emit.
async fn changes(reads: &Reads<'_>, place: &Place, stored: &Stored) -> Result<Vec<TransactWrite>> {
    let schema = reads.schema();
    let table = schema.entries();
    let mut wanted: BTreeMap<String, Item> = BTreeMap::new();
    for index in schema.indexes_of(place.key.type_name()) {
        for (key, attributes) in index.emitted(&stored.node)? {
            let entry = stored::entry(place, &index.name, &key, &attributes);
            wanted.insert(stored::text(&entry, &UNIQUE_KEY)?.to_owned(), entry);
        }
    }
    let mut changes: Vec<TransactWrite> = Vec::new();
    let entries = reads::entries_query(schema, place);
    for entry in reads.query(entries, None).await? {
        let index = stored::text(&entry, &INDEX_NAME)?;
        let is_known = schema.index_of(place.key.type_name(), index).is_some();
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

/// Removes the mark and the intent. Tells whether the entity was as it was seen.
async fn free(reads: &Reads<'_>, place: &Place, stored: &Stored) -> Result<bool> {
    let schema = reads.schema();
    let update = Update::new().remove(meta(&BEHIND));
    let update = entity_update(schema, place, update, is_version(stored.version));
    let intent = intent_delete(schema, BEHIND_ID, place);
    Ok(send(reads.db, vec![update, intent]).await?.is_applied())
}

/// Removes an intent that nothing depends on.
async fn forget(reads: &Reads<'_>, place: &Place) -> Result<()> {
    let schema = reads.schema();
    let is_done = Condition::attribute_not_exists(meta(&BEHIND)).or(is_leaving());
    let check = entity_check(schema, place, is_done);
    let intent = intent_delete(schema, BEHIND_ID, place);
    // Refused, it was begun again.
    send(reads.db, vec![check, intent]).await.map(drop)
}
