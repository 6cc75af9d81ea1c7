//! `floe graph lookup`: entities by an index.

use clap::Args;
use floe::graph::{IndexEntry, IndexKey};
use floe_store::Number;
use floe_store::json::write_item;

use super::{GraphPlace, write_key};
use crate::Failure;
use crate::out::value::item_cell;
use crate::out::{Table, print_json};

const AFTER_HELP: &str = "\
Examples:
  floe graph lookup library by_tag rust --data ./data
  floe graph lookup library by_year --number 1970 --data ./data
  floe graph lookup library by_tag --prefix-of-key ru --limit 20 --json \\
      --data ./data

Entries are told as the index holds them: the key, the entity, and what the index keeps beside it. The functions of indexes \
are in your programs, so an index that was never made is as good as empty here.";

/// Find entities by an index
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct LookupCommand {
    /// The scope
    #[arg(value_name = "SCOPE")]
    scope: String,

    /// The index
    #[arg(value_name = "INDEX")]
    index: String,

    /// The key, as text [default: all keys]
    #[arg(value_name = "KEY")]
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
    pub(super) fn run(&self) -> Result<(), Failure> {
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
            self.tell(&lookup.entries().await?);
            Ok(())
        })
    }

    fn tell(&self, entries: &[IndexEntry]) {
        if self.place.output.json {
            for entry in entries {
                print_json(|w| {
                    w.object(|w| {
                        w.name("key").string(&entry.key);
                        write_key(w, &entry.entity);
                        write_item(w.name("attributes"), &entry.attributes);
                    });
                });
            }
            return;
        }
        let mut table = Table::new(["key", "type", "id", "attributes"]);
        for entry in entries {
            let attributes = match entry.attributes.is_empty() {
                true => String::new(),
                false => item_cell(&entry.attributes),
            };
            table.row([
                entry.key.as_str(),
                entry.entity.type_name(),
                entry.entity.id(),
                &attributes,
            ]);
        }
        table.print();
    }
}

fn parse_number(text: &str) -> Result<Number, String> {
    text.parse().map_err(|_| "not a number".to_owned())
}
