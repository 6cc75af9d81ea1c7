//! A stored name belongs to one variant, whether it is a name, an alias or a version.

use floe::Event;
use floe::model::Json;

#[derive(Event)]
enum CartEvent {
    #[event(version = 2, upcast(1 = upcast))]
    ItemAdded { sku: String },
    #[event(name = "ItemAdded")]
    Added { sku: String },
    #[event(alias = "Removed", alias = "ItemAdded.v2")]
    ItemRemoved { sku: String },
    Removed,
}

fn upcast(body: Json) -> Result<Json, String> {
    Ok(body)
}

fn main() {}
