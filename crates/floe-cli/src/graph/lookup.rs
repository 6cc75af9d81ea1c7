//! `floe graph lookup`: entities by an index.

use floe::graph::IndexKey;
use floe_store::Number;

use super::{GraphPlace, cell_unless_empty};
use crate::{Result, Table, object};

/// Find entities by an index
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe graph lookup library by_tag rust --data ./data
  floe graph lookup library by_year --number 1970 --data ./data
  floe graph lookup library by_tag --prefix-of-key ru --limit 20 --json \\
      --data ./data

Entries are told as the index holds them: the key, the entity, and what the index keeps beside it. The functions of indexes \
are in your programs, so an index that was never made is as good as empty here.")]
pub(super) struct LookupCommand {
    /// The scope
    scope: String,

    /// The index
    index: String,

    /// The key, as text [default: all keys]
    key: Option<String>,

    /// The key, as a number
    #[arg(long, value_name = "N", conflicts_with_all = ["key", "prefix_of_key"], value_parser = parse_number)]
    number: Option<Number>,

    /// All keys that begin with this
    #[arg(long, value_name = "TEXT", conflicts_with = "key")]
    prefix_of_key: Option<String>,

    /// The last first
    #[arg(long)]
    descending: bool,

    /// The most entries
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    #[command(flatten)]
    place: GraphPlace,
}

impl LookupCommand {
    pub(super) fn run(&self) -> Result {
        self.place.run(&self.scope, async |graph| {
            let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
            let mut lookup = graph.find_stored(&self.index).limit(limit);
            let key = match (&self.key, &self.number) {
                (Some(text), _) => Some(IndexKey::text(text.as_str())),
                (None, Some(number)) => Some(IndexKey::number(*number)),
                (None, None) => None,
            };
            if let Some(key) = &key {
                lookup = lookup.eq(key);
            }
            if let Some(prefix) = &self.prefix_of_key {
                lookup = lookup.prefix(prefix);
            }
            if self.descending {
                lookup = lookup.backward();
            }
            self.place.at.output.rows(
                lookup.entries().await?,
                |w, entry| {
                    object!(w;
                        "key": entry.key, "type": entry.entity.type_name(),
                        "id": entry.entity.id(), "attributes": entry.attributes
                    );
                },
                Table::new(["key", "type", "id", "attributes"]),
                |entry| {
                    let (key, attributes) = (entry.key.clone(), &entry.attributes);
                    let (kind, id) = (entry.entity.type_name(), entry.entity.id());
                    let attributes = cell_unless_empty(attributes);
                    [key, kind.to_owned(), id.to_owned(), attributes]
                },
            );
            Ok(())
        })
    }
}

fn parse_number(text: &str) -> Result<Number, String> {
    text.parse().map_err(|_| "not a number".to_owned())
}
