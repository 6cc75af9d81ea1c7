//! What is read of the graph, as it is stored: entities, edges, entries and intents.

use std::collections::{BTreeMap, BTreeSet};

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::op::{Query, Scan};
use floe_store::{BoxFuture, Item, Name, Value};

use super::keys::{Place, predicate_prefix};
use super::schema::GraphSchema;
use super::stored::{
    Edge, ID, OBJECT_KEY, PREDICATE_KEY, SCOPE_TYPE_KEY, SUBJECT_KEY, Stored, entity_key,
    intents_prefix,
};
use crate::cursor::Cursor;
use crate::db::Db;
use crate::error::{Error, Result};
use crate::request::{Backoff, ItemRequest};
use crate::side_by_side;
use crate::tx::Tx;
pub(super) use crate::tx::reads::Reads;

/// What to do where a table of the graph is missing.
pub(super) const MISSING: &str = "a table of the graph is missing; call ensure_graph";

/// How many requests are on their way at once.
pub(crate) const REQUESTS_AT_ONCE: usize = 16;

type Answer<'a> = BoxFuture<'a, Result<Vec<Option<Item>>>>;

impl<'a> Reads<'a> {
    /// Reads of a graph.
    pub(super) const fn of_graph(db: &'a Db, tx: Option<&'a Tx>) -> Self {
        Self::new(db, tx, MISSING)
    }

    pub(super) fn schema(&self) -> &'a GraphSchema {
        self.db.graph_schema()
    }

    /// An error that passes: the transaction runs again, if there is one.
    /// How many items a transaction of the store takes.
    pub(super) fn items_max(&self) -> usize {
        self.db.engine().capabilities().transact_items_max
    }

    pub(super) fn retry(&self, error: Error) -> Error {
        match self.tx {
            Some(tx) => tx.retry(error),
            None => error,
        }
    }

    /// One entity, as it is.
    pub(super) async fn entity(&self, place: &Place) -> Result<Option<Stored>> {
        let item = self
            .item(&self.schema().entities(), &entity_key(place))
            .await?;
        item.as_ref().map(Stored::of_item).transpose()
    }

    /// Any number of entities, in batches that are sent side by side, each asked for once.
    pub(super) async fn entities(&self, places: &[Place]) -> Result<BTreeMap<Place, Stored>> {
        let wanted: BTreeSet<&Place> = places.iter().collect();
        let wanted: Vec<&Place> = wanted.into_iter().collect();
        let mut found = BTreeMap::new();
        let batches = wanted.chunks(BATCH_GET_ITEMS_MAX);
        let table = self.schema().entities();
        let answers = batches.clone().map(|some| -> Answer<'_> {
            let keys = some.iter().map(|place| entity_key(place));
            Box::pin(self.some(&table, keys.collect()))
        });
        let answers = side_by_side::all(REQUESTS_AT_ONCE, answers.collect()).await;
        for (some, items) in batches.zip(answers) {
            for (place, item) in some.iter().zip(items?) {
                let stored = item.as_ref().map(Stored::of_item).transpose()?;
                found.extend(stored.map(|stored| ((*place).clone(), stored)));
            }
        }
        Ok(found)
    }

    /// The items of up to 100 keys of a table, in their order.
    async fn some(&self, table: &str, keys: Vec<Item>) -> Result<Vec<Option<Item>>> {
        let requests = keys.into_iter().map(|key| ItemRequest {
            table,
            key,
            consistent: true,
        });
        let requests: Vec<ItemRequest<'_>> = requests.collect();
        self.items(&requests).await
    }

    /// Looks at all items of a scan.
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

    /// A page behind a cursor, if there is one, and the cursor behind it: of these attributes, and only for what is asked.
    pub(super) async fn page_after(
        &self,
        mut query: Query,
        asked: &Item,
        after: Option<&str>,
        names: &[Name],
    ) -> Result<(Vec<Item>, Option<Cursor>)> {
        let cursors = self.db.cursor_key();
        let start = after.map(|after| cursors.open(asked, after));
        query.start_key = start.transpose()?;
        let page = self.page(&query).await?;
        let last = page.last_key.map(|last| last.pick(names));
        let next = last.map(|last| cursors.seal(asked, &last));
        Ok((page.items, next.transpose()?))
    }

    /// The stored outgoing edges of a subject, in their order, up to so many.
    pub(super) async fn outgoing(
        &self,
        subject: &Place,
        predicate: Option<&str>,
        max: Option<usize>,
    ) -> Result<Vec<Edge>> {
        let query = outgoing_query(self.schema(), subject, predicate).consistent();
        edges(&self.query(query, max).await?)
    }

    /// Those of the edges of a scope that are in the table.
    pub(super) async fn still_there(&self, scope: &str, edges: Vec<Edge>) -> Result<Vec<Edge>> {
        let table = self.schema().relationships();
        let mut there = Vec::new();
        for some in edges.chunks(BATCH_GET_ITEMS_MAX) {
            let keys = some.iter().map(|edge| edge.key_item(scope));
            let items = self.some(&table, keys.collect::<Result<_>>()?).await?;
            let some = some.iter().zip(items);
            let some = some.filter(|(_, item)| item.is_some());
            there.extend(some.map(|(edge, _)| edge.clone()));
        }
        Ok(there)
    }

    /// The intents of a kind in a scope.
    pub(super) async fn intents(&self, of: &'static str, scope: &str) -> Result<Vec<Item>> {
        let query = intents_query(self.schema(), of, scope);
        self.query(query, None).await
    }

    /// Lets some time pass before the next try.
    pub(super) async fn pause(&self, tried: u32) {
        let pause = Backoff::resync().pause(tried, self.db.env().next_u64());
        self.db.timer().sleep(pause).await;
    }

    /// The stored edges that lead to an object, as far as the index knows, up to so many.
    pub(super) async fn incoming(&self, object: &Place, max: Option<usize>) -> Result<Vec<Edge>> {
        let query = incoming_query(self.schema(), object);
        edges(&self.query(query, max).await?)
    }
}

/// The query of the outgoing edges of a subject.
pub(super) fn outgoing_query(
    schema: &GraphSchema,
    subject: &Place,
    predicate: Option<&str>,
) -> Query {
    let mut key = KeyCondition::partition(SUBJECT_KEY, subject.text());
    if let Some(predicate) = predicate {
        let prefix = Value::from(predicate_prefix(predicate));
        key = key.and(PREDICATE_KEY, KeyOp::BeginsWith(prefix));
    }
    Query::new(schema.relationships(), key)
}

/// The query of the entries of an entity in all indexes, as they are.
pub(super) fn entries_query(schema: &GraphSchema, place: &Place) -> Query {
    let key = KeyCondition::partition(SUBJECT_KEY, place.text());
    Query::new(schema.entries(), key).consistent()
}

/// The query of the intents of a kind in a scope, as they are.
pub(super) fn intents_query(schema: &GraphSchema, of: &'static str, scope: &str) -> Query {
    let prefix = Value::from(intents_prefix(scope));
    let key = KeyCondition::partition(ID, of).and(SCOPE_TYPE_KEY, KeyOp::BeginsWith(prefix));
    Query::new(schema.entities(), key).consistent()
}

/// The query of the edges that lead to an object.
pub(super) fn incoming_query(schema: &GraphSchema, object: &Place) -> Query {
    let key = KeyCondition::partition(OBJECT_KEY, object.text());
    Query::new(schema.relationships(), key).index(schema.reverse())
}

pub(super) fn edges(items: &[Item]) -> Result<Vec<Edge>> {
    items.iter().map(Edge::of_item).collect()
}
