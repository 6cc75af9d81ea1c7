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
use floe_store::op::{ConditionCheck, DeleteItem, PutItem, TransactWrite, UpdateItem};

use super::Graph;
use super::compile::is_version;
use super::key::{EntityKey, Place};
use super::read::{self, Reads};
use super::steps::send;
use super::stored::{
    self, BEHIND, BEHIND_ID, INDEX_NAME, LEAVING, SUBJECT_KEY, Stored, UNIQUE_KEY, meta,
};
use super::work::{Done, Op};
use crate::error::{ErrorKind, Result};
use crate::tx::Tx;

impl Graph<'_> {
    /// Writes an entity. What does not fit into one transaction follows in steps.
    pub(super) async fn write(&self, op: &Op<'_>) -> Result<Done> {
        let error = match self.run(op).await {
            Err(error) if error.kind() == ErrorKind::TooLarge && self.tx.is_none() => error,
            done => return done,
        };
        let Some(key) = op.written() else {
            return Err(error);
        };
        let written = self.options().run(async |tx: &Tx| {
            tx.session()
                .graph(|changes| changes.defers_entries = true)?;
            op.apply(tx, &self.scope).await
        });
        let done = written.await?;
        end(&self.reads(), &self.place(key)?).await?;
        Ok(done)
    }

    /// Brings entries up to date of entities where that was begun and not ended.
    pub(super) async fn resume_entries(&self) -> Result<()> {
        let query = stored::intents_query(self.db.graph_schema(), BEHIND_ID, &self.scope);
        for item in self.reads().query(query, None).await? {
            let place = self.place(&stored::intent_owner(&item)?)?;
            end(&self.reads(), &place).await?;
        }
        Ok(())
    }
}

impl Op<'_> {
    /// The entity that is written, if it is one.
    const fn written(&self) -> Option<&EntityKey> {
        match self {
            Self::Create(node) | Self::Update(node) | Self::Upsert(node) | Self::Set(node) => {
                Some(&node.key)
            }
            Self::Modify(key, _) => Some(key),
            Self::Delete(_) | Self::List { .. } => None,
        }
    }
}

/// Brings the entries of an entity that are behind up to date, unless they are those of another program.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) when a function cannot read the entity.
pub(super) async fn end(reads: &Reads<'_>, place: &Place) -> Result<()> {
    let max = reads.db.engine().capabilities().transact_items_max;
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
        let key = stored::entity_key(place);
        let entities = reads.schema().entities();
        let as_seen = ConditionCheck::new(entities, key, is_version(stored.version));
        let some = changes.into_iter().take(max.saturating_sub(1).max(1));
        let writes = std::iter::once(as_seen.into()).chain(some);
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
    for entry in reads
        .query(read::entries_query(schema, place), None)
        .await?
    {
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
    let entities = reads.schema().entities();
    let update = Update::new().remove(meta(&BEHIND));
    let update = UpdateItem::new(entities.as_str(), stored::entity_key(place), update)
        .condition(is_version(stored.version));
    let intent = DeleteItem::new(entities, stored::intent_key(BEHIND_ID, place));
    let freed = send(reads.db, vec![update.into(), intent.into()]).await?;
    Ok(freed.is_applied())
}

/// Removes an intent that nothing depends on.
async fn forget(reads: &Reads<'_>, place: &Place) -> Result<()> {
    let entities = reads.schema().entities();
    let is_done = Condition::attribute_not_exists(meta(&BEHIND))
        .or(Condition::attribute_exists(meta(&LEAVING)));
    let check = ConditionCheck::new(entities.as_str(), stored::entity_key(place), is_done);
    let intent = DeleteItem::new(entities, stored::intent_key(BEHIND_ID, place));
    // Refused, it was begun again.
    send(reads.db, vec![check.into(), intent.into()])
        .await
        .map(drop)
}
