//! The same appends as raw requests.

use std::sync::Arc;

use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::op::{PutItem, UpdateItem, WriteItem};
use floe_store::{Engine, Item, Value};

use super::TaskResult;
use super::append::{Subject, TaskStream};
use super::data::body;

/// As long as the etag of a stream, so that both sides write the same number of bytes. It never changes.
const ETAG: &str = "0193a5f0-7c1e-7000-8000-000000000000";

pub(super) struct RawRequests {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) table: String,
}

impl Subject for RawRequests {
    async fn append(&self, stream: &TaskStream) -> TaskResult<()> {
        let write = match stream.version {
            0 => self.begin(stream),
            version => self.add(stream, version),
        };
        self.engine.write_item(write).await?;
        Ok(())
    }
}

impl RawRequests {
    /// Creates the item if it does not exist.
    fn begin(&self, stream: &TaskStream) -> WriteItem {
        let item = key(stream).with("n", 1).with("e", event());
        let item = item.with("etag", ETAG);
        let is_new = Condition::attribute_not_exists(Path::attribute("p"));
        PutItem::new(&self.table, item).condition(is_new).into()
    }

    /// Appends an event if the number of events has not changed.
    fn add(&self, stream: &TaskStream, version: u64) -> WriteItem {
        let events = SetOperand::list_append(Path::attribute("e"), event());
        let update = Update::new().set("e", events).set("n", version + 1);
        let unchanged = Condition::eq(Path::attribute("n"), version);
        let update = UpdateItem::new(&self.table, key(stream), update);
        update.condition(unchanged).into()
    }
}

pub(super) fn key(stream: &TaskStream) -> Item {
    let stream = format!("Hand-{}", stream.id);
    Item::new().with("p", stream).with("i", 2_147_483_647)
}

/// A list of one event with the attributes of a stored event.
fn event() -> Value {
    let event = Item::new()
        .with("c", "Booked")
        .with("t", "2026-11-17T09:30:00.123Z")
        .with("d", body());
    Value::L(vec![Value::M(event)])
}
