//! Writes: how they change the cache.

use std::collections::BTreeSet;

use floe_store::op::{
    BatchWrite, BatchWriteItem, BatchWriteItemOutput, DeleteItem, ReturnValues, TransactWrite,
    TransactWriteItems, TransactWriteItemsOutput, UpdateItem, WriteItem, WriteItemOutput,
};
use floe_store::{Error, Item, Result};

use super::CacheEngine;
use super::state::CachedItem;

pub(super) async fn write_item(
    cache: &CacheEngine,
    mut input: WriteItem,
) -> Result<WriteItemOutput> {
    if let WriteItem::Put(put) = &input {
        cache.learn_keys([put.table_name.as_str()]).await;
    }
    let image_requested = request_image(&mut input);
    let returns_image = matches!(&input, WriteItem::Update(update)
        if update.return_values == ReturnValues::AllNew && update.token.is_none());
    let mut in_flight = WritesInFlight::begin(cache, vec![cache.plan(&input)]);
    let mut result = cache.inner.write_item(input).await;
    if let Ok(output) = &mut result {
        if returns_image {
            let image = output.attributes.as_ref();
            in_flight.set_image(image.and_then(|image| CachedItem::item(image, cache.options)));
        }
        if image_requested {
            output.attributes = None;
        }
    }
    in_flight.finish(result)
}

pub(super) async fn batch_write_item(
    cache: &CacheEngine,
    input: BatchWriteItem,
) -> Result<BatchWriteItemOutput> {
    let with_puts = input.requests.iter().filter(|(_, writes)| {
        let mut writes = writes.iter();
        writes.any(|write| matches!(write, BatchWrite::Put(_)))
    });
    let tables = with_puts.map(|(table, _)| table.as_str());
    cache.learn_keys(tables).await;
    let plans = input.requests.iter().flat_map(|(table, writes)| {
        writes.iter().map(|write| match write {
            BatchWrite::Put(item) => cache.plan_put(table, item, true),
            BatchWrite::Delete(key) => PlannedWrite::known(table, key, Some(CachedItem::ABSENT)),
        })
    });
    let mut in_flight = WritesInFlight::begin(cache, plans.collect());
    let result = cache.inner.batch_write_item(input).await;
    for (table, writes) in result.iter().flat_map(|output| &output.unprocessed) {
        writes
            .iter()
            .for_each(|w| in_flight.mark_unprocessed(table, w));
    }
    in_flight.finish(result)
}

pub(super) async fn transact_write_items(
    cache: &CacheEngine,
    input: TransactWriteItems,
) -> Result<TransactWriteItemsOutput> {
    let puts = input.actions.iter().filter_map(|action| match action {
        TransactWrite::Put(put) => Some(put.table_name.as_str()),
        _ => None,
    });
    cache.learn_keys(puts).await;
    let is_once = input.token.is_some();
    let plans = input.actions.iter().filter_map(|action| match action {
        TransactWrite::Put(put) => Some(cache.plan_put(&put.table_name, &put.item, !is_once)),
        TransactWrite::Update(update) => Some(plan_update(update)),
        TransactWrite::Delete(delete) => Some(plan_delete(delete, is_once)),
        TransactWrite::Check(_) => None,
    });
    let in_flight = WritesInFlight::begin(cache, plans.collect());
    let checks = input.actions.iter().filter_map(|action| match action {
        TransactWrite::Check(check) => Some((check.table_name.clone(), check.key.clone())),
        _ => None,
    });
    let checks: Vec<(String, Item)> = checks.collect();
    let result = in_flight.finish(cache.inner.transact_write_items(input).await);
    if result.is_err() {
        cache.invalidate(&checks);
    }
    result
}

impl CacheEngine {
    /// Invalidates the items of condition checks: a failed condition may mean that the cache is stale.
    fn invalidate(&self, checks: &[(String, Item)]) {
        let now = self.inner.now();
        let mut state = self.lock();
        for (table, key) in checks {
            state.invalidate(table, key, now);
        }
    }

