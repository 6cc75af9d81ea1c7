//! Reads the items of the graph: entities, edges, entries and intents.

use std::collections::{BTreeMap, BTreeSet};

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::op::{Query, Scan};
use floe_store::{BoxFuture, Item, Name, Value};

use super::keys::{ScopedKey, predicate_prefix};
use super::schema::GraphSchema;
use super::stored::{
    Edge, ID, OBJECT_KEY, PREDICATE_KEY, SCOPE_TYPE_KEY, SUBJECT_KEY, StoredEntity, entity_key,
    intents_prefix,
};
use crate::concurrent;
use crate::cursor::Cursor;
use crate::db::Db;
use crate::error::{Error, Result};
use crate::request::{Backoff, ItemRequest};
use crate::tx::Tx;
pub(super) use crate::tx::reads::Reads;

/// The error when a table of the graph is missing.
pub(super) const MISSING: &str = "a table of the graph is missing: call ensure_graph";

/// Maximum number of concurrent requests.
pub(crate) const REQUESTS_AT_ONCE: usize = 16;

type ItemsFuture<'a> = BoxFuture<'a, Result<Vec<Option<Item>>>>;

impl<'a> Reads<'a> {
    /// Creates the reader of a graph.
    pub(super) const fn of_graph(db: &'a Db, tx: Option<&'a Tx>) -> Self {
        Self::new(db, tx, MISSING)
    }

    pub(super) fn schema(&self) -> &'a GraphSchema {
        self.db.graph_schema()
    }

    /// Maximum number of items in a transaction of the store.
    pub(super) fn items_max(&self) -> usize {
        self.db.engine().capabilities().transact_items_max
    }

    /// A transient error: the transaction, if stored is one, runs again.
    pub(super) fn retry(&self, error: Error) -> Error {
        match self.tx {
            Some(tx) => tx.retry(error),
            None => error,
        }
    }

    /// Reads one entity, consistently.
    pub(super) async fn entity(&self, scoped_key: &ScopedKey) -> Result<Option<StoredEntity>> {
        let item = self
            .item(&self.schema().entities(), &entity_key(scoped_key))
            .await?;
        item.as_ref().map(StoredEntity::of_item).transpose()
    }

    /// Reads entities, each once, in concurrent batches.
    pub(super) async fn entities(
        &self,
        scoped_keys: &[ScopedKey],
    ) -> Result<BTreeMap<ScopedKey, StoredEntity>> {
        let unique: BTreeSet<&ScopedKey> = scoped_keys.iter().collect();
        let unique: Vec<&ScopedKey> = unique.into_iter().collect();
        let mut found = BTreeMap::new();
        let batches = unique.chunks(BATCH_GET_ITEMS_MAX);
        let table = self.schema().entities();
        let results = batches.clone().map(|batch| -> ItemsFuture<'_> {
            let keys = batch.iter().map(|scoped_key| entity_key(scoped_key));
            Box::pin(self.batch(&table, keys.collect()))
        });
        let results = concurrent::run_all(REQUESTS_AT_ONCE, results.collect()).await;
        for (batch, items) in batches.zip(results) {
            for (scoped_key, item) in batch.iter().zip(items?) {
                let stored = item.as_ref().map(StoredEntity::of_item).transpose()?;
                found.extend(stored.map(|stored| ((*scoped_key).clone(), stored)));
            }
        }
        Ok(found)
    }

    /// Reads the items of up to 100 keys of a table, in the same order.
    async fn batch(&self, table: &str, keys: Vec<Item>) -> Result<Vec<Option<Item>>> {
        let requests = keys.into_iter().map(|key| ItemRequest {
            table,
            key,
            consistent: true,
        });
        let requests: Vec<ItemRequest<'_>> = requests.collect();
        self.items(&requests).await
    }

    /// Calls a function with each item of a scan.
    pub(super) async fn scan_each(
        &self,
        mut scan: Scan,
        mut look: impl FnMut(&Item),
    ) -> Result<()> {
        loop {
            let page = self.scan(&scan).await?;
            page.items.iter().for_each(&mut look);
            scan.start_key = page.last_key;
            if scan.start_key.is_none() {
                return Ok(());
            }
        }
    }

    /// Returns a page after a cursor, if stored is one, and the next cursor. The cursor contains the attributes `names`
    /// and is valid for queries with these parameters only.
    pub(super) async fn page_after(
        &self,
        mut query: Query,
        parameters: &Item,
        after: Option<&str>,
        names: &[Name],
    ) -> Result<(Vec<Item>, Option<Cursor>)> {
        let cursors = self.db.cursor_key();
        let start = after.map(|after| cursors.verify(parameters, after));
        query.start_key = start.transpose()?;
        let page = self.page(&query).await?;
        let last = page.last_key.map(|last| last.pick(names));
        let next = last.map(|last| cursors.sign(parameters, &last));
        Ok((page.items, next.transpose()?))
    }

    /// Reads the stored outgoing edges of a subject, in order, up to `max`.
    pub(super) async fn outgoing(
        &self,
        subject: &ScopedKey,
        predicate: Option<&str>,
        max: Option<usize>,
    ) -> Result<Vec<Edge>> {
        let query = outgoing_query(self.schema(), subject, predicate).consistent();
        edges(&self.query(query, max).await?)
    }

    /// Returns those edges that are still stored.
    pub(super) async fn still_stored(&self, scope: &str, edges: Vec<Edge>) -> Result<Vec<Edge>> {
        let table = self.schema().relationships();
        let mut stored = Vec::new();
        for batch in edges.chunks(BATCH_GET_ITEMS_MAX) {
            let keys = batch.iter().map(|edge| edge.key_item(scope));
            let items = self.batch(&table, keys.collect::<Result<_>>()?).await?;
            let batch = batch.iter().zip(items);
            let batch = batch.filter(|(_, item)| item.is_some());
            stored.extend(batch.map(|(edge, _)| edge.clone()));
        }
        Ok(stored)
    }

    /// Reads the intents of a kind in a scope.
    pub(super) async fn intents(&self, of: &'static str, scope: &str) -> Result<Vec<Item>> {
        let query = intents_query(self.schema(), of, scope);
        self.query(query, None).await
    }

    /// Pauses before the next attempt.
    pub(super) async fn pause(&self, tried: u32) {
        let pause = Backoff::resync().pause(tried, self.db.env().next_u64());
        self.db.timer().sleep(pause).await;
    }

    /// Reads the stored incoming edges of an object, up to `max`, from the index, which may lag.
    pub(super) async fn incoming(
        &self,
        object: &ScopedKey,
        max: Option<usize>,
    ) -> Result<Vec<Edge>> {
        let query = incoming_query(self.schema(), object);
        edges(&self.query(query, max).await?)
    }
}

