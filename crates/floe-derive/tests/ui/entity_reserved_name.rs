//! Attribute names that begin with an underscore are reserved for the graph.

use floe::Entity;

#[derive(Entity)]
struct Author {
    id: String,
    _meta: String,
}

fn main() {}
