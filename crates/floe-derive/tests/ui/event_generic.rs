//! Stored events have one form, so an event enum cannot be generic.

use floe::Event;

#[derive(Event)]
enum CartEvent<T> {
    ItemAdded { item: T },
}

fn main() {}
