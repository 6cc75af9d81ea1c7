//! The deployment of the shop: everything in it follows from the models and the router.

use std::path::PathBuf;

use floe::changes::outbox::OutboxRecord;
use floe::deploy::{Deployment, Function};
use floe::graph::GraphSchema;
use floe::model::tables::{InfrastructureFormat, table_definitions};
use floe::registry::tables::registry_tables;
use floe::{Db, Error, Model, Registry};

use crate::models::{Order, PriceList, carts};
use crate::router::router;

const DESCRIPTION: &str =
    "The shop: its tables, the feed of its events, and the router of its changes.";

/// The files of `deploy/` that are made of it.
pub(crate) fn files() -> Result<[(PathBuf, String); 2], Error> {
    let deployment = deployment()?;
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let tables = deployment.infrastructure(InfrastructureFormat::CloudFormation)?;
    Ok([
        (folder.join("cloudformation.json"), deployment.template()?),
        (folder.join("cdk/tables.json"), tables),
    ])
}

fn deployment() -> Result<Deployment, Error> {
    // Nothing is stored in it: it is what stores and routers are made with.
    let db = Db::memory()?;
    let carts = carts(&db);
    let catalog = PriceList::SCHEMA;
    // A version that has expired is looked up, and its tombstone written.
    let router =
        Function::router("Router", &router(&db)).grant(catalog.table, ["GetItem", "PutItem"]);
    Ok(Deployment::new(DESCRIPTION)
        .tables(table_definitions(&[Order::SCHEMA, OutboxRecord::SCHEMA])?)
        .tables(registry_tables(&[catalog])?)
        .tables(GraphSchema::new().prefix("shop_").tables()?)
        .tables([carts.table()?, carts.feed_table()?])
        .function(Function::indexer(&carts))
        .function(router))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployment_matches_the_models() {
        for (path, text) in files().unwrap() {
            let there = std::fs::read_to_string(&path).unwrap();
            let name = path.display();
            assert!(there == text, "{name} is old: cargo run -p floe-shop");
        }
    }
}
