//! The same operation as raw requests.

use std::hint::black_box;
use std::sync::Arc;

use floe_store::expr::{Condition, Path, Update};
use floe_store::op::{
    GetItem, TransactGet, TransactGetItems, TransactWriteItems, UpdateItem, WriteItem,
};
use floe_store::{Engine, Item};

use super::data::SCHEMA;
use super::{Operation, Subject, TaskItems, TaskResult};

pub(super) struct RawRequests(pub(super) Arc<dyn Engine>);

impl Subject for RawRequests {
    async fn step(&self, operation: Operation, items: &TaskItems) -> TaskResult<()> {
        match operation {
            Operation::Change => self.change(items.one()).await,
            Operation::ChangeTwo => self.change_two(items.two()).await,
            Operation::Read(count) => self.read(items.some(count)).await,
        }
    }
}

impl RawRequests {
    async fn change(&self, id: &str) -> TaskResult<()> {
        let output = self.0.get_item(GetItem::new(SCHEMA.table, key(id))).await?;
        let update = raise(id, level(output.item.as_ref())?);
        self.0.write_item(WriteItem::Update(update)).await?;
        Ok(())
    }

    async fn change_two(&self, ids: [&str; 2]) -> TaskResult<()> {
        let gets = ids.map(|id| TransactGet::new(SCHEMA.table, key(id)));
        let get = TransactGetItems::new(gets);
        let items = self.0.transact_get_items(get).await?.items;
        let mut updates = Vec::with_capacity(ids.len());
        for (id, item) in ids.into_iter().zip(&items) {
            updates.push(raise(id, level(item.as_ref())?).into());
        }
        let write = TransactWriteItems::new(updates);
        self.0.transact_write_items(write).await?;
        Ok(())
    }

    async fn read(&self, ids: &[String]) -> TaskResult<()> {
        let gets = ids.iter().map(|id| TransactGet::new(SCHEMA.table, key(id)));
        let get = TransactGetItems::new(gets);
        let mut levels = 0;
        for item in self.0.transact_get_items(get).await?.items {
            levels += level(item.as_ref())?;
        }
        black_box(levels);
        Ok(())
    }
}

fn key(id: &str) -> Item {
    Item::new().with("_id", id)
}

fn level(item: Option<&Item>) -> TaskResult<i64> {
    let level = item.ok_or("an item is missing")?.get("level");
    let level = level.and_then(|level| level.as_n()?.to_i64());
    level.ok_or_else(|| "an item has no level".into())
}

/// Raises the level if it has not changed since it was read.
fn raise(id: &str, old: i64) -> UpdateItem {
    let update = Update::new().set("level", old + 1);
    let unchanged = Condition::eq(Path::attribute("level"), old);
    UpdateItem::new(SCHEMA.table, key(id), update).condition(unchanged)
}
