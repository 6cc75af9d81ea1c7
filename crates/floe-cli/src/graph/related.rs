//! `floe graph related`: what an entity leads to.

use super::{EdgesOf, Led};
use crate::Result;

/// Tell what an entity leads to, in order
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe graph related library author ann --data ./data
  floe graph related library author ann --predicate wrote --json --data ./data

In the order of the lists. Exit code 3: there is no such entity.")]
pub(super) struct RelatedCommand {
    #[command(flatten)]
    edges: EdgesOf,
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
                .map(|related| Led {
                    other: related.edge.object.clone(),
                    edge: related.edge,
                    node: related.object,
                })
                .collect())
        })
    }
}