    /// Describes the tables whose key is not known yet. If the engine fails to describe a table, it is not asked again.
    async fn learn_keys<'t>(&self, tables: impl IntoIterator<Item = &'t str>) {
        for table in self.unresolved(tables) {
            match self.inner.describe_table(table.to_owned()).await {
                Ok(description) => self.learn_key(&description),
                // There is no such table: the write will return the error.
                Err(Error::ResourceNotFound(_) | Error::Validation(_)) => {}
                Err(_) => self.lock().mark_key_unavailable(table),
            }
        }
    }

    fn unresolved<'t>(&self, tables: impl IntoIterator<Item = &'t str>) -> BTreeSet<&'t str> {
        let state = self.lock();
        let tables = tables.into_iter();
        tables
            .filter(|table| !state.is_key_resolved(table))
            .collect()
    }

    fn plan(&self, write: &WriteItem) -> PlannedWrite {
        match write {
            WriteItem::Put(put) => self.plan_put(&put.table_name, &put.item, put.token.is_none()),
            WriteItem::Update(update) => plan_update(update),
            WriteItem::Delete(delete) => plan_delete(delete, delete.token.is_some()),
        }
    }

    fn plan_put(&self, table: &str, item: &Item, keeps: bool) -> PlannedWrite {
        let names = self.lock().key_names(table);
        let key = names.and_then(|names| {
            let key = item.pick(names.iter());
            (key.len() == names.len()).then_some(key)
        });
        PlannedWrite {
            table: table.to_owned(),
            key,
            is_exact: false,
            result: keeps
                .then(|| CachedItem::item(item, self.options))
                .flatten(),
        }
    }
}

/// Lets an update return the new image, if the caller requested no values. Returns whether it was changed.
fn request_image(input: &mut WriteItem) -> bool {
    match input {
        WriteItem::Update(update)
            if update.return_values == ReturnValues::None && update.token.is_none() =>
        {
            update.return_values = ReturnValues::AllNew;
            true
        }
        _ => false,
    }
}

fn plan_update(update: &UpdateItem) -> PlannedWrite {
    PlannedWrite::known(&update.table_name, &update.key, None)
}

fn plan_delete(delete: &DeleteItem, is_once: bool) -> PlannedWrite {
    let result = (!is_once).then_some(CachedItem::ABSENT);
    PlannedWrite::known(&delete.table_name, &delete.key, result)
}

/// A write that is about to be sent.
struct PlannedWrite {
    table: String,
    /// The key; unknown for a put into a table whose key attributes are unknown.
    key: Option<Item>,
    /// Whether the key came from the caller.
    is_exact: bool,
    /// The item after the write, if known.
    result: Option<CachedItem>,
}

impl PlannedWrite {
    fn known(table: &str, key: &Item, result: Option<CachedItem>) -> Self {
        Self {
            table: table.to_owned(),
            key: Some(key.clone()),
            is_exact: true,
            result,
        }
    }
}

/// Writes that were sent. If this is dropped before the response, their outcome is unknown.
struct WritesInFlight<'c> {
    cache: &'c CacheEngine,
    plans: Vec<PlannedWrite>,
}

impl<'c> WritesInFlight<'c> {
    fn begin(cache: &'c CacheEngine, plans: Vec<PlannedWrite>) -> Self {
        let mut state = cache.lock();
        for plan in &plans {
            if let Some(key) = &plan.key {
                state.begin_write(&plan.table, key);
            }
        }
        drop(state);
        Self { cache, plans }
    }

    /// Sets the image that the engine returned for the only write.
    fn set_image(&mut self, found: Option<CachedItem>) {
        if let [only] = self.plans.as_mut_slice() {
            only.result = found;
        }
    }

    /// Records that the engine left this write of a batch unprocessed.
    fn mark_unprocessed(&mut self, table: &str, write: &BatchWrite) {
        let item = write.key_item();
        let is_same = |plan: &&mut PlannedWrite| {
            let mut key = plan.key.iter().flat_map(|key| key.iter());
            plan.table == table && key.all(|(name, value)| item.get(name) == Some(value))
        };
        for plan in self.plans.iter_mut().filter(is_same) {
            plan.result = None;
        }
    }

    /// Applies the response of the engine to the cache.
    fn finish<T>(mut self, result: Result<T>) -> Result<T> {
        self.end(match &result {
            Ok(_) => WriteEnd::Applied,
            Err(error) if error.may_have_applied() => WriteEnd::Unknown,
            Err(_) => WriteEnd::NotApplied,
        });
        result
    }

    fn end(&mut self, end: WriteEnd) {
        let now = self.cache.inner.now();
        let mut state = self.cache.lock();
        for plan in self.plans.drain(..) {
            match plan.key {
                Some(key) if end == WriteEnd::Applied => {
                    state.confirm_key(&plan.table, &key, plan.is_exact);
                    state.end_write(&plan.table, &key, now, plan.result);
                }
                Some(key) => state.end_write(&plan.table, &key, now, None),
                // No slot was changed for an unknown key.
                None if end == WriteEnd::NotApplied => {}
                // It may have been any key of the table.
                None => state.drop_table(&plan.table),
            }
        }
    }
}

/// The outcome of writes.
#[derive(Clone, Copy, PartialEq)]
enum WriteEnd {
    Applied,
    NotApplied,
    Unknown,
}

impl Drop for WritesInFlight<'_> {
    fn drop(&mut self) {
        self.end(WriteEnd::Unknown);
    }
}
