//! An entity requires an id.

use floe::Entity;

#[derive(Entity)]
struct Author {
    name: String,
}

fn main() {}
