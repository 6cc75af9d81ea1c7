//! What a variant holds is stored through serde; the compiler points at what is not.

use floe::Event;

#[derive(serde::Deserialize)]
struct Sku(String);

#[derive(Event)]
enum CartEvent {
    ItemAdded { sku: Sku },
    ItemRemoved(Sku),
}

fn main() {}
