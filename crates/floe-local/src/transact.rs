//! Transactions: checks, writes or reads many items at one point in time.
//!
//! The committer runs transactions one after another, so they cannot conflict: every action is evaluated against the
//! state left by all earlier requests, and either all actions are applied or none.

mod token;

use std::collections::BTreeMap;
use std::sync::Arc;

use floe_store::capacity::{
    Consistency, ConsumedCapacity, ReturnConsumedCapacity, WriteKind, check_cost, read_cost,
    replay_cost, write_cost,
};
use floe_store::error::CancellationCode;
use floe_store::op::{
    TransactGetItems, TransactGetItemsOutput, TransactWrite, TransactWriteItems,
    TransactWriteItemsOutput, missing_table,
};
use floe_store::{CancellationReason, Error, Result};

use crate::apply::ItemChange;
use crate::catalog::Table;
use crate::commit::Committer;
use crate::group::{DiskUse, Group};
use crate::items::{Collection, collection_metrics, definitions, key_of, read};
use crate::request::Work;
use crate::response::PendingResponse;
use crate::shared::Shared;
use crate::stored::StoredItem;

use token::Token;

/// Reads many items from one snapshot.
pub(crate) fn transact_get_items(
    shared: &Shared,
    transaction: &TransactGetItems,
) -> Result<TransactGetItemsOutput> {
    transaction.validate()?;
    let names = transaction.gets.iter().map(|get| get.table_name.as_str());
    let tables = shared.tables(names);
    transaction.check(definitions(&tables))?;
    let snapshot = shared.kv.snapshot();
    let detail = transaction.return_capacity;
    let mut costs = Costs::new(detail);
    let mut items = Vec::with_capacity(transaction.gets.len());
    let mut bytes = 0;
    for get in &transaction.gets {
        let table = tables.get(&get.table_name).ok_or_else(missing_table)?;
        let found = read(&snapshot, table, &key_of(table, &get.key)?)?;
        let size = found.as_ref().map_or(0, |(size, _)| *size);
        bytes += size;
        costs.add(&get.table_name, || {
            read_cost(&get.table_name, [size], Consistency::Transactional, detail)
        });
        items.push(found.and_then(|(_, item)| get.response_item(item)));
    }
    TransactGetItems::check_bytes(bytes)?;
    Ok(TransactGetItemsOutput {
        items,
        consumed: costs.finish(),
    })
}

/// Checks and writes many items atomically.
pub(crate) fn transact_write_items(
    committer: &Committer,
    transaction: TransactWriteItems,
) -> Result<PendingResponse<TransactWriteItemsOutput>> {
    transaction.validate()?;
    let tables = tables_of(&committer.shared, &transaction);
    transaction.check(definitions(&tables))?;
    let token = transaction.token.as_ref().map(|text| Token {
        text: text.clone(),
        fingerprint: transaction.fingerprint(),
    });
    Ok(committer.submit(Transaction {
        transaction,
        tables,
        token,
    }))
}

fn tables_of(shared: &Shared, transaction: &TransactWriteItems) -> BTreeMap<String, Arc<Table>> {
    shared.tables(transaction.actions.iter().map(TransactWrite::table_name))
}

/// A transaction that was validated against its tables.
struct Transaction {
    transaction: TransactWriteItems,
    tables: BTreeMap<String, Arc<Table>>,
    token: Option<Token>,
}

impl Work for Transaction {
    type Output = TransactWriteItemsOutput;

    fn disk_use(&self) -> DiskUse {
        let frees = |action: &TransactWrite| {
            matches!(action, TransactWrite::Delete(_) | TransactWrite::Check(_))
        };
        if self.transaction.actions.iter().all(frees) {
            DiskUse::Frees
        } else {
            DiskUse::Grows
        }
    }

    fn run(&mut self, group: &mut Group<'_>) -> Result<TransactWriteItemsOutput> {
        self.revalidate(group)?;
        let token = self.token.as_ref();
        run(group, &mut self.transaction, &self.tables, token)
    }
}

impl Transaction {
    /// Validates the request again if a table has changed since.
    fn revalidate(&mut self, group: &Group<'_>) -> Result<()> {
        if self.tables.values().any(|table| table.is_retired()) {
            self.tables = tables_of(group.shared(), &self.transaction);
            self.transaction.check(definitions(&self.tables))?;
        }
        Ok(())
    }
}

