//! `floe graph check`: compares entities, edges and index entries, and repairs them on request.

use floe::Db;
use floe::graph::{CheckReport, Difference};
use floe_store::json::Writer;

use super::{Failure, Prefix, Result};
use crate::{AsArray, AsText, OpenStore, Output, Store, Table, grouped, object, print};

/// Compare the three tables of a graph, print every difference, and repair on request
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe graph check --data ./data
  floe graph check --endpoint http://127.0.0.1:8000 --scope library --repair
  floe graph check --data ./data --json | jq '.scopes[].differences[].kind'

Compares edges with the entities at their ends, stored counts with the edges, and index entries and claims of unique keys with \
the keys recorded on the entities. Interrupted wide changes are reported, and completed by --repair. Index functions are code \
of your programs: only Graph::check and Graph::repair there can check the recorded keys and recreate missing entries. Run the \
command while no process writes. It reads the whole tables, and holds one scope in memory.

Exit codes: 0 if the tables agree; 1 if differences remain.")]
pub(super) struct Check {
    /// Repair all differences that can be repaired from the tables alone
    #[arg(long)]
    repair: bool,

    /// Check only this scope [default: all]
    #[arg(long, value_name = "NAME")]
    scope: Option<String>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    prefix: Prefix,

    #[command(flatten)]
    pub(super) store: Store,
}

/// The result of a scope.
struct Checked {
    scope: String,
    report: CheckReport,
    /// The differences that remain after a repair.
    left: Vec<Difference>,
}

impl Check {
    pub(super) async fn run(&self, opened: &OpenStore) -> Result {
        let db = self.prefix.find(&opened.db).await?;
        let scopes = match &self.scope {
            Some(scope) => vec![scope.clone()],
            None => db.graph_scopes().await.map_err(Failure::failed)?,
        };
        let mut all = Vec::new();
        for scope in scopes {
            all.push(self.check(&db, scope).await?);
        }
        let json = |w: &mut Writer| object!(w; "scopes": AsArray(&all, write));
        let text = || print_all(&all, self.repair);
        self.output.either(&json, &text)?;
        let left: usize = all.iter().map(|checked| checked.left.len()).sum();
        match left {
            0 => Ok(()),
            left => Err(Failure::failed(format!(
                "the tables of the graph do not agree: differences={left}"
            ))),
        }
    }

    async fn check(&self, db: &Db, scope: String) -> Result<Checked> {
        let graph = db.graph(scope.as_str());
        let report = match self.repair {
            true => graph.repair().await,
            false => graph.check().await,
        };
        let report = report.map_err(Failure::failed)?;
        let left = match self.repair && !report.differences.is_empty() {
            true => graph.check().await.map_err(Failure::failed)?.differences,
            false => report.differences.clone(),
        };
        Ok(Checked {
            scope,
            report,
            left,
        })
    }
}

/// Prints the scopes as a table, then every difference after its scope.
fn print_all(all: &[Checked], is_repaired: bool) -> Result {
    let mut names = vec!["scope", "entities", "edges", "entries", "differences"];
    names.extend(is_repaired.then_some("left"));
    let (mut scopes, mut differences) = (Table::new(names), Table::key_value());
    for checked in all {
        let (scope, report, left) = (&checked.scope, &checked.report, &checked.left);
        let mut counts = vec![
            report.entities,
            report.edges,
            report.entries,
            count(&report.differences),
        ];
        counts.extend(is_repaired.then(|| count(left)));
        let counts = counts.into_iter().map(grouped);
        scopes.row(std::iter::once(scope.clone()).chain(counts));
        for difference in &report.differences {
            let is_left = is_repaired && left.contains(difference);
            let ending = if is_left { " (left)" } else { "" };
            differences.entry(scope, format!("{difference}{ending}"));
        }
    }
    scopes.print()?;
    if differences.is_empty() {
        return Ok(());
    }
    print("")?;
    differences.print()
}

fn count(differences: &[Difference]) -> u64 {
    u64::try_from(differences.len()).unwrap_or(u64::MAX)
}

fn write(w: &mut Writer, checked: &Checked) {
    let report = &checked.report;
    object!(w;
        "scope": checked.scope, "entities": report.entities, "edges": report.edges,
        "entries": report.entries, "differences": AsArray(&report.differences, write_difference),
        "left": AsArray(&checked.left, write_difference)
    );
}

fn write_difference(w: &mut Writer, difference: &Difference) {
    object!(w; "kind": difference.kind(), "text": AsText(difference));
}
