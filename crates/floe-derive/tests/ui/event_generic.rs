//! Stored events have one form, so an enum of them is not generic.

use floe::Event;

#[derive(Event)]
enum CartEvent<T> {
    ItemAdded { item: T },
}

fn main() {}
