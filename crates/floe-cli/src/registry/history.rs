//! `floe registry history`: all versions of a group.

use super::print::print_versions;
use super::{Called, GroupPlace};
use crate::{Result, note};

/// Tell all versions of a group, also those that are gone
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe registry history Layer region=eu package=numpy --data ./layers
  floe registry history Layer region=eu package=numpy --newest-first --max 5 \\
      --data ./layers
  floe registry history Layer region=eu package=numpy --json --data ./layers \\
      | jq 'select(.deleted_ms == null)'

Those that are gone are told too: `until` is when they went, or are to go. Exit code 3: nothing was ever published in the group.")]
pub(super) struct HistoryCommand {
    /// The newest first
    #[arg(long)]
    newest_first: bool,

    /// The most versions
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    max: u32,

    #[command(flatten)]
    pub(super) group: GroupPlace,
}

impl HistoryCommand {
    pub(super) async fn run(&self, called: Called<'_>) -> Result {
        let max = usize::try_from(self.max).unwrap_or(usize::MAX);
        let (mut found, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut history = called
                .versions
                .history(called.group)
                .limit(max - found.len());
            if self.newest_first {
                history = history.newest_first();
            }
            if let Some(after) = after.take() {
                history = history.after(after);
            }
            let page = history.page().await?;
            found.extend(page.rows);
            after = page.next.map(Into::into);
            if after.is_none() || found.len() >= max {
                break;
            }
        }
        if found.is_empty() {
            return Err(called.unmet("nothing was published"));
        }
        print_versions(self.group.place.at.output, called.schema, &found, false);
        if after.is_some() {
            let count = found.len();
            note(&format!("there are more: versions={count}; see --max"));
        }
        Ok(())
    }
}
