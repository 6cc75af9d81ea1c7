//! DescribeContinuousBackups. There are none here, which tools ask for all the same.

use floe_store::{Engine, Error};

use crate::wire::json::Writer;
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

/// Says of a table that it has none.
pub(super) async fn describe(engine: &dyn Engine, name: String) -> Result<Vec<u8>> {
    let found = engine.describe_table(name.clone()).await;
    found.map_err(|error| match error {
        Error::ResourceNotFound(_) => Refusal::TableNotFound(name),
        error => error.into(),
    })?;
    let mut writer = Writer::with_capacity(160);
    writer.object(|w| {
        w.name("ContinuousBackupsDescription").object(|w| {
            w.name("ContinuousBackupsStatus").string("DISABLED");
            w.name("PointInTimeRecoveryDescription")
                .object(|w| w.name("PointInTimeRecoveryStatus").string("DISABLED"));
        });
    });
    Ok(writer.into_bytes())
}
