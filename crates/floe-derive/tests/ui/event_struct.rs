//! Events are the variants of an enum.

use floe::Event;

#[derive(Event)]
struct ItemAdded {
    sku: String,
}

fn main() {}