fn run(
    group: &mut Group<'_>,
    transaction: &mut TransactWriteItems,
    tables: &BTreeMap<String, Arc<Table>>,
    token: Option<&Token>,
) -> Result<TransactWriteItemsOutput> {
    let detail = transaction.return_capacity;
    if let Some(record) = token.map_or(Ok(None), |token| token.find(group))? {
        return Ok(replayed(transaction, &record.sizes));
    }
    let wants_collections = transaction.return_collection;
    let mut costs = Costs::new(detail);
    let mut actions = Vec::with_capacity(transaction.actions.len());
    let mut reasons = Vec::with_capacity(transaction.actions.len());
    let mut touched = Vec::new();
    for action in &mut transaction.actions {
        let table = tables.get(action.table_name()).ok_or_else(missing_table)?;
        if wants_collections && !matches!(action, TransactWrite::Check(_)) {
            touched.extend(Collection::load(group, table, action.key_item())?);
        }
        match Action::evaluate(group, table, action)? {
            Ok(action) => {
                costs.add(&table.definition().name, || action.cost(detail));
                actions.push(action);
                reasons.push(CancellationReason::none());
            }
            Err(reason) => reasons.push(reason),
        }
    }
    cancel_if_faulty(&mut reasons)?;
    let sizes = actions.iter().map(Action::size).collect();
    let mut changes = Vec::with_capacity(actions.len());
    for action in actions {
        changes.push(action.prepare(group)?);
    }
    let oversized = ItemChange::oversized(group, &changes);
    for (reason, _) in reasons.iter_mut().zip(oversized).filter(|(_, over)| *over) {
        *reason = collection_too_large();
    }
    cancel_if_faulty(&mut reasons)?;
    for change in changes.into_iter().flatten() {
        change.write(group);
    }
    if let Some(token) = token {
        token.record(group, sizes);
    }
    Ok(TransactWriteItemsOutput {
        consumed: costs.finish(),
        collections: collection_metrics(group, touched),
    })
}

/// The output of a transaction that was already applied: only the cost of the replay.
fn replayed(transaction: &TransactWriteItems, sizes: &[usize]) -> TransactWriteItemsOutput {
    let detail = transaction.return_capacity;
    let mut costs = Costs::new(detail);
    for (action, size) in transaction.actions.iter().zip(sizes) {
        let name = action.table_name();
        costs.add(name, || replay_cost(name, [*size], detail));
    }
    TransactWriteItemsOutput {
        consumed: costs.finish(),
        collections: BTreeMap::new(),
    }
}

fn cancel_if_faulty(reasons: &mut Vec<CancellationReason>) -> Result<()> {
    if reasons
        .iter()
        .all(|reason| reason.code == CancellationCode::None)
    {
        return Ok(());
    }
    Err(Error::TransactionCanceled {
        reasons: std::mem::take(reasons),
    })
}

/// The cancellation reason of actions that grow a collection beyond its limit.
fn collection_too_large() -> CancellationReason {
    let code = CancellationCode::ItemCollectionSizeLimitExceeded;
    CancellationReason::new(code, Error::ItemCollectionSizeLimitExceeded.to_string())
}

/// An action whose condition holds.
struct Action {
    table: Arc<Table>,
    key: Vec<u8>,
    old: Option<StoredItem>,
    new: Outcome,
}

enum Outcome {
    /// The item was only checked.
    Checked,
    /// The new item; `None` if it was deleted.
    Written(Option<StoredItem>),
}

impl Action {
    /// Applies a validated action to the current item.
    fn evaluate(
        group: &Group<'_>,
        table: &Arc<Table>,
        action: &mut TransactWrite,
    ) -> Result<Result<Self, CancellationReason>> {
        let definition = table.definition();
        let key = key_of(table, action.key_item())?;
        let old = group.get(table.space(), &key)?;
        let old = old.map(StoredItem::decode).transpose()?;
        let checks = matches!(action, TransactWrite::Check(_));
        let new = match action.apply(definition, old.as_ref().map(|old| &old.item)) {
            Ok(_) if checks => Outcome::Checked,
            Ok(new) => Outcome::Written(new.map(StoredItem::encode)),
            Err(reason) => return Ok(Err(reason)),
        };
        Ok(Ok(Self {
            table: table.clone(),
            key,
            old,
            new,
        }))
    }

    fn cost(&self, detail: ReturnConsumedCapacity) -> ConsumedCapacity {
        let definition = self.table.definition();
        let old = self.old.as_ref().map(|old| &old.item);
        match &self.new {
            Outcome::Checked => check_cost(definition, old, detail),
            Outcome::Written(new) => {
                let new = new.as_ref().map(|new| &new.item);
                write_cost(definition, old, new, WriteKind::Transactional, detail)
            }
        }
    }

    fn new_size(&self) -> usize {
        match &self.new {
            Outcome::Written(Some(new)) => new.size,
            _ => 0,
        }
    }

    fn size(&self) -> usize {
        let old = self.old.as_ref().map_or(0, |old| old.size);
        self.new_size().max(old)
    }

