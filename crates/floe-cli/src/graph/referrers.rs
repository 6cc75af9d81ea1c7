//! `floe graph referrers`: what leads to an entity.

use super::{EdgesOf, Led};
use crate::Result;

/// Tell what leads to an entity
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe graph referrers library article a-1 --data ./data
  floe graph referrers library article a-1 --predicate wrote --json \\
      --data ./data

As far as the index of reversed edges knows, which may be a little behind in Amazon DynamoDB. Exit code 3: there is no such \
entity.")]
pub(super) struct ReferrersCommand {
    #[command(flatten)]
    edges: EdgesOf,
}

impl ReferrersCommand {
    pub(super) fn run(&self) -> Result {
        self.edges.run(async |graph, key, predicate| {
            let mut referrers = graph.referrers(key);
            if let Some(predicate) = predicate {
                referrers = referrers.by(predicate);
            }
            let subjects = referrers.subjects().await?.into_iter();
            Ok(subjects
                .map(|referrer| Led {
                    other: referrer.edge.subject.clone(),
                    edge: referrer.edge,
                    node: referrer.subject,
                })
                .collect())
        })
    }
}
