//! `floe graph get`: an entity.

use clap::Args;

use super::{EntityPlace, print_node};
use crate::Result;

/// Get an entity by its scope, its type and its id
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe graph get library author ann --data ./data
  floe graph get library author ann --json --endpoint http://127.0.0.1:8000 \\
      | jq .attributes

Exit code 3: there is no such entity.")]
pub(super) struct Get {
    #[command(flatten)]
    entity: EntityPlace,
}

impl Get {
    pub(super) fn run(&self) -> Result {
        self.entity.run(async |_, node| {
            print_node(self.entity.place.at.output, &node);
            Ok(())
        })
    }
}
