//! `floe registry history`: prints all versions of a group.

use super::print::print_versions;
use super::{GroupArgs, GroupContext};
use crate::{Result, note};

/// List all versions of a group, including deleted ones
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe registry history Layer region=eu package=numpy --data ./layers
  floe registry history Layer region=eu package=numpy --newest-first --max 5 \\
      --data ./layers
  floe registry history Layer region=eu package=numpy --json --data ./layers \\
      | jq 'select(.deleted_ms == null)'

The column `until` has the time of deletion or expiry. Exit code 3: no version of the group was ever published.")]
pub(super) struct HistoryCommand {
    /// Print the newest version first
    #[arg(long)]
    newest_first: bool,

    /// Maximum number of versions
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    max: u32,

    #[command(flatten)]
    pub(super) group: GroupArgs,
}

impl HistoryCommand {
    pub(super) async fn run(&self, context: GroupContext<'_>) -> Result {
        let max = usize::try_from(self.max).unwrap_or(usize::MAX);
        let (mut found, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut history = context
                .versions
                .history(context.group)
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
            return Err(context.unmet("no version was published"));
        }
        print_versions(
            self.group.registry.target.output,
            context.schema,
            &found,
            false,
        )?;
        if after.is_some() {
            let count = found.len();
            note(&format!(
                "there are more versions: printed={count}; increase --max"
            ));
        }
        Ok(())
    }
}
