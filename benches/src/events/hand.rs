//! The same work by requests that are made by hand.

use std::sync::Arc;

use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::op::{PutItem, UpdateItem, WriteItem};
use floe_store::{Engine, Item, Value};

use super::Sent;
use super::append::{Own, Subject};
use super::data::body;

/// As long as the one that a stream has, so that both write as many bytes. It stays as it is.
const ETAG: &str = "0193a5f0-7c1e-7000-8000-000000000000";

pub(super) struct Hand {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) table: String,
}

impl Subject for Hand {
    async fn append(&self, own: &Own) -> Sent<()> {
        let write = match own.version {
            0 => self.begin(own),
            version => self.add(own, version),
        };
        self.engine.write_item(write).await?;
        Ok(())
    }
}

impl Hand {
    /// A new item, if there is none.
    fn begin(&self, own: &Own) -> WriteItem {
        let item = key(own).with("n", 1).with("e", event());
        let item = item.with("etag", ETAG);
        let is_new = Condition::attribute_not_exists(Path::attribute("p"));
        PutItem::new(&self.table, item).condition(is_new).into()
    }

    /// One event more, if there are still as many as before.
    fn add(&self, own: &Own, version: u64) -> WriteItem {
        let events = SetOperand::list_append(Path::attribute("e"), event());
        let update = Update::new().set("e", events).set("n", version + 1);
        let unchanged = Condition::eq(Path::attribute("n"), version);
        let update = UpdateItem::new(&self.table, key(own), update);
        update.condition(unchanged).into()
    }
}

pub(super) fn key(own: &Own) -> Item {
    let stream = format!("Hand-{}", own.id);
    Item::new().with("p", stream).with("i", 2_147_483_647)
}

/// A list of one event, which has the parts of one that is stored.
fn event() -> Value {
    let event = Item::new()
        .with("c", "Booked")
        .with("t", "2026-11-17T09:30:00.123Z")
        .with("d", body());
    Value::L(vec![Value::M(event)])
}
