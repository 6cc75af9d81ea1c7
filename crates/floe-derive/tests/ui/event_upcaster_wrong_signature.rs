//! An upcaster returns a `Result` of JSON.

use floe::Event;
use floe::model::Json;

#[derive(Event)]
enum CartEvent {
    #[event(version = 2, upcast(1 = upcast))]
    ItemAdded { sku: String },
}

fn upcast(body: Json) -> Json {
    body
}

fn main() {}
