//! A group requires all its fields, in the order of its key.

use floe::registry::Versions;
use floe::Registry;

#[derive(Registry)]
#[registry(table = "layers", pk = "lyr#{region}.{package}", sk = "v#{version}", latest = "v0#")]
struct Layer {
    region: String,
    package: String,
}

fn latest(layers: &Versions<'_, Layer>) {
    drop(layers.latest("eu"));
}

fn main() {}
