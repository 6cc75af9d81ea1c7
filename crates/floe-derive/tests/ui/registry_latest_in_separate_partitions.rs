//! Pointers in several partitions cannot be read by one query.

use floe::registry::Versions;
use floe::Registry;

#[derive(Registry)]
#[registry(table = "layers", pk = "lyr#{region}", sk = "v#{version}", latest = "v0#")]
struct Layer {
    region: String,
}

fn all(layers: &Versions<'_, Layer>) {
    drop(layers.latest_of_groups());
}

fn main() {}
