//! Writes: what they leave in the cache.

use std::collections::BTreeSet;

use floe_store::op::{
    BatchWrite, BatchWriteItem, BatchWriteItemOutput, DeleteItem, ReturnValues, TransactWrite,
    TransactWriteItems, TransactWriteItemsOutput, UpdateItem, WriteItem, WriteItemOutput,
};
use floe_store::{Error, Item, Result};

use super::CacheEngine;
use super::shelf::Found;

pub(super) async fn write_item(
    cache: &CacheEngine,
    mut input: WriteItem,
) -> Result<WriteItemOutput> {
    if let WriteItem::Put(put) = &input {
        cache.learn_keys([put.table_name.as_str()]).await;
    }
    let asked_for_image = ask_for_image(&mut input);
    let shows_image = matches!(&input, WriteItem::Update(update)
        if update.return_values == ReturnValues::AllNew && update.token.is_none());
    let mut writing = Writing::begin(cache, vec![cache.plan(&input)]);
    let mut result = cache.inner.write_item(input).await;
    if let Ok(output) = &mut result {
        if shows_image {
            let image = output.attributes.as_ref();
            writing.shown(image.and_then(|image| Found::item(image, cache.options)));
        }
        if asked_for_image {
            output.attributes = None;
        }
    }
    writing.ended(result)
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
            BatchWrite::Delete(key) => Plan::known(table, key, Some(Found::ABSENT)),
        })
    });
    let mut writing = Writing::begin(cache, plans.collect());
    let result = cache.inner.batch_write_item(input).await;
    for (table, writes) in result.iter().flat_map(|output| &output.unprocessed) {
        writes.iter().for_each(|w| writing.left_out(table, w));
    }
    writing.ended(result)
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
    let writing = Writing::begin(cache, plans.collect());
    let checks = input.actions.iter().filter_map(|action| match action {
        TransactWrite::Check(check) => Some((check.table_name.clone(), check.key.clone())),
        _ => None,
    });
    let checks: Vec<(String, Item)> = checks.collect();
    let result = writing.ended(cache.inner.transact_write_items(input).await);
    if result.is_err() {
        cache.doubt(&checks);
    }
    result
}

impl CacheEngine {
    /// What a transaction was refused for may be what the cache has not seen.
    fn doubt(&self, checks: &[(String, Item)]) {
        let now = self.inner.now();
        let mut shelf = self.lock();
        for (table, key) in checks {
            shelf.doubt(table, key, now);
        }
    }

    /// Asks the engine for the keys of tables where nothing has told them yet. One that cannot say is not
    /// asked again.
    async fn learn_keys<'t>(&self, tables: impl IntoIterator<Item = &'t str>) {
        for table in self.unsettled(tables) {
            match self.inner.describe_table(table.to_owned()).await {
                Ok(description) => self.learn_key(&description),
                // There is no such table: the write will be told so.
                Err(Error::ResourceNotFound(_) | Error::Validation(_)) => {}
                Err(_) => self.lock().leave_untold(table),
            }
        }
    }

    fn unsettled<'t>(&self, tables: impl IntoIterator<Item = &'t str>) -> BTreeSet<&'t str> {
        let shelf = self.lock();
        let tables = tables.into_iter();
        tables.filter(|table| !shelf.is_settled(table)).collect()
    }

    fn plan(&self, write: &WriteItem) -> Plan {
        match write {
            WriteItem::Put(put) => self.plan_put(&put.table_name, &put.item, put.token.is_none()),
            WriteItem::Update(update) => plan_update(update),
            WriteItem::Delete(delete) => plan_delete(delete, delete.token.is_some()),
        }
    }

    fn plan_put(&self, table: &str, item: &Item, keeps: bool) -> Plan {
        let names = self.lock().key_names(table);
        let key = names.and_then(|names| {
            let key = item.pick(names.iter());
            (key.len() == names.len()).then_some(key)
        });
        Plan {
            table: table.to_owned(),
            key,
            is_exact: false,
            leaves: keeps.then(|| Found::item(item, self.options)).flatten(),
        }
    }
}

/// Has an update show the item as it is then, if the caller wants to see nothing. Returns whether it has.
fn ask_for_image(input: &mut WriteItem) -> bool {
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

fn plan_update(update: &UpdateItem) -> Plan {
    Plan::known(&update.table_name, &update.key, None)
}

fn plan_delete(delete: &DeleteItem, is_once: bool) -> Plan {
    let leaves = (!is_once).then_some(Found::ABSENT);
    Plan::known(&delete.table_name, &delete.key, leaves)
}

/// A write to come.
struct Plan {
    table: String,
    /// The key. Of a put into a table whose key is not known it is not known either.
    key: Option<Item>,
    /// Whether the key came from the caller.
    is_exact: bool,
    /// What is there when the write has been applied, if that is known.
    leaves: Option<Found>,
}

impl Plan {
    fn known(table: &str, key: &Item, leaves: Option<Found>) -> Self {
        Self {
            table: table.to_owned(),
            key: Some(key.clone()),
            is_exact: true,
            leaves,
        }
    }
}

/// Writes that are on their way. If it is dropped before they were answered, nobody knows what became of
/// them.
struct Writing<'c> {
    cache: &'c CacheEngine,
    plans: Vec<Plan>,
}

impl<'c> Writing<'c> {
    fn begin(cache: &'c CacheEngine, plans: Vec<Plan>) -> Self {
        let mut shelf = cache.lock();
        for plan in &plans {
            if let Some(key) = &plan.key {
                shelf.begin_write(&plan.table, key);
            }
        }
        drop(shelf);
        Self { cache, plans }
    }

    /// The engine has shown what the write left, if this is some.
    fn shown(&mut self, found: Option<Found>) {
        if let [only] = self.plans.as_mut_slice() {
            only.leaves = found;
        }
    }

    /// The engine has left this write of a batch undone.
    fn left_out(&mut self, table: &str, write: &BatchWrite) {
        let item = write.key_item();
        let is_meant = |plan: &&mut Plan| {
            let mut key = plan.key.iter().flat_map(|key| key.iter());
            plan.table == table && key.all(|(name, value)| item.get(name) == Some(value))
        };
        for plan in self.plans.iter_mut().filter(is_meant) {
            plan.leaves = None;
        }
    }

    /// Takes note of what the engine has answered.
    fn ended<T>(mut self, result: Result<T>) -> Result<T> {
        self.end(match &result {
            Ok(_) => End::Applied,
            Err(error) if error.may_have_applied() => End::Unknown,
            Err(_) => End::NotApplied,
        });
        result
    }

    fn end(&mut self, end: End) {
        let now = self.cache.inner.now();
        let mut shelf = self.cache.lock();
        for plan in self.plans.drain(..) {
            match plan.key {
                Some(key) if end == End::Applied => {
                    shelf.confirm_key(&plan.table, &key, plan.is_exact);
                    shelf.end_write(&plan.table, &key, now, plan.leaves);
                }
                Some(key) => shelf.end_write(&plan.table, &key, now, None),
                // Of an unknown key nothing was forgotten yet, and nothing needs to be.
                None if end == End::NotApplied => {}
                // It may be any key of its table.
                None => shelf.drop_table(&plan.table),
            }
        }
    }
}

/// What became of writes.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Applied,
    NotApplied,
    Unknown,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.end(End::Unknown);
    }
}
