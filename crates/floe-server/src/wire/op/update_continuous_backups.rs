//! UpdateContinuousBackups. Backups can only be disabled.

use floe_store::Engine;
use floe_store::op::Faults;

use super::describe_continuous_backups::describe;
use crate::wire::table::name;
use crate::wire::{RequestError, Result, TableName, members, request, require};

members! {
    Request<'a> {
        "TableName" => table_name: TableName<'a>,
        "PointInTimeRecoverySpecification" => specification: Specification<'a>,
    }

    /// Whether point-in-time recovery is enabled.
    Specification<'a> as "PointInTimeRecoverySpecification" {
        "PointInTimeRecoveryEnabled" => enabled: bool,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let name = name::valid_name(engine, request.table_name)?;
    let mut faults = Faults::new();
    let path = "pointInTimeRecoverySpecification";
    require(&mut faults, &request.specification, path);
    if let Some(Specification { enabled, .. }) = &request.specification {
        let path = format_args!("{path}.pointInTimeRecoveryEnabled");
        require(&mut faults, enabled, path);
    }
    faults.into_result()?;
    if request
        .specification
        .is_some_and(|it| it.enabled == Some(true))
    {
        let message = "PointInTimeRecoverySpecification is not supported by this server";
        return Err(RequestError::validation(message));
    }
    describe(engine, name).await
}
