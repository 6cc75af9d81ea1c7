//! Requests that read the graph, and what is done when one fails.

pub(super) use std::collections::{BTreeMap, BTreeSet, HashSet};

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::op::{GetItem, Page, Query, Scan};
use floe_store::{BoxFuture, Error as StoreError, Item, Name, Value};

use super::keys::{Place, predicate_prefix};
use super::schema::GraphSchema;
use super::stored::{
    Edge, ID, OBJECT_KEY, PREDICATE_KEY, SCOPE_TYPE_KEY, SUBJECT_KEY, Stored, entity_key,
    intents_prefix,
};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::model::query::Cursor;
use crate::request::{Backoff, Budget, ItemRequest, batch_get, repeat};
use crate::side_by_side;
use crate::tx::Tx;

/// How many requests are on their way at once.
pub(crate) const REQUESTS_AT_ONCE: usize = 16;

/// Who reads: a transaction, which runs again if a request fails, or nobody in particular.
#[derive(Clone, Copy)]
pub(super) struct Reads<'a> {
    pub(super) db: &'a Db,
    pub(super) tx: Option<&'a Tx>,
}

impl<'a> Reads<'a> {
    pub(super) fn schema(&self) -> &'a GraphSchema {
        self.db.graph_schema()
    }

    async fn send<'f, T>(
        &self,
        request: impl Fn() -> BoxFuture<'f, floe_store::Result<T>>,
    ) -> Result<T> {
        let budget = if self.tx.is_some() {
            Budget::once()
        } else {
            Budget::for_read()
        };
        let sent = repeat(self.db, budget, request).await;
        sent.map_err(|error| match self.tx {
            Some(tx) => tx.note(failed(error)),
            None => failed(error),
        })
    }

    /// An error that passes: the transaction runs again, if there is one.
    pub(super) fn retry(&self, error: Error) -> Error {
        match self.tx {
            Some(tx) => tx.retry(error),
            None => error,
        }
    }

    /// One item, as it is.
    pub(super) async fn item(&self, table: &str, key: &Item) -> Result<Option<Item>> {
        let get = || {
            let get = GetItem::new(table, key.clone());
            self.db.engine().get_item(get)
        };
        Ok(self.send(get).await?.item)
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
        let answers = batches
            .clone()
            .map(|some| -> BoxFuture<'_, Result<Vec<Item>>> { Box::pin(self.some(some)) });
        let answers = side_by_side::all(REQUESTS_AT_ONCE, answers.collect()).await;
        for (some, items) in batches.zip(answers) {
            let items = items?;
            let by_key: BTreeMap<(&str, String), &Place> = some
                .iter()
                .map(|place| ((place.key.id(), place.type_key()), *place))
                .collect();
            for item in &items {
                let id = item.get(&ID).and_then(Value::as_s).unwrap_or_default();
                let type_key = item.get(&SCOPE_TYPE_KEY).and_then(Value::as_s);
                let key = (id, type_key.unwrap_or_default().to_owned());
                if let Some(place) = by_key.get(&key) {
                    found.insert((*place).clone(), Stored::of_item(item)?);
                }
            }
        }
        Ok(found)
    }

    /// The items of up to 100 entities.
    async fn some(&self, places: &[&Place]) -> Result<Vec<Item>> {
        let table = self.schema().entities();
        let keys: Vec<Item> = places.iter().map(|place| entity_key(place)).collect();
        match keys.as_slice() {
            // One item needs no batch.
            [key] => Ok(self.item(&table, key).await?.into_iter().collect()),
            _ => self.batch(&table, keys).await,
        }
    }

    /// The items of up to 100 keys. What the engine leaves out is asked for again.
    pub(super) async fn batch(&self, table: &str, keys: Vec<Item>) -> Result<Vec<Item>> {
        let requests: Vec<ItemRequest<'_>> = keys
            .into_iter()
            .map(|key| ItemRequest {
                table,
                key,
                consistent: true,
            })
            .collect();
        let found = self
            .send(|| Box::pin(batch_get(self.db, &requests)))
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    pub(super) async fn page(&self, query: &Query) -> Result<Page> {
        self.send(|| self.db.engine().query(query.clone())).await
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
        let next = page
            .last_key
            .map(|last| cursors.seal(asked, &last.pick(names)));
        Ok((page.items, next.transpose()?))
    }

    pub(super) async fn scan(&self, scan: &Scan) -> Result<Page> {
        self.send(|| self.db.engine().scan(scan.clone())).await
    }

    /// The items of a query, up to so many.
    pub(super) async fn query(&self, mut query: Query, max: Option<usize>) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        loop {
            query.limit = max.map(|max| (max - items.len()).max(1));
            let page = self.page(&query).await?;
            items.extend(page.items);
            query.start_key = page.last_key;
            if query.start_key.is_none() || max.is_some_and(|max| items.len() >= max) {
                return Ok(items);
            }
        }
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
            let keys: Vec<Item> = keys.collect::<Result<_>>()?;
            let found: HashSet<Item> = self
                .batch(&table, keys.clone())
                .await?
                .iter()
                .map(|item| item.pick(&[SUBJECT_KEY, PREDICATE_KEY]))
                .collect();
            let some = some.iter().zip(keys);
            let some = some.filter(|(_, key)| found.contains(key));
            there.extend(some.map(|(edge, _)| edge.clone()));
        }
        Ok(there)
    }

    /// The intents of a kind in a scope.
    pub(super) async fn intents(&self, of: &'static str, scope: &str) -> Result<Vec<Item>> {
        self.query(intents_query(self.schema(), of, scope), None)
            .await
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

/// Says what to do where a table is missing.
pub(super) fn failed(error: StoreError) -> Error {
    match error {
        StoreError::ResourceNotFound(_) => Error::new(
            ErrorKind::Table,
            "a table of the graph is missing; call ensure_graph",
        )
        .with_source(error),
        error => error.into(),
    }
}
