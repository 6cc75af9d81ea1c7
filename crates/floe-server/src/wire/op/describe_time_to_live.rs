//! DescribeTimeToLive.

use floe_store::Engine;

use crate::wire::table::name;
use crate::wire::{Result, object};

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let name = name::from_request(engine, body)?;
    let table = engine.describe_table(name).await?;
    Ok(object(128, |w| {
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
    }))
}
