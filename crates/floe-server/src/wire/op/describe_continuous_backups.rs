//! DescribeContinuousBackups. Point-in-time recovery is not supported, but tools query its status.

use floe_store::{Engine, Error};

use crate::wire::table::name;
use crate::wire::{RequestError, Result, object};

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    describe(engine, name::from_request(engine, body)?).await
}

/// Reports that a table has no point-in-time recovery.
pub(super) async fn describe(engine: &dyn Engine, name: String) -> Result<Vec<u8>> {
    let found = engine.describe_table(name.clone()).await;
    found.map_err(|error| match error {
        Error::ResourceNotFound(_) => RequestError::TableNotFound(name),
        error => error.into(),
    })?;
    Ok(object(160, |w| {
        w.name("ContinuousBackupsDescription").object(|w| {
            // DynamoDB reports this for every table; the actual status is the member below.
            w.name("ContinuousBackupsStatus").string("ENABLED");
            w.name("PointInTimeRecoveryDescription")
                .object(|w| w.name("PointInTimeRecoveryStatus").string("DISABLED"));
        });
    }))
}
