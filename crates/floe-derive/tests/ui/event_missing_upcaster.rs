//! Every version before the current one requires an upcaster, and no later version can have one.

use floe::Event;
use floe::model::Json;

#[derive(Event)]
enum CartEvent {
    #[event(version = 4, upcast(1 = upcast, 3 = upcast))]
    ItemAdded { sku: String },
    #[event(version = 2, upcast(1 = upcast, 2 = upcast))]
    ItemRemoved { sku: String },
    #[event(version = 2)]
    CheckedOut,
}

fn upcast(body: Json) -> Result<Json, String> {
    Ok(body)
}

fn main() {}
