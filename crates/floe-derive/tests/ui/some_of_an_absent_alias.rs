//! What an alias hides is found by the compiler.

use std::collections::BTreeSet;

use floe::Model;

type Tags = BTreeSet<String>;

#[derive(Model)]
struct Survey {
    #[model(key)]
    id: String,
    tags: Option<Tags>,
}

fn main() {}
