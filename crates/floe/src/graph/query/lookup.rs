//! Index lookups: finds entities by the keys of an index.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::op::Query;
use floe_store::{Item, Value};

use crate::cursor::Page;
use crate::error::Result;
use crate::graph::handle::Graph;
use crate::graph::index::ScopedIndex;
use crate::graph::keys::{
    EntityKey, IndexKey, IndexKeyRef, ScopedKey, ToIndexKey, check_scope, join,
};
use crate::graph::node::{FromNode, Node};
use crate::graph::schema::{IndexDef, MapIndex};
use crate::graph::stored::{
    self, INDEX_KEY, SCOPE_INDEX_NAME, SUBJECT_KEY, UNIQUE_KEY, entry_owner, text,
};

/// A query of an index; see [`Graph::find`].
#[derive(Clone, Debug)]
pub struct Lookup<'g, 'tx, E, K: ?Sized> {
    graph: &'g Graph<'tx>,
    index: Result<IndexDef>,
    keys: Keys,
    is_backward: bool,
    limit: Option<usize>,
    after: Option<String>,
    allows_scan: bool,
    /// Whether stored entries are returned without checking that the index is complete.
    is_unchecked: bool,
    types: PhantomData<fn(&K) -> E>,
}

impl<'tx> Graph<'tx> {
    /// Queries entities by an index.
    pub fn find<I: MapIndex>(&self) -> Lookup<'_, 'tx, I::Of, <I::Key as IndexKeyRef>::Form> {
        Lookup::new(self, I::NAME)
    }

    /// Queries entities by the name of an index, untyped.
    pub fn find_by(&self, index: &str) -> Lookup<'_, 'tx, Node, IndexKey> {
        Lookup::new(self, index)
    }

    /// Queries the stored [entries](Lookup::entries) of an index by name, for tools without its function. The index
    /// need not be declared, and is not checked for completeness.
    pub fn find_stored(&self, index: &str) -> Lookup<'_, 'tx, Node, IndexKey> {
        Lookup::stored(self, index)
    }
}

/// The keys that a lookup selects.
#[derive(Clone, Debug)]
enum Keys {
    All,
    Equal(IndexKey),
    Prefix(IndexKey),
    Range(Bound<IndexKey>, Bound<IndexKey>),
}

/// An entry of an index.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IndexEntry {
    /// The entity.
    pub entity: EntityKey,
    /// The key as stored.
    pub key: String,
    /// The attributes copied from the entity.
    pub attributes: Item,
}

impl<'g, 'tx, E: FromNode, K: ToIndexKey + ?Sized> Lookup<'g, 'tx, E, K> {
    fn new(graph: &'g Graph<'tx>, name: &str) -> Self {
        Self {
            graph,
            index: graph.db.graph_schema().index_named(name).cloned(),
            keys: Keys::All,
            is_backward: false,
            limit: None,
            after: None,
            allows_scan: false,
            is_unchecked: false,
            types: PhantomData,
        }
    }

    /// Queries the stored entries of an index, independently of the schema.
    fn stored(graph: &'g Graph<'tx>, name: &str) -> Self {
        Self {
            index: Ok(IndexDef::new(name, "", 0, |_, _| {})),
            is_unchecked: true,
            ..Self::new(graph, name)
        }
    }

    /// Selects one key.
    #[must_use]
    pub fn eq(self, key: &K) -> Self {
        self.with_keys(Keys::Equal(key.to_index_key()))
    }

