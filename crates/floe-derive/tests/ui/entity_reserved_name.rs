//! Names that begin with an underscore are the graph's own.

use floe::Entity;

#[derive(Entity)]
struct Author {
    id: String,
    _meta: String,
}

fn main() {}
