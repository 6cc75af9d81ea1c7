//! Unknown attributes are reported with a list of the known ones.

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
