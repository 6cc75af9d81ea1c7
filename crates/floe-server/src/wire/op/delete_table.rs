//! DeleteTable.

use floe_store::Engine;

use crate::wire::Result;
use crate::wire::table::describe::{self, Moment};
use crate::wire::table::name;

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let name = name::requested(engine, body)?;
    let table = engine.delete_table(name).await?;
    let moment = Moment::Deletion;
    Ok(describe::answer("TableDescription", &table, moment))
}
