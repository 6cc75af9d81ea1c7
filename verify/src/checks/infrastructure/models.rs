//! Models that together use every feature of tables.

#![expect(
    clippy::duplicated_attributes,
    reason = "two indexes of a model may have equal properties"
)]

use floe::Model;
use floe::model::{Bytes, Expiry, Schema};

/// All models.
pub(super) const ALL: [&Schema; 7] = [
    Plain::SCHEMA,
    Counter::SCHEMA,
    Reading::SCHEMA,
    Money::SCHEMA,
    Weapon::SCHEMA,
    Order::SCHEMA,
    Cat::SCHEMA,
];

/// Only a key.
#[derive(Model)]
struct Plain {
    #[model(key)]
    id: String,
}

/// A numeric key, and items that expire.
#[derive(Model)]
struct Counter {
    #[model(key)]
    number: u64,
    #[model(default)]
    count: i64,
    #[model(expires)]
    until: Option<Expiry>,
}

/// A compound partition key, and a compound sort key.
#[derive(Model)]
#[model(table = "Sensor-Readings")]
struct Reading {
    #[model(key)]
    site: String,
    #[model(key)]
    sensor: u32,
    #[model(sort_key)]
    at: i64,
    #[model(sort_key, default = 0)]
    part: u32,
    celsius: f64,
}

/// Two models that share a table; one has an index, the other expires.
#[derive(Model)]
#[model(table = "Inventory", sort_key = "money")]
#[model(index(name = "richest", key(realm), sort(coins), project(keys)))]
struct Money {
    #[model(key)]
    player: String,
    realm: String,
    coins: i64,
}

#[derive(Model)]
#[model(table = "Inventory", sort_key = "weapon")]
struct Weapon {
    #[model(key)]
    player: String,
    #[model(default)]
    swords: u32,
    #[model(expires)]
    broken_at: Option<Expiry>,
}

/// Indexes of every form: up to the maximum number of attributes, sparse, with every projection, by components of the
/// key.
#[derive(Model)]
#[model(table = "Orders")]
#[model(index(name = "by_customer", key(customer), sort(placed)))]
#[model(index(
    name = "by_place",
    key(country, region, city, street),
    sort(status, placed, product, id),
    project(include(quantity, note))
))]
#[model(index(name = "by_coupon", key(coupon), sparse, project(keys)))]
#[model(index(name = "by_photo", key(photo), sort(quantity), sparse))]
struct Order {
    #[model(key)]
    id: String,
    customer: String,
    placed: i64,
    country: String,
    region: String,
    city: String,
    street: String,
    status: String,
    product: String,
    #[model(min = 1)]
    quantity: u32,
    coupon: Option<String>,
    photo: Option<Bytes>,
    note: Option<String>,
}

/// Names that must be escaped in a template.
#[derive(Model)]
#[model(table = "9-lives.v2")]
#[model(index(name = "by-mood.1", key(mood), project(include(quote))))]
struct Cat {
    #[model(key)]
    name: String,
    #[model(rename = "the \"mood\"")]
    mood: String,
    #[model(rename = "100% \\ größer")]
    quote: String,
    #[model(expires, rename = "lives-until.s")]
    lives_until: Option<Expiry>,
}
