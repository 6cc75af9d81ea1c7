//! UpdateContinuousBackups. They can be left off.

use floe_store::Engine;
use floe_store::op::Faults;

use super::describe_continuous_backups::describe;
use crate::wire::parameter::TableName;
use crate::wire::read::{members, request};
use crate::wire::refusal::{Refusal, Result};
use crate::wire::table::name;

members! {
    Request<'a> as "UpdateContinuousBackupsInput" {
        "TableName" => table_name: TableName<'a>,
        "PointInTimeRecoverySpecification" => specification: Specification<'a>,
    }
}

members! {
    /// Whether every moment can be gone back to.
    Specification<'a> as "PointInTimeRecoverySpecification" {
        "PointInTimeRecoveryEnabled" => enabled: bool,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let name = name::required(engine, request.table_name)?;
    let mut faults = Faults::new();
    let enabled = match &request.specification {
        None => {
            faults.add_null("pointInTimeRecoverySpecification");
            None
        }
        Some(specification) => specification.enabled,
    };
    if request.specification.is_some() && enabled.is_none() {
        faults.add_null("pointInTimeRecoverySpecification.pointInTimeRecoveryEnabled");
    }
    faults.into_result()?;
    if enabled == Some(true) {
        let message = "PointInTimeRecoverySpecification is not supported by this server";
        return Err(Refusal::validation(message));
    }
    describe(engine, name).await
}
