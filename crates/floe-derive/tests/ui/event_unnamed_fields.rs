//! A variant has no fields, one unnamed field, or named fields.

use floe::Event;

#[derive(Event)]
enum CartEvent {
    ItemAdded(String, u32),
    ItemRemoved(#[event(default)] String),
}

fn main() {}
