//! Reads: what the cache can answer, and what is kept of the engine's answers.

use std::collections::{BTreeMap, HashMap, HashSet};

use floe_store::limits::BATCH_GET_BYTES_MAX;
use floe_store::op::{BatchGetItem, BatchGetItemOutput, GetItem, GetItemOutput, KeysAndAttributes};
use floe_store::size::item_size;
use floe_store::{Item, Name, Result, Timestamp};

use super::CacheEngine;
use super::shelf::{Found, Look, Read, Shelf};

/// Answers from memory, or by the engine.
pub(super) async fn get_item(cache: &CacheEngine, mut input: GetItem) -> Result<GetItemOutput> {
    let read = match cache.begin_get(&input) {
        Begun::Answered(item) => {
            let consumed = None;
            return Ok(GetItemOutput { item, consumed });
        }
        Begun::Passes => return cache.inner.get_item(input).await,
        Begun::Fills(read) => read,
    };
    input.consistent = read.consistent;
    let (table, key) = (input.table_name.clone(), input.key.clone());
    let output = cache.inner.get_item(input).await?;
    let found = cache.found(output.item.as_ref());
    cache.lock().fill(read, &table, &key, found);
    Ok(output)
}

/// As [`get_item`], for several.
pub(super) async fn batch_get_item(
    cache: &CacheEngine,
    mut input: BatchGetItem,
) -> Result<BatchGetItemOutput> {
    // What is left of a wrong request might be right.
    if input.validate().is_err() {
        return cache.inner.batch_get_item(input).await;
    }
    let (answered, fills) = cache.begin_batch(&mut input);
    let mut output = BatchGetItemOutput::default();
    if !input.requests.is_empty() {
        output = cache.inner.batch_get_item(input).await?;
    }
    for (table, fill) in &fills {
        let found = cache.found_of_batch(table, fill, &output);
        let mut shelf = cache.lock();
        for (key, found) in found {
            shelf.fill(fill.read, table, key, found);
        }
    }
    for (table, unprocessed) in &mut output.unprocessed {
        if let Some(fill) = fills.get(table) {
            unprocessed.consistent = fill.asked_consistent;
        }
    }
    join(&mut output, answered);
    Ok(output)
}

impl CacheEngine {
    fn begin_get(&self, input: &GetItem) -> Begun {
        // Whether a projection is allowed is for the engine to say, and a part of an item is not kept.
        if input.projection.is_some() {
            return Begun::Passes;
        }
        let now = self.inner.now();
        let (table, key) = (&input.table_name, &input.key);
        let mut shelf = self.lock();
        if input.consistent {
            // Refreshes what is there; what is only ever read consistently is not worth the room.
            if !shelf.knows(table, key) {
                return Begun::Passes;
            }
            return Begun::Fills(shelf.begin_read(now, true));
        }
        // What it cost can only be told of a read that was made, and made as it was asked for.
        if input.return_capacity.is_wanted() {
            return Begun::Fills(shelf.begin_read(now, false));
        }
        match shelf.look(table, key, now) {
            Look::Hit(item) => Begun::Answered(item),
            Look::Miss { written_lately } => Begun::Fills(shelf.begin_read(now, written_lately)),
        }
    }

    /// Takes out of a batch what can be answered, by table, and says what to keep of the rest.
    fn begin_batch(&self, input: &mut BatchGetItem) -> (Answers, BTreeMap<String, Fill>) {
        let now = self.inner.now();
        let (mut answered, mut fills) = (Answers::new(), BTreeMap::new());
        let tells_cost = input.return_capacity.is_wanted();
        let mut shelf = self.lock();
        for (table, request) in &mut input.requests {
            if request.projection.is_some() {
                continue;
            }
            let asked_consistent = request.consistent;
            if !asked_consistent && !tells_cost {
                let known = take_known(&mut shelf, table, request, now);
                answered.insert(table.clone(), known);
            }
            let mut keys = request.keys.clone();
            if asked_consistent {
                keys.retain(|key| shelf.knows(table, key));
            }
            let fill = Fill {
                keys,
                read: shelf.begin_read(now, request.consistent),
                asked_consistent,
            };
            fills.insert(table.clone(), fill);
        }
        input.requests.retain(|_, request| !request.keys.is_empty());
        (answered, fills)
    }

    /// What a batch has found out about the keys of a table. Of those left unprocessed that is nothing.
    fn found_of_batch<'f>(
        &self,
        table: &str,
        fill: &'f Fill,
        output: &BatchGetItemOutput,
    ) -> Vec<(&'f Item, Option<Found>)> {
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
        keys.map(|key| (key, self.found(items.get(key).copied())))
            .collect()
    }

    /// What to keep of an item that was read.
    fn found(&self, item: Option<&Item>) -> Option<Found> {
        match item {
            Some(item) => Found::item(item, self.options),
            None => Some(Found::ABSENT),
        }
    }
}

/// How a read goes on.
enum Begun {
    /// It is answered.
    Answered(Option<Item>),
    /// The engine reads, and nothing is kept.
    Passes,
    /// The engine reads in this way, and what it finds is kept.
    Fills(Read),
}

/// What to keep of a batch, for one table.
struct Fill {
    keys: Vec<Item>,
    read: Read,
    asked_consistent: bool,
}

/// The keys that the cache has answered, with their items, by table.
type Answers = BTreeMap<String, Vec<(Item, Item)>>;

/// Takes the keys out of a request that the cache can answer, and returns those that have an item. If any
/// of the rest was written lately, the rest is read consistently.
fn take_known(
    shelf: &mut Shelf,
    table: &str,
    request: &mut KeysAndAttributes,
    now: Timestamp,
) -> Vec<(Item, Item)> {
    let (mut known, mut rest) = (Vec::new(), Vec::new());
    for key in std::mem::take(&mut request.keys) {
        match shelf.look(table, &key, now) {
            Look::Hit(item) => known.extend(item.map(|item| (key, item))),
            Look::Miss { written_lately } => {
                request.consistent |= written_lately;
                rest.push(key);
            }
        }
    }
    request.keys = rest;
    known
}

/// Adds what the cache has answered, as far as an answer has room.
fn join(output: &mut BatchGetItemOutput, answers: Answers) {
    let bytes: usize = output.items.values().flatten().map(item_size).sum();
    let mut room = BATCH_GET_BYTES_MAX.saturating_sub(bytes);
    for (table, known) in answers {
        let items = output.items.entry(table.clone()).or_default();
        for (key, item) in known {
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
