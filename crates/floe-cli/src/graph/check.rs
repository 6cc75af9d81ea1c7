//! `floe graph check`: compares entities, edges and entries of indexes, and repairs them if asked.

use floe::Db;
use floe::graph::{Difference, Report};
use floe_store::json::Writer;

use super::{Failure, Prefix, Result};
use crate::{Each, Opened, Output, Store, Table, Text, grouped, object, print};

/// Compare the three tables of a graph, tell every difference, and repair on request
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe graph check --data ./data
  floe graph check --endpoint http://127.0.0.1:8000 --scope library --repair
  floe graph check --data ./data --json | jq '.scopes[].differences[].kind'

Edges are compared with what they join, the numbers that count them with the edges, entries of indexes and claims of unique \
keys with what the entities tell of them. What was begun in steps and not ended is told, and ended by --repair. The functions \
of indexes are in your programs: whether an entity tells the right keys, and an entry that is missing, are for \
Graph::check and Graph::repair there. Run it while nobody writes; it reads the tables whole, and holds one scope in memory.

The exit code is 0 if all agrees, and 1 if differences remain.")]
pub(super) struct Check {
    /// Make the tables agree, as far as that can be told from them
    #[arg(long)]
    repair: bool,

    /// Only this scope [default: all there are]
    #[arg(long, value_name = "NAME")]
    scope: Option<String>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    prefix: Prefix,

    #[command(flatten)]
    pub(super) store: Store,
}

/// What was found in a scope.
struct Checked {
    scope: String,
    report: Report,
    /// What is left after a repair.
    left: Vec<Difference>,
}

impl Check {
    pub(super) async fn run(&self, opened: &Opened) -> Result {
        let db = self.prefix.find(&opened.db).await?;
        let scopes = match &self.scope {
            Some(scope) => vec![scope.clone()],
            None => db.graph_scopes().await.map_err(Failure::broken)?,
        };
        let mut all = Vec::new();
        for scope in scopes {
            all.push(self.check(&db, scope).await?);
        }
        let json = |w: &mut Writer| object!(w; "scopes": Each(&all, write));
        let people = || print_all(&all, self.repair);
        self.output.either(&json, &people);
        let left: usize = all.iter().map(|checked| checked.left.len()).sum();
        match left {
            0 => Ok(()),
            left => Err(Failure::broken(format!(
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
        let report = report.map_err(Failure::broken)?;
        let left = match self.repair && !report.differences.is_empty() {
            true => graph.check().await.map_err(Failure::broken)?.differences,
            false => report.differences.clone(),
        };
        Ok(Checked {
            scope,
            report,
            left,
        })
    }
}

/// Prints the scopes as a table, and below it every difference with its scope before it.
fn print_all(all: &[Checked], is_repaired: bool) {
    let mut names = vec!["scope", "entities", "edges", "entries", "differences"];
    names.extend(is_repaired.then_some("left"));
    let (mut scopes, mut differences) = (Table::new(names), Table::of_facts());
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
            differences.fact(scope, format!("{difference}{ending}"));
        }
    }
    scopes.print();
    if !differences.is_empty() {
        print("");
        differences.print();
    }
}

fn count(differences: &[Difference]) -> u64 {
    u64::try_from(differences.len()).unwrap_or(u64::MAX)
}

fn write(w: &mut Writer, checked: &Checked) {
    let report = &checked.report;
    object!(w;
        "scope": checked.scope, "entities": report.entities, "edges": report.edges,
        "entries": report.entries, "differences": Each(&report.differences, write_difference),
        "left": Each(&checked.left, write_difference)
    );
}

fn write_difference(w: &mut Writer, difference: &Difference) {
    object!(w; "kind": difference.kind(), "text": Text(difference));
}
