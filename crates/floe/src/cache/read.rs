//! Reads: which of them the cache serves, and which responses of the engine it stores.

use std::collections::{BTreeMap, HashMap, HashSet};

use floe_store::limits::BATCH_GET_BYTES_MAX;
use floe_store::op::{BatchGetItem, BatchGetItemOutput, GetItem, GetItemOutput, KeysAndAttributes};
use floe_store::size::item_size;
use floe_store::{Item, Name, Result, Timestamp};

use super::CacheEngine;
use super::state::{CacheState, CachedItem, EngineRead, Lookup};

/// Serves a read from the cache or by the engine.
pub(super) async fn get_item(cache: &CacheEngine, mut input: GetItem) -> Result<GetItemOutput> {
    let read = match cache.begin_get(&input) {
        ReadPlan::Hit(item) => {
            let consumed = None;
            return Ok(GetItemOutput { item, consumed });
        }
        ReadPlan::PassThrough => return cache.inner.get_item(input).await,
        ReadPlan::Fill(read) => read,
    };
    input.consistent = read.consistent;
    let (table, key) = (input.table_name.clone(), input.key.clone());
    let output = cache.inner.get_item(input).await?;
    let cached = cache.cacheable(output.item.as_ref());
    cache.lock().fill(read, &table, &key, cached);
    Ok(output)
}

/// Like [`get_item`], for several items.
pub(super) async fn batch_get_item(
    cache: &CacheEngine,
    mut input: BatchGetItem,
) -> Result<BatchGetItemOutput> {
    // Without the cached keys, an invalid request could become valid.
    if input.validate().is_err() {
        return cache.inner.batch_get_item(input).await;
    }
    let (hits, fills) = cache.begin_batch(&mut input);
    let mut output = BatchGetItemOutput::default();
    if !input.requests.is_empty() {
        output = cache.inner.batch_get_item(input).await?;
    }
    for (table, fill) in &fills {
        let cacheable = cache.cacheable_of_batch(table, fill, &output);
        let mut state = cache.lock();
        for (key, cached) in cacheable {
            state.fill(fill.read, table, key, cached);
        }
    }
    for (table, unprocessed) in &mut output.unprocessed {
        if let Some(fill) = fills.get(table) {
            unprocessed.consistent = fill.requested_consistent;
        }
    }
    add_hits(&mut output, hits);
    Ok(output)
}

impl CacheEngine {
    fn begin_get(&self, input: &GetItem) -> ReadPlan {
        // The engine validates projections, and parts of items are not cached.
        if input.projection.is_some() {
            return ReadPlan::PassThrough;
        }
        let now = self.inner.now();
        let (table, key) = (&input.table_name, &input.key);
        let mut state = self.lock();
        if input.consistent {
            // Refreshes a cached item. Items that are only read consistently are not worth caching.
            if !state.contains(table, key) {
                return ReadPlan::PassThrough;
            }
            return ReadPlan::Fill(state.begin_read(now, true));
        }
        // Only a read that is sent unchanged has the consumed capacity that the caller requested.
        if input.return_capacity.is_wanted() {
            return ReadPlan::Fill(state.begin_read(now, false));
        }
        match state.lookup(table, key, now) {
            Lookup::Hit(item) => ReadPlan::Hit(item),
            Lookup::Miss { written_recently } => {
                ReadPlan::Fill(state.begin_read(now, written_recently))
            }
        }
    }

    /// Removes from a batch the keys that the cache serves, by table, and plans what to store of the rest.
    fn begin_batch(&self, input: &mut BatchGetItem) -> (CacheHits, BTreeMap<String, Fill>) {
        let now = self.inner.now();
        let (mut hits, mut fills) = (CacheHits::new(), BTreeMap::new());
        let returns_capacity = input.return_capacity.is_wanted();
        let mut state = self.lock();
        for (table, request) in &mut input.requests {
            if request.projection.is_some() {
                continue;
            }
            let requested_consistent = request.consistent;
            if !requested_consistent && !returns_capacity {
                let found = take_hits(&mut state, table, request, now);
                hits.insert(table.clone(), found);
            }
            let mut keys = request.keys.clone();
            if requested_consistent {
                keys.retain(|key| state.contains(table, key));
            }
            let fill = Fill {
                keys,
                read: state.begin_read(now, request.consistent),
                requested_consistent,
            };
            fills.insert(table.clone(), fill);
        }
        input.requests.retain(|_, request| !request.keys.is_empty());
        (hits, fills)
    }

    /// What to cache for the keys of a table after a batch. Unprocessed keys are skipped.
    fn cacheable_of_batch<'f>(
        &self,
        table: &str,
        fill: &'f Fill,
        output: &BatchGetItemOutput,
    ) -> Vec<(&'f Item, Option<CachedItem>)> {
        let unprocessed = output.unprocessed.get(table);
        let unprocessed: HashSet<&Item> = unprocessed.iter().flat_map(|r| &r.keys).collect();
        let Some(first) = fill.keys.first() else {
            return Vec::new();
        };
        let names: Vec<&Name> = first.iter().map(|(name, _)| name).collect();
        let items = output.items.get(table).into_iter().flatten();
        let items: HashMap<Item, &Item> = items
            .map(|item| (item.pick(names.iter().copied()), item))
            .collect();
        let keys = fill.keys.iter().filter(|key| !unprocessed.contains(key));
        keys.map(|key| (key, self.cacheable(items.get(key).copied())))
            .collect()
    }

    /// What to cache of an item that was read.
    fn cacheable(&self, item: Option<&Item>) -> Option<CachedItem> {
        match item {
            Some(item) => CachedItem::item(item, self.options),
            None => Some(CachedItem::ABSENT),
        }
    }
}

/// How to serve a read.
enum ReadPlan {
    /// From the cache.
    Hit(Option<Item>),
    /// By the engine, without caching.
    PassThrough,
    /// By the engine with this read, whose result is cached.
    Fill(EngineRead),
}

/// What to cache of a batch, for one table.
struct Fill {
    keys: Vec<Item>,
    read: EngineRead,
    requested_consistent: bool,
}

/// The keys that the cache has served, with their items, by table.
type CacheHits = BTreeMap<String, Vec<(Item, Item)>>;

/// Removes the keys that the cache can serve from a request, and returns those that have an item. If any other key was
/// written recently, all others are read consistently.
fn take_hits(
    state: &mut CacheState,
    table: &str,
    request: &mut KeysAndAttributes,
    now: Timestamp,
) -> Vec<(Item, Item)> {
    let (mut hits, mut rest) = (Vec::new(), Vec::new());
    for key in std::mem::take(&mut request.keys) {
        match state.lookup(table, &key, now) {
            Lookup::Hit(item) => hits.extend(item.map(|item| (key, item))),
            Lookup::Miss { written_recently } => {
                request.consistent |= written_recently;
                rest.push(key);
            }
        }
    }
    request.keys = rest;
    hits
}

/// Adds the hits to a response, up to its maximum size.
fn add_hits(output: &mut BatchGetItemOutput, hits: CacheHits) {
    let bytes: usize = output.items.values().flatten().map(item_size).sum();
    let mut room = BATCH_GET_BYTES_MAX.saturating_sub(bytes);
    for (table, hits) in hits {
        let items = output.items.entry(table.clone()).or_default();
        for (key, item) in hits {
            if let Some(left) = room.checked_sub(item_size(&item)) {
                room = left;
                items.push(item);
            } else {
                let unprocessed = output.unprocessed.entry(table.clone());
                unprocessed.or_default().keys.push(key);
            }
        }
    }
}
