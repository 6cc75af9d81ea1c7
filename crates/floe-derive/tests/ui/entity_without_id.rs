//! An entity is found by its id.

use floe::Entity;

#[derive(Entity)]
struct Author {
    name: String,
}

fn main() {}
