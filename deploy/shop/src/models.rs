//! What the shop stores: orders, price lists in versions, and the streams of carts.

use floe::db::Db;
use floe::events::{EventStore, EventStoreOptions};
use floe::{Model, Registry};

/// An order of a customer.
#[derive(Model)]
#[model(table = "orders", stream)]
#[model(index(name = "by_customer", key(customer), sort(placed)))]
pub(crate) struct Order {
    #[model(key)]
    pub(crate) id: String,
    pub(crate) customer: String,
    pub(crate) placed: i64,
}

/// A price list of a region. The one before the latest goes after a month.
#[derive(Registry)]
#[registry(
    table = "catalog",
    pk = "prices#{region}",
    sk = "v#{version}",
    latest = "latest",
    status = "status",
    expires = "expires",
    retention = "30d",
    index(name = "region-status", key = region)
)]
pub(crate) struct PriceList {
    pub(crate) region: String,
    pub(crate) document: String,
}

/// The streams of carts.
pub(crate) fn carts(db: &Db) -> EventStore {
    db.event_store(EventStoreOptions::new("shop"))
}
