//! `Some(None)` would be read back as `None`.

use std::collections::BTreeSet;

use floe::Model;

#[derive(Model)]
struct Survey {
    #[model(key)]
    id: String,
    answer: Option<Option<i64>>,
    tags: Option<BTreeSet<String>>,
}

fn main() {}
