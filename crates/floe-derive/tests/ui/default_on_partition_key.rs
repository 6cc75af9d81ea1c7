//! The partition key identifies the item, so it has no default.

use floe::Model;

#[derive(Model)]
struct Player {
    #[model(key, default = 1)]
    id: i64,
}

fn main() {}
