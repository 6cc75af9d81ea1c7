//! DescribeContinuousBackups. There is nothing to go back to here, which tools ask for all the same.

use floe_store::{Engine, Error};

use crate::wire::table::name;
use crate::wire::{Refusal, Result, object};

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    describe(engine, name::requested(engine, body)?).await
}

/// Says of a table that it cannot be brought back to an earlier moment.
pub(super) async fn describe(engine: &dyn Engine, name: String) -> Result<Vec<u8>> {
    let found = engine.describe_table(name.clone()).await;
    found.map_err(|error| match error {
        Error::ResourceNotFound(_) => Refusal::TableNotFound(name),
        error => error.into(),
    })?;
    Ok(object(160, |w| {
        w.name("ContinuousBackupsDescription").object(|w| {
            // DynamoDB says so of every table; whether there is something to go back to stands below.
            w.name("ContinuousBackupsStatus").string("ENABLED");
            w.name("PointInTimeRecoveryDescription")
                .object(|w| w.name("PointInTimeRecoveryStatus").string("DISABLED"));
        });
    }))
}
