//! An attribute that does not exist is told with those that do.

use floe::Model;

#[derive(Model)]
struct Player {
    #[model(key)]
    id: String,
    #[model(minimum = 1)]
    level: i64,
}

fn main() {}
