//! DescribeTable.

use floe_store::Engine;

use crate::wire::parameter::TableName;
use crate::wire::read::{members, request};
use crate::wire::refusal::Result;
use crate::wire::table::describe::{self, Moment};
use crate::wire::table::name;

members! {
    Request<'a> as "DescribeTableInput" {
        "TableName" => table_name: TableName<'a>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let name = name::required(engine, request.table_name)?;
    let table = engine.describe_table(name).await?;
    Ok(describe::answer(
        "Table",
        &table,
        Moment::Life(engine.now()),
    ))
}
