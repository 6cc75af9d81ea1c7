//! Only enums can be events.

use floe::Event;

#[derive(Event)]
struct ItemAdded {
    sku: String,
}

fn main() {}
