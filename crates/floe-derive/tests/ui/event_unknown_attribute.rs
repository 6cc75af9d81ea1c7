//! Attributes that do not exist are told with those that do.

use floe::Event;

#[derive(Event)]
#[event(rename_fields = "camelCase")]
enum CartEvent {
    #[event(rename = "Added")]
    ItemAdded {
        #[event(skip)]
        sku: String,
    },
}

fn main() {}
