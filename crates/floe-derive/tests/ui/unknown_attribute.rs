//! Unknown attributes are reported with a list of the known ones.

use floe::Model;

#[derive(Model)]
struct Player {
    #[model(key)]
    id: String,
    #[model(minimum = 1)]
    level: i64,
}

fn main() {}
