//! Writes of single items, batches and transactions, and the removal of expired items.

use std::collections::BTreeMap;

use floe_store::capacity::{
    Consistency, ReturnConsumedCapacity, WriteKind, check_cost, read_cost, write_cost,
};
use floe_store::error::CancellationCode;
use floe_store::op::*;
use floe_store::size::item_size;
use floe_store::{CancellationReason, ConsumedCapacity, Error, Item, Result, TableDef};

use super::key::Key;
use super::read::{Costs, if_requested};
use super::state::{AppliedRequest, State, TokenKind};

/// The change of one item.
struct Change {
    table_name: String,
    key: Item,
    old: Option<Item>,
    new: Option<Item>,
}

impl Change {
    /// The larger size of the item before and after.
    fn bytes(&self) -> usize {
        let size = |item: &Option<Item>| item.as_ref().map_or(0, item_size);
        size(&self.old).max(size(&self.new))
    }

    /// The cost of the change.
    fn cost(
        &self,
        table: &TableDef,
        kind: WriteKind,
        detail: ReturnConsumedCapacity,
    ) -> ConsumedCapacity {
        write_cost(table, self.old.as_ref(), self.new.as_ref(), kind, detail)
    }
}

impl State {
    pub(super) fn write_item(&mut self, input: &WriteItem) -> Result<WriteItemOutput> {
        input.validate()?;
        let table = self.table(input.table_name())?;
        input.check(&table.definition)?;
        let fingerprint = input.fingerprint();
        let detail = input.return_capacity();
        let replay = self.replay(TokenKind::Write, input.token(), fingerprint)?;
        if let Some(before) = replay {
            return Ok(WriteItemOutput {
                consumed: replayed(&before, Consistency::Strong, detail).pop(),
                attributes: before.returned,
                collection: None,
            });
        }
        let key = input.key(&table.definition)?;
        let old = table.get(&key).cloned();
        let applied = input.clone().apply(&table.definition, old.as_ref())?;
        let change = Change {
            table_name: input.table_name().to_owned(),
            key: key.clone(),
            old,
            new: applied.new,
        };
        let cost = change.cost(&table.definition, WriteKind::Plain, detail);
        let sizes = vec![(change.table_name.clone(), change.bytes())];
        self.apply(change, None);
        let token = input.token().map(str::to_owned);
        let returned = applied.returned.clone();
        self.store_token(TokenKind::Write, token, fingerprint, sizes, returned);
        Ok(WriteItemOutput {
            attributes: applied.returned,
            consumed: if_requested(cost, detail),
            collection: if input.return_collection() {
                self.collection(input.table_name(), &key)
            } else {
                None
            },
        })
    }

    pub(super) fn batch_write_item(
        &mut self,
        input: &BatchWriteItem,
    ) -> Result<BatchWriteItemOutput> {
        input.validate()?;
        input.check(|name| self.definition(name))?;
        let detail = input.return_capacity;
        let mut costs = Costs::default();
        let mut written = Vec::new();
        for (table_name, writes) in &input.requests {
            for write in writes {
                let table = self.table(table_name)?;
                let key = write.key(&table.definition)?;
                let change = Change {
                    table_name: table_name.clone(),
                    old: table.get(&key).cloned(),
                    new: write.clone().apply(),
                    key: key.clone(),
                };
                costs.add(change.cost(&table.definition, WriteKind::Plain, detail));
                written.push((table_name.clone(), key));
                self.apply(change, None);
            }
        }
        Ok(BatchWriteItemOutput {
            unprocessed: BTreeMap::new(),
            consumed: costs.if_requested(detail),
            collections: self.collections(input.return_collection, &written),
        })
    }