    /// Selects a range of keys.
    #[must_use]
    pub fn range<'k>(self, range: impl RangeBounds<&'k K>) -> Self
    where
        K: 'k,
    {
        let bound = |bound: Bound<&&'k K>| bound.map(|key| key.to_index_key());
        let (from, to) = (bound(range.start_bound()), bound(range.end_bound()));
        self.with_keys(Keys::Range(from, to))
    }

    /// Selects text keys with a prefix.
    #[must_use]
    pub fn prefix(self, prefix: &str) -> Self {
        self.with_keys(Keys::Prefix(IndexKey::text(prefix)))
    }

    fn with_keys(self, keys: Keys) -> Self {
        Self { keys, ..self }
    }

    /// Returns the largest key first.
    #[must_use]
    pub fn backward(mut self) -> Self {
        self.is_backward = true;
        self
    }

    /// Maximum number of entries; for [`page`](Self::page), maximum on the page.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Continues after the cursor of a page.
    #[must_use]
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.after = Some(cursor.into());
        self
    }

    /// Scans all entities of the type if the index is incomplete, instead of failing. The result has no cursor then.
    #[must_use]
    pub fn or_scan(mut self) -> Self {
        self.allows_scan = true;
        self
    }

    /// Returns the keys of the entities, in index order.
    ///
    /// # Errors
    ///
    /// As for [`entries`](Self::entries).
    pub async fn keys(&self) -> Result<Vec<EntityKey>> {
        let entries = self.entries().await?.into_iter();
        Ok(entries.map(|entry| entry.entity).collect())
    }

    /// Returns the entries with their copied attributes, in order. Does not read the entities.
    ///
    /// # Errors
    ///
    /// [`IndexNotReady`](crate::ErrorKind::IndexNotReady) if the index is incomplete,
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if it is not declared,
    /// [`InvalidCursor`](crate::ErrorKind::InvalidCursor).
    pub async fn entries(&self) -> Result<Vec<IndexEntry>> {
        let (mut entries, mut after) = (Vec::new(), self.after.clone());
        loop {
            let left = self.limit.map(|limit| limit - entries.len());
            let page = self.entry_page(left, after.as_deref()).await?;
            entries.extend(page.rows);
            let is_full = self.limit.is_some_and(|limit| entries.len() >= limit);
            match page.next {
                Some(next) if !is_full => after = Some(next.into()),
                _ => return Ok(entries),
            }
        }
    }

    /// Returns the entities in index order: one query, and one batch for each 100. Entities that no longer have the key
    /// are left out.
    ///
    /// # Errors
    ///
    /// As for [`entries`](Self::entries).
    pub async fn load(&self) -> Result<Vec<E>> {
        self.loaded(self.entries().await?).await
    }

    /// Returns a page of entities. It may have fewer than the limit, if entities have changed since they were indexed.
    ///
    /// # Errors
    ///
    /// As for [`entries`](Self::entries).
    pub async fn page(&self) -> Result<Page<E>> {
        let page = self.entry_page(self.limit, self.after.as_deref()).await?;
        Ok(Page {
            rows: self.loaded(page.rows).await?,
            next: page.next,
        })
    }

    async fn loaded(&self, entries: Vec<IndexEntry>) -> Result<Vec<E>> {
        let index = self.index.as_ref().map_err(Clone::clone)?;
        let scoped_keys = entries
            .iter()
            .map(|entry| self.graph.scoped_key(&entry.entity));
        let scoped_keys: Vec<ScopedKey> = scoped_keys.collect::<Result<_>>()?;
        let found = self.graph.load_entities(&scoped_keys).await?;
        let mut loaded = Vec::with_capacity(entries.len());
        for (entry, scoped_key) in entries.iter().zip(&scoped_keys) {
            let Some(stored) = found.get(scoped_key).filter(|stored| !stored.is_deleting) else {
                continue;
            };
            // The stored entries are outdated after a scan, or if this transaction changed the entity.
            let is_there = stored.entries.get(&index.name).is_none_or(|indexed| {
                indexed.version != index.version || indexed.keys.contains(&entry.key)
            });
            if is_there {
                loaded.push(E::from_node(stored.node.clone())?);
            }
        }
        Ok(loaded)
    }

    async fn entry_page(
        &self,
        limit: Option<usize>,
        after: Option<&str>,
    ) -> Result<Page<IndexEntry>> {
        let index = self.index.as_ref().map_err(Clone::clone)?;
        check_scope(&self.graph.scope)?;
        let (reads, scope) = (self.graph.reads(), &self.graph.scope);
        let scoped = ScopedIndex {
            reads,
            scope,
            def: index,
        };
        if !self.is_unchecked
            && let Some(state) = scoped.incomplete().await?
        {
            if self.allows_scan {
                return self.scan(index, limit).await;
            }
            return Err(scoped.not_ready(&state));
        }
        if limit == Some(0) || self.keys.is_empty() {
            let (rows, next) = (Vec::new(), None);
            return Ok(Page { rows, next });
        }
        let parameters = self.parameters(index);
        let mut query = self.query(index);
        (query.limit, query.forward) = (limit, !self.is_backward);
        let names = [SCOPE_INDEX_NAME, INDEX_KEY, SUBJECT_KEY, UNIQUE_KEY];
        let (items, next) = reads.page_after(query, &parameters, after, &names).await?;
        let rows = items.iter().map(IndexEntry::of_item);
        let mut rows: Vec<_> = rows.collect::<Result<_>>()?;
        rows.retain(|entry| self.keys.matches(&entry.key));
        Ok(Page { rows, next })
    }

    fn query(&self, index: &IndexDef) -> Query {
        let schema = self.graph.db.graph_schema();
        let name = join([self.graph.scope.as_str(), index.name.as_str()]);
        let mut key = KeyCondition::partition(SCOPE_INDEX_NAME, name);
        if let Some(op) = self.keys.op() {
            key = key.and(INDEX_KEY, op);
        }
        Query::new(schema.entries(), key).index(schema.lookup())
    }

    fn parameters(&self, index: &IndexDef) -> Item {
        Item::new()
            .with("scope", self.graph.scope.as_str())
            .with("index", index.name.as_str())
            .with("keys", format!("{:?}", self.keys))
            .with("backward", self.is_backward)
    }

    /// Computes the result of the lookup from all entities of the type.
    async fn scan(&self, index: &IndexDef, limit: Option<usize>) -> Result<Page<IndexEntry>> {
        let mut rows = Vec::new();
        for node in self.graph.all_of(&index.type_name).collect().await? {
            for (key, attributes) in index.emitted(&node)? {
                if self.keys.matches(key.as_str()) {
                    rows.push(IndexEntry {
                        entity: node.key.clone(),
                        key: key.as_str().to_owned(),
                        attributes,
                    });
                }
            }
        }
        rows.sort_by(|a, b| (&a.key, &a.entity).cmp(&(&b.key, &b.entity)));
        if self.is_backward {
            rows.reverse();
        }
        rows.truncate(limit.unwrap_or(usize::MAX));
        Ok(Page { rows, next: None })
    }
}

