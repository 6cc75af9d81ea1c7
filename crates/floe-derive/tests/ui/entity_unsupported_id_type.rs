//! An id is text, a UUID or a number.

use floe::Entity;

#[derive(Entity)]
struct Author {
    id: f64,
}

fn main() {}
