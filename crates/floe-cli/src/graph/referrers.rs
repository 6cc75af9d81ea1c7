//! `floe graph referrers`: lists the referrers of an entity.

use super::{EdgeArgs, LinkedEntity};
use crate::Result;

/// List the subjects with an edge to an entity
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe graph referrers library article a-1 --data ./data
  floe graph referrers library article a-1 --predicate wrote --json \\
      --data ./data

Reads the index of reversed edges, which is eventually consistent in Amazon DynamoDB. Exit code 3: there is no such entity.")]
pub(super) struct ReferrersCommand {
    #[command(flatten)]
    edges: EdgeArgs,
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
                .map(|referrer| LinkedEntity {
                    other: referrer.edge.subject.clone(),
                    edge: referrer.edge,
                    node: referrer.subject,
                })
                .collect())
        })
    }
}
