//! `floe graph related`: what an entity leads to.

use clap::Args;
use floe::graph::EntityKey;

use super::{GraphPlace, Led, no_entity, tell_edges};
use crate::cli::Failure;

const AFTER_HELP: &str = "\
Examples:
  floe graph related library author ann --data ./data
  floe graph related library author ann --predicate wrote --json --data ./data

In the order of the lists. Exit code 3: there is no such entity.";

/// Tell what an entity leads to, in order
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct RelatedCommand {
    /// The scope
    #[arg(value_name = "SCOPE")]
    scope: String,

    /// The type
    #[arg(value_name = "TYPE")]
    type_name: String,

    /// The id
    #[arg(value_name = "ID")]
    id: String,

    /// Only by this predicate
    #[arg(long, value_name = "NAME")]
    predicate: Option<String>,

    #[command(flatten)]
    place: GraphPlace,
}

impl RelatedCommand {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.place.run(&self.scope, async |graph| {
            let key = EntityKey::new(self.type_name.as_str(), self.id.as_str());
            if graph.get_node(&key).await?.is_none() {
                return Err(no_entity(graph, &key));
            }
            let list = match &self.predicate {
                Some(predicate) => graph.related_by(&key, predicate.as_str()),
                None => graph.related_all(&key),
            };
            let related = list.objects().await?;
            let edges: Vec<_> = related
                .iter()
                .map(|related| Led {
                    edge: &related.edge,
                    other: &related.edge.object,
                    node: related.object.as_ref(),
                })
                .collect();
            tell_edges(self.place.output, &edges);
            Ok(())
        })
    }
}
