//! An entity is a struct.

use floe::Entity;

#[derive(Entity)]
enum Person {
    Author { id: String },
}

fn main() {}
