//! `floe graph related`: lists the objects of an entity.

use super::{EdgeArgs, LinkedEntity};
use crate::Result;

/// List the objects to which an entity has edges, in order
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe graph related library author ann --data ./data
  floe graph related library author ann --predicate wrote --json --data ./data

Objects are printed in the stored order of each relation. Exit code 3: there is no such entity.")]
pub(super) struct RelatedCommand {
    #[command(flatten)]
    edges: EdgeArgs,
}

impl RelatedCommand {
    pub(super) fn run(&self) -> Result {
        self.edges.run(async |graph, key, predicate| {
            let list = match predicate {
                Some(predicate) => graph.related_by(key, predicate),
                None => graph.related_all(key),
            };
            let related = list.objects().await?.into_iter();
            Ok(related
                .map(|related| LinkedEntity {
                    other: related.edge.object.clone(),
                    edge: related.edge,
                    node: related.object,
                })
                .collect())
        })
    }
}
