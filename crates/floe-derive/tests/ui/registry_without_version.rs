//! One of the keys must contain the version.

use floe::Registry;

#[derive(Registry)]
#[registry(table = "layers", pk = "lyr#{region}", sk = "v#", latest = "v0#")]
struct Layer {
    region: String,
}

fn main() {}
