//! Fields cannot use attribute names that are reserved for the registry.

use floe::Registry;

#[derive(Registry)]
#[registry(table = "layers", pk = "lyr#{region}", sk = "v#{version}", latest = "v0#")]
struct Layer {
    region: String,
    version: u64,
}

fn main() {}
