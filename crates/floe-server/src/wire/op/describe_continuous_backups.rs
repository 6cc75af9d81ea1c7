//! DescribeContinuousBackups. There is nothing to go back to here, which tools ask for all the same.

use floe_store::json::Writer;
use floe_store::{Engine, Error};

use crate::wire::parameter::TableName;
use crate::wire::read::{members, request};
use crate::wire::refusal::{Refusal, Result};
use crate::wire::table::name;

members! {
    Request<'a> as "DescribeContinuousBackupsInput" {
        "TableName" => table_name: TableName<'a>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    describe(engine, name::required(engine, request.table_name)?).await
}

/// Says of a table that it cannot be brought back to an earlier moment.
pub(super) async fn describe(engine: &dyn Engine, name: String) -> Result<Vec<u8>> {
    let found = engine.describe_table(name.clone()).await;
    found.map_err(|error| match error {
        Error::ResourceNotFound(_) => Refusal::TableNotFound(name),
        error => error.into(),
    })?;
    let mut writer = Writer::with_capacity(160);
    writer.object(|w| {
        w.name("ContinuousBackupsDescription").object(|w| {
            // DynamoDB says so of every table; whether there is something to go back to is told below.
            w.name("ContinuousBackupsStatus").string("ENABLED");
            w.name("PointInTimeRecoveryDescription")
                .object(|w| w.name("PointInTimeRecoveryStatus").string("DISABLED"));
        });
    });
    Ok(writer.into_bytes())
}
