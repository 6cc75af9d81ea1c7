//! Field types of events require serde; the error points at the type without it.

use floe::Event;

#[derive(serde::Deserialize)]
struct Sku(String);

#[derive(Event)]
enum CartEvent {
    ItemAdded { sku: Sku },
    ItemRemoved(Sku),
}

fn main() {}
