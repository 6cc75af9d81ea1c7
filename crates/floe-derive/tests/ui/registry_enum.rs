//! Only structs can be registries.

use floe::Registry;

#[derive(Registry)]
enum Layer {
    Numpy { region: String },
}

fn main() {}
