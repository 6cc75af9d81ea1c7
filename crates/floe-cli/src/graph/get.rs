//! `floe graph get`: prints an entity.

use floe::graph::{Graph, Node};

use super::{EntityArgs, print_node};
use crate::Result;

/// Get an entity by scope, type and id
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe graph get library author ann --data ./data
  floe graph get library author ann --json --endpoint http://127.0.0.1:8000 \\
      | jq .attributes

Exit code 3: there is no such entity.")]
pub(super) struct Get {
    #[command(flatten)]
    pub(super) entity: EntityArgs,
}

impl Get {
    pub(super) async fn run(&self, (_, node): (&Graph<'static>, Node)) -> Result {
        print_node(self.entity.graph.target.output, &node)
    }
}
