//! Lists the scopes of the graph.

use std::collections::BTreeSet;

use floe_store::expr::{Path, Paths};
use floe_store::op::Scan;
use floe_store::{Item, Value};

use crate::db::Db;
use crate::error::Result;
use crate::graph::reads::Reads;
use crate::graph::stored::{SCOPE, SUBJECT_SCOPE};

impl Db {
    /// Returns the scopes of the graph that contain data. Scans all three tables.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the store is unavailable, [`Table`](crate::ErrorKind::Table) if a table is
    /// missing.
    pub async fn graph_scopes(&self) -> Result<Vec<String>> {
        let schema = self.graph_schema();
        let reads = Reads::of_graph(self, None);
        let mut scopes = BTreeSet::new();
        for (table, name) in [
            (schema.entities(), SCOPE),
            (schema.relationships(), SUBJECT_SCOPE),
            (schema.entries(), SCOPE),
        ] {
            let scope = Paths(vec![Path::attribute(name.clone())]);
            let scan = Scan::new(table).consistent().projection(scope);
            let add = |item: &Item| {
                let scope = item.get(&name).and_then(Value::as_s);
                scopes.extend(scope.map(str::to_owned));
            };
            reads.scan_each(scan, add).await?;
        }
        Ok(scopes.into_iter().collect())
    }
}
