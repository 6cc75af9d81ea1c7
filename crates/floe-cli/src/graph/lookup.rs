//! `floe graph lookup`: finds entities by an index.

use floe::graph::{Graph, IndexKey};
use floe_store::Number;

use super::{GraphArgs, cell_unless_empty};
use crate::{Failure, Result, Table, object};

/// Find entities by an index
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe graph lookup library by_tag rust --data ./data
  floe graph lookup library by_year --number 1970 --data ./data
  floe graph lookup library by_tag --prefix-of-key ru --limit 20 --json \\
      --data ./data

Prints the stored entries of the index: key, entity, and attributes stored with the entry. Exit code 3: the scope has no entry \
of this index, because its name is unknown, or because it was never built.")]
pub(super) struct LookupCommand {
    /// Scope of the graph
    scope: String,

    /// Name of the index
    index: String,

    /// Text key to look up [default: all keys]
    key: Option<String>,

    /// Number key to look up
    #[arg(long, value_name = "N", conflicts_with_all = ["key", "prefix_of_key"], value_parser = parse_number)]
    number: Option<Number>,

    /// Look up all text keys with this prefix
    #[arg(long, value_name = "TEXT", conflicts_with = "key")]
    prefix_of_key: Option<String>,

    /// Descending order of keys
    #[arg(long)]
    descending: bool,

    /// Maximum number of entries
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    #[command(flatten)]
    graph: GraphArgs,
}

impl LookupCommand {
    pub(super) fn run(&self) -> Result {
        self.graph.run(&self.scope, async |graph| {
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
            let entries = lookup.entries().await?;
            if entries.is_empty() {
                self.check_index(graph).await?;
            }
            let output = self.graph.target.output;
            output.rows(
                entries,
                |w, entry| {
                    object!(w;
                        "key": entry.key, "type": entry.entity.type_name(),
                        "id": entry.entity.id(), "attributes": output.item(&entry.attributes)
                    );
                },
                Table::new(["key", "type", "id", "attributes"]),
                |entry| {
                    let (key, attributes) = (entry.key.clone(), &entry.attributes);
                    let (kind, id) = (entry.entity.type_name(), entry.entity.id());
                    let attributes = cell_unless_empty(attributes);
                    [key, kind.to_owned(), id.to_owned(), attributes]
                },
            )
        })
    }

    /// Fails if the scope has no entry of the index. The program does not know the functions of indexes, so an index
    /// without entries cannot be distinguished from an unknown one.
    async fn check_index(&self, graph: &Graph<'static>) -> Result {
        let any = graph.find_stored(&self.index).limit(1).entries().await?;
        if any.is_empty() {
            return Err(Failure::unmet(format!(
                "there is no such index, or it has no entries: scope={} index={}",
                self.scope, self.index
            )));
        }
        Ok(())
    }
}

fn parse_number(text: &str) -> Result<Number, String> {
    text.parse().map_err(|_| "expected a number".to_owned())
}
