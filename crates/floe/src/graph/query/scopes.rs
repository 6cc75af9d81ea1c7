//! Which scopes there are.

use std::collections::BTreeSet;

use floe_store::expr::{Path, Paths};
use floe_store::op::Scan;
use floe_store::{Name, Value};

use crate::db::Db;
use crate::error::Result;
use crate::graph::reads::Reads;
use crate::graph::stored::{SCOPE, SUBJECT_SCOPE};

impl Db {
    /// The scopes of the graph of which anything is stored. Reads the three tables whole.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) when the store cannot answer, [`Table`](crate::ErrorKind::Table) when a table is
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
            add_scopes(&reads, table, &name, &mut scopes).await?;
        }
        Ok(scopes.into_iter().collect())
    }
}

async fn add_scopes(
    reads: &Reads<'_>,
    table: String,
    name: &Name,
    scopes: &mut BTreeSet<String>,
) -> Result<()> {
    let scope = Paths(vec![Path::attribute(name.clone())]);
    let mut scan = Scan::new(table).consistent().projection(scope);
    loop {
        let page = reads.scan(&scan).await?;
        let found = page.items.iter().filter_map(|item| item.get(name));
        scopes.extend(found.filter_map(Value::as_s).map(str::to_owned));
        scan.start_key = page.last_key;
        if scan.start_key.is_none() {
            return Ok(());
        }
    }
}