    pub(super) fn transact_write_items(
        &mut self,
        input: &TransactWriteItems,
    ) -> Result<TransactWriteItemsOutput> {
        input.validate()?;
        input.check(|name| self.definition(name))?;
        let fingerprint = input.fingerprint();
        let detail = input.return_capacity;
        let replay = self.replay(TokenKind::Transaction, input.token.as_deref(), fingerprint)?;
        if let Some(before) = replay {
            return Ok(TransactWriteItemsOutput {
                consumed: replayed(&before, Consistency::Transactional, detail),
                ..TransactWriteItemsOutput::default()
            });
        }
        let outcomes: Vec<_> = input
            .actions
            .iter()
            .map(|action| self.outcome(action))
            .collect();
        if outcomes.iter().any(Result::is_err) {
            let reason = |outcome: Result<Change, CancellationReason>| {
                outcome.err().unwrap_or_else(CancellationReason::none)
            };
            let reasons = outcomes.into_iter().map(reason).collect();
            return Err(Error::TransactionCanceled { reasons });
        }
        let changes: Vec<Change> = outcomes.into_iter().flatten().collect();
        let mut costs = Costs::default();
        for (action, change) in input.actions.iter().zip(&changes) {
            let definition = &self.table(&change.table_name)?.definition;
            costs.add(match action {
                TransactWrite::Check(_) => check_cost(definition, change.old.as_ref(), detail),
                _ => change.cost(definition, WriteKind::Transactional, detail),
            });
        }
        let sizes = changes.iter().map(|c| (c.table_name.clone(), c.bytes()));
        let sizes = sizes.collect();
        let written = input.actions.iter().zip(&changes);
        let written: Vec<_> = written
            .filter(|(action, _)| !matches!(action, TransactWrite::Check(_)))
            .map(|(_, change)| (change.table_name.clone(), change.key.clone()))
            .collect();
        for change in changes {
            self.apply(change, None);
        }
        let token = input.token.clone();
        self.store_token(TokenKind::Transaction, token, fingerprint, sizes, None);
        Ok(TransactWriteItemsOutput {
            consumed: costs.if_requested(detail),
            collections: self.collections(input.return_collection, &written),
        })
    }

    /// The change that an action of a transaction makes, or the reason why it fails.
    fn outcome(&self, action: &TransactWrite) -> Result<Change, CancellationReason> {
        let invalid = |error: Error| {
            CancellationReason::new(CancellationCode::ValidationError, error.to_string())
        };
        let table = self.table(action.table_name()).map_err(invalid)?;
        let key = action.key(&table.definition).map_err(invalid)?;
        let old = table.get(&key).cloned();
        let new = action.clone().apply(&table.definition, old.as_ref())?;
        let table_name = action.table_name().to_owned();
        Ok(Change {
            table_name,
            key,
            old,
            new,
        })
    }

    /// Removes all expired items.
    pub(super) fn sweep(&mut self) {
        let now = self.env.now();
        let mut expired = Vec::new();
        for (table_name, table) in &self.tables {
            let definition = &table.definition;
            let items = table.items.values();
            for item in items.filter(|item| definition.expired(item, now)) {
                expired.extend(definition.key.key_of(item).map(|key| Change {
                    table_name: table_name.clone(),
                    key,
                    old: Some(item.clone()),
                    new: None,
                }));
            }
        }
        for change in expired {
            self.apply(change, Some(ServiceIdentity::Expiry));
        }
    }

    /// Changes an item and adds its change record.
    fn apply(&mut self, change: Change, identity: Option<ServiceIdentity>) {
        let (table_name, new) = (change.table_name, change.new);
        self.record(&table_name, &change.key, change.old, new.clone(), identity);
        if let Some(table) = self.tables.get_mut(&table_name) {
            let key = Key::of(&table.definition.key, &change.key);
            match new {
                Some(item) => drop(table.items.insert(key, item)),
                None => drop(table.items.remove(&key)),
            }
        }
    }

    /// The metrics of the item collection of a key.
    fn collection(&self, table_name: &str, key: &Item) -> Option<ItemCollectionMetrics> {
        let table = self.tables.get(table_name)?;
        let bytes = table.collection_bytes(key);
        ItemCollectionMetrics::estimate(&table.definition, key, bytes)
    }

    /// The metrics of the item collections of these keys, without duplicates, if they were requested.
    fn collections(
        &self,
        is_wanted: bool,
        written: &[(String, Item)],
    ) -> BTreeMap<String, Vec<ItemCollectionMetrics>> {
        let mut collections: BTreeMap<String, Vec<ItemCollectionMetrics>> = BTreeMap::new();
        for (table_name, key) in written.iter().filter(|_| is_wanted) {
            if let Some(metrics) = self.collection(table_name, key) {
                let metrics_list = collections.entry(table_name.clone()).or_default();
                if !metrics_list.contains(&metrics) {
                    metrics_list.push(metrics);
                }
            }
        }
        collections
    }
}

/// The cost of a repeated request: a read of each item.
fn replayed(
    before: &AppliedRequest,
    consistency: Consistency,
    detail: ReturnConsumedCapacity,
) -> Vec<ConsumedCapacity> {
    let mut costs = Costs::default();
    for (table_name, bytes) in &before.sizes {
        costs.add(read_cost(table_name, [*bytes], consistency, detail));
    }
    costs.if_requested(detail)
}
