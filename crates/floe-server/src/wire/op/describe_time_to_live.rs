//! DescribeTimeToLive.

use floe_store::Engine;
use floe_store::json::Writer;
use floe_store::table::TableDescription;

use crate::wire::parameter::TableName;
use crate::wire::read::{members, request};
use crate::wire::refusal::Result;
use crate::wire::table::name;

members! {
    Request<'a> as "DescribeTimeToLiveInput" {
        "TableName" => table_name: TableName<'a>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let name = name::required(engine, request.table_name)?;
    let table = engine.describe_table(name).await?;
    Ok(write(&table))
}

fn write(table: &TableDescription) -> Vec<u8> {
    let mut writer = Writer::with_capacity(128);
    writer.object(|w| {
        w.name("TimeToLiveDescription").object(|w| {
            let w = w.name("TimeToLiveStatus");
            match &table.definition.ttl_attribute {
                Some(attribute) => {
                    w.string("ENABLED");
                    w.name("AttributeName").string(attribute);
                }
                None => w.string("DISABLED"),
            }
        });
    });
    writer.into_bytes()
}
