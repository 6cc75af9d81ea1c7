//! A group field is text or a number.

use floe::Registry;

#[derive(Registry)]
#[registry(table = "layers", pk = "lyr#{region}", sk = "v#{version}", latest = "v0#")]
struct Layer {
    region: bool,
}

fn main() {}
