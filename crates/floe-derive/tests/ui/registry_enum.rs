//! A registry is a struct.

use floe::Registry;

#[derive(Registry)]
enum Layer {
    Numpy { region: String },
}

fn main() {}
