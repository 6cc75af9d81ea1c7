//! `floe graph get`: an entity.

use floe::graph::{Graph, Node};

use super::{EntityPlace, print_node};
use crate::Result;

/// Get an entity by its scope, its type and its id
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe graph get library author ann --data ./data
  floe graph get library author ann --json --endpoint http://127.0.0.1:8000 \\
      | jq .attributes

Exit code 3: there is no such entity.")]
pub(super) struct Get {
    #[command(flatten)]
    pub(super) entity: EntityPlace,
}

impl Get {
    pub(super) async fn run(&self, (_, node): (&Graph<'static>, Node)) -> Result {
        print_node(self.entity.place.at.output, &node);
        Ok(())
    }
}
