//! `floe graph get`: an entity.

use clap::Args;
use floe::graph::EntityKey;

use super::{GraphPlace, no_entity, tell_node};
use crate::cli::Failure;

const AFTER_HELP: &str = "\
Examples:
  floe graph get library author ann --data ./data
  floe graph get library author ann --json --endpoint http://127.0.0.1:8000 | jq .attributes

Exit code 3: there is no such entity.";

/// Get an entity by its scope, its type and its id
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct Get {
    /// The scope
    #[arg(value_name = "SCOPE")]
    scope: String,

    /// The type
    #[arg(value_name = "TYPE")]
    type_name: String,

    /// The id
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    place: GraphPlace,
}

impl Get {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.place.run(&self.scope, async |graph| {
            let key = EntityKey::new(self.type_name.as_str(), self.id.as_str());
            let node = graph.get_node(&key).await?;
            let node = node.ok_or_else(|| no_entity(graph, &key))?;
            tell_node(self.place.output, &node);
            Ok(())
        })
    }
}
