//! Only structs can be entities.

use floe::Entity;

#[derive(Entity)]
enum Person {
    Author { id: String },
}

fn main() {}