impl Keys {
    /// The key condition, as far as the store supports it. A range with an excluded end is queried with that end, which
    /// is filtered afterwards.
    fn op(&self) -> Option<KeyOp> {
        let value = |key: &IndexKey| Value::from(key.as_str());
        Some(match self {
            Self::All | Self::Range(Bound::Unbounded, Bound::Unbounded) => return None,
            Self::Equal(key) => KeyOp::Eq(value(key)),
            Self::Prefix(key) if key.as_str().is_empty() => return None,
            Self::Prefix(key) => KeyOp::BeginsWith(value(key)),
            Self::Range(Bound::Included(from), Bound::Unbounded) => KeyOp::Ge(value(from)),
            Self::Range(Bound::Excluded(from), Bound::Unbounded) => KeyOp::Gt(value(from)),
            Self::Range(Bound::Unbounded, Bound::Included(to)) => KeyOp::Le(value(to)),
            Self::Range(Bound::Unbounded, Bound::Excluded(to)) => KeyOp::Lt(value(to)),
            Self::Range(
                Bound::Included(from) | Bound::Excluded(from),
                Bound::Included(to) | Bound::Excluded(to),
            ) => KeyOp::Between(value(from), value(to)),
        })
    }

    fn matches(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Equal(expected) => expected.as_str() == key,
            Self::Prefix(prefix) => key.starts_with(prefix.as_str()),
            Self::Range(from, to) => {
                let range = (from.as_ref(), to.as_ref());
                range.contains(&IndexKey::text(key))
            }
        }
    }

    /// Whether no key can match. The store rejects empty keys, and ranges that end before they start.
    fn is_empty(&self) -> bool {
        match self {
            Self::Equal(key) => key.as_str().is_empty(),
            Self::Range(
                Bound::Included(from) | Bound::Excluded(from),
                Bound::Included(to) | Bound::Excluded(to),
            ) => from > to,
            _ => false,
        }
    }
}

impl IndexEntry {
    fn of_item(item: &Item) -> Result<Self> {
        Ok(Self {
            entity: entry_owner(item)?,
            key: text(item, &stored::INDEX_KEY)?.to_owned(),
            attributes: stored::attributes(item),
        })
    }
}
