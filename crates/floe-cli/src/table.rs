//! `floe table`: the tables of a store.

mod create;
mod delete;
mod describe;
pub(super) mod list;

use floe_store::table::{KeyAttribute, KeySchema};

use crate::commands;

commands! {
    /// List, describe, create and delete tables
    #[command(after_help = "\
Examples:
  floe table list --data ./shop
  floe table create orders --key customer:S --sort placed:N --data ./shop
  floe table describe orders --endpoint http://127.0.0.1:8000 --json
  floe table delete orders --data ./shop --yes")]
    TableCommand:
    List(list::List) in target,
    Describe(describe::Describe) in target,
    Create(create::Create),
    Delete(delete::Delete) in target,
}

/// The text of a key: `customer (S), placed (N)`.
fn key_text(key: &KeySchema) -> String {
    let text =
        |attribute: &KeyAttribute| format!("{} ({})", attribute.name, attribute.kind.as_str());
    let attributes: Vec<_> = key.attributes().map(text).collect();
    attributes.join(", ")
}