/// The query of the outgoing edges of a subject.
pub(super) fn outgoing_query(
    schema: &GraphSchema,
    subject: &ScopedKey,
    predicate: Option<&str>,
) -> Query {
    let mut key = KeyCondition::partition(SUBJECT_KEY, subject.text());
    if let Some(predicate) = predicate {
        let prefix = Value::from(predicate_prefix(predicate));
        key = key.and(PREDICATE_KEY, KeyOp::BeginsWith(prefix));
    }
    Query::new(schema.relationships(), key)
}

/// The query of the entries of an entity in all indexes, consistently.
pub(super) fn entries_query(schema: &GraphSchema, scoped_key: &ScopedKey) -> Query {
    let key = KeyCondition::partition(SUBJECT_KEY, scoped_key.text());
    Query::new(schema.entries(), key).consistent()
}

/// The query of the intents of a kind in a scope, consistently.
pub(super) fn intents_query(schema: &GraphSchema, of: &'static str, scope: &str) -> Query {
    let prefix = Value::from(intents_prefix(scope));
    let key = KeyCondition::partition(ID, of).and(SCOPE_TYPE_KEY, KeyOp::BeginsWith(prefix));
    Query::new(schema.entities(), key).consistent()
}

/// The query of the incoming edges of an object.
pub(super) fn incoming_query(schema: &GraphSchema, object: &ScopedKey) -> Query {
    let key = KeyCondition::partition(OBJECT_KEY, object.text());
    Query::new(schema.relationships(), key).index(schema.reverse())
}

pub(super) fn edges(items: &[Item]) -> Result<Vec<Edge>> {
    items.iter().map(Edge::of_item).collect()
}