    fn prepare(self, group: &mut Group<'_>) -> Result<Option<ItemChange>> {
        match &self.new {
            Outcome::Checked => Ok(None),
            Outcome::Written(new) => {
                let (old, new) = (self.old.as_ref(), new.as_ref());
                ItemChange::prepare_unchecked(group, &self.table, self.key, old, new, None)
            }
        }
    }
}

/// The costs of a request per table, in the order in which the tables first occur.
struct Costs {
    detail: ReturnConsumedCapacity,
    by_table: Vec<ConsumedCapacity>,
}

impl Costs {
    const fn new(detail: ReturnConsumedCapacity) -> Self {
        Self {
            detail,
            by_table: Vec::new(),
        }
    }

    fn add(&mut self, table_name: &str, cost: impl FnOnce() -> ConsumedCapacity) {
        if !self.detail.is_wanted() {
            return;
        }
        let mut known = self.by_table.iter_mut();
        match known.find(|known| known.table_name == table_name) {
            Some(known) => known.merge(&cost()),
            None => self.by_table.push(cost()),
        }
    }

    fn finish(self) -> Vec<ConsumedCapacity> {
        self.by_table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use floe_store::limits::ITEM_COLLECTION_BYTES_MAX;
    use floe_store::op::{CreateTable, DeleteItem, PutItem};
    use floe_store::size::item_size;
    use floe_store::table::{KeyKind, Projection};
    use floe_store::{Engine, Item, TableDef};

    use crate::kv::Bytes;
    use crate::layout::key::collection_key;
    use crate::response::block_on;
    use crate::{LocalEngine, Options};

    /// An engine with a table whose items have no entries in its local index, so that only items count in a collection.
    fn engine() -> LocalEngine {
        let engine = LocalEngine::memory_with(Options::new().background(false)).unwrap();
        let table = TableDef::builder("Tab", "p", KeyKind::S)
            .sort_key("s", KeyKind::N)
            .local_index("by_other", "other", KeyKind::N, Projection::All);
        block_on(engine.create_table(CreateTable::from(table.build().unwrap()))).unwrap();
        engine
    }

    fn item(s: i64) -> Item {
        Item::new()
            .with("p", "a")
            .with("s", s)
            .with("v", "0123456789")
    }

    fn put(s: i64) -> TransactWrite {
        PutItem::new("Tab", item(s)).into()
    }

    fn delete(s: i64) -> TransactWrite {
        let key = Item::new().with("p", "a").with("s", s);
        DeleteItem::new("Tab", key).into()
    }

    /// Sets the recorded size of the collection so that `bytes` more fit.
    fn leave_room(engine: &LocalEngine, bytes: u64) {
        let committer = &engine.running.committer;
        let names = ["Tab"];
        let table = committer
            .shared
            .tables(names.into_iter())
            .remove("Tab")
            .unwrap();
        let key = Bytes::from(collection_key(&table.definition().key, &item(0)).unwrap());
        let size = ITEM_COLLECTION_BYTES_MAX - bytes;
        let fill = committer.run(DiskUse::Grows, move |group| {
            let now = group.load_collection(&table, &key)?;
            let more = i64::try_from(size).unwrap() - i64::try_from(now).unwrap();
            group.grow_collection(&table, key, more);
            Ok(())
        });
        fill.wait().unwrap();
    }

    fn codes(engine: &LocalEngine, actions: Vec<TransactWrite>) -> Vec<CancellationCode> {
        match block_on(engine.transact_write_items(TransactWriteItems::new(actions))) {
            Ok(_) => Vec::new(),
            Err(Error::TransactionCanceled { reasons }) => {
                reasons.into_iter().map(|reason| reason.code).collect()
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    #[test]
    fn collection_limit_applies_to_the_whole_transaction() {
        use CancellationCode::{ItemCollectionSizeLimitExceeded as TooLarge, None as Fine};
        let size = u64::try_from(item_size(&item(1))).unwrap();
        let engine = engine();
        assert_eq!(codes(&engine, vec![put(1)]), []);
        leave_room(&engine, 2 * size - 1);
        let other = PutItem::new("Tab", item(9).with("p", "b"));
        // Each one would fit alone.
        let both = vec![put(2), other.clone().into(), put(3)];
        assert_eq!(codes(&engine, both), [TooLarge, Fine, TooLarge]);
        // Deletes make room, regardless of the order of actions.
        let swap = vec![put(2), put(3), delete(1)];
        assert_eq!(codes(&engine, swap), []);
        // Now there is not enough room for one more.
        assert_eq!(codes(&engine, vec![put(4), other.into()]), [TooLarge, Fine]);
        let alone = engine.write_item(PutItem::new("Tab", item(4)).into());
        assert_eq!(block_on(alone), Err(Error::ItemCollectionSizeLimitExceeded));
        assert_eq!(codes(&engine, vec![delete(2), put(4)]), []);
    }
}
