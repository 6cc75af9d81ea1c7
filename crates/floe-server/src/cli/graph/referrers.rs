//! `floe graph referrers`: what leads to an entity.

use clap::Args;
use floe::graph::EntityKey;

use super::{GraphPlace, Led, no_entity, tell_edges};
use crate::cli::Failure;

const AFTER_HELP: &str = "\
Examples:
  floe graph referrers library article a-1 --data ./data
  floe graph referrers library article a-1 --predicate wrote --json --data ./data

As far as the index of reversed edges knows, which may be a little behind in Amazon DynamoDB. Exit code 3: there is no such \
entity.";

/// Tell what leads to an entity
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct ReferrersCommand {
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

impl ReferrersCommand {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.place.run(&self.scope, async |graph| {
            let key = EntityKey::new(self.type_name.as_str(), self.id.as_str());
            if graph.get_node(&key).await?.is_none() {
                return Err(no_entity(graph, &key));
            }
            let mut referrers = graph.referrers(&key);
            if let Some(predicate) = &self.predicate {
                referrers = referrers.by(predicate.as_str());
            }
            let subjects = referrers.subjects().await?;
            let edges: Vec<_> = subjects
                .iter()
                .map(|referrer| Led {
                    edge: &referrer.edge,
                    other: &referrer.edge.subject,
                    node: referrer.subject.as_ref(),
                })
                .collect();
            tell_edges(self.place.output, &edges);
            Ok(())
        })
    }
}
