//! The entities and edges that a call sees. Inside a transaction, they include its changes.

mod deleting;

use std::collections::BTreeMap;

use super::handle::Graph;
use super::keys::ScopedKey;
use super::stored::{Edge, StoredEntity};
use crate::error::Result;

impl Graph<'_> {
    /// Returns an entity; `None` if it does not exist or is under deletion.
    pub(super) async fn load_entity(&self, scoped_key: &ScopedKey) -> Result<Option<StoredEntity>> {
        let Some(tx) = self.tx else {
            let stored = self.reads().entity(scoped_key).await?;
            return Ok(stored.filter(|stored| !stored.is_deleting));
        };
        let context = self.context(tx);
        let stored = context.load(scoped_key).await?;
        context.changes(|changes| changes.watch(scoped_key))?;
        Ok(stored)
    }

    /// Returns entities, including those under deletion.
    pub(super) async fn load_entities(
        &self,
        scoped_keys: &[ScopedKey],
    ) -> Result<BTreeMap<ScopedKey, StoredEntity>> {
        let Some(tx) = self.tx else {
            return self.reads().entities(scoped_keys).await;
        };
        let context = self.context(tx);
        let is_unread = |scoped_key: &&ScopedKey| {
            matches!(context.changes(|c| c.current(scoped_key)), Ok(None))
        };
        let unread: Vec<ScopedKey> = scoped_keys.iter().filter(is_unread).cloned().collect();
        let mut read = self.reads().entities(&unread).await?;
        context.changes(|changes| {
            for scoped_key in &unread {
                changes.record_read(scoped_key, read.remove(scoped_key));
            }
            let mut found = BTreeMap::new();
            for scoped_key in scoped_keys {
                changes.watch(scoped_key);
                let known = changes.current(scoped_key).flatten();
                let known = known.or_else(|| changes.deleting(scoped_key).cloned());
                found.extend(known.map(|stored| (scoped_key.clone(), stored)));
            }
            found
        })
    }

    /// Returns the outgoing edges of a subject, with the changes of the transaction, if there is one.
    pub(super) async fn outgoing(
        &self,
        subject: &ScopedKey,
        predicate: Option<&str>,
    ) -> Result<Vec<Edge>> {
        let Some(tx) = self.tx else {
            return self.reads().outgoing(subject, predicate, None).await;
        };
        let context = self.context(tx);
        context.load(subject).await?;
        let stored = self.reads().outgoing(subject, predicate, None).await?;
        context.changes(|changes| {
            changes.watch_list(subject);
            changes.outgoing(subject, predicate, stored)
        })?
    }
}
