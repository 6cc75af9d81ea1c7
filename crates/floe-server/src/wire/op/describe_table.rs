//! DescribeTable.

use floe_store::Engine;

use crate::wire::Result;
use crate::wire::table::describe::{self, TableLifecycle};
use crate::wire::table::name;

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let name = name::from_request(engine, body)?;
    let table = engine.describe_table(name).await?;
    let lifecycle = TableLifecycle::Active(engine.now());
    Ok(describe::response("Table", &table, lifecycle))
}
