//! UpdateTimeToLive.

use floe_store::Engine;
use floe_store::op::{Faults, UpdateTimeToLive};

use crate::wire::table::name;
use crate::wire::{Result, Str, TableName, members, object, request, require};

members! {
    Request<'a> {
        "TableName" => table_name: TableName<'a>,
        "TimeToLiveSpecification" => specification: Specification<'a>,
    }

    /// Whether items expire, and by which attribute.
    Specification<'a> as "TimeToLiveSpecification" {
        "Enabled" => enabled: bool,
        "AttributeName" => attribute_name: Str<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let given_name = name::require(request.table_name)?;
    let mut faults = Faults::new();
    let path = "timeToLiveSpecification";
    require(&mut faults, &request.specification, path);
    if let Some(specification) = &request.specification {
        let enabled = format_args!("{path}.enabled");
        require(&mut faults, &specification.enabled, enabled);
        let path = format_args!("{path}.attributeName");
        require(&mut faults, &specification.attribute_name, path);
    }
    let specification = request.specification.unwrap_or_default();
    let attribute = specification.attribute_name.unwrap_or("missing".into());
    let operation = UpdateTimeToLive {
        table_name: (*given_name).to_owned(),
        attribute: (&*attribute).into(),
        enabled: specification.enabled.unwrap_or(false),
    };
    operation.add_faults(&mut faults);
    faults.into_result()?;
    name::check_arn(engine, &given_name)?;
    let response = object(128, |w| {
        w.name("TimeToLiveSpecification").object(|w| {
            w.name("Enabled").bool(operation.enabled);
            w.name("AttributeName").string(&operation.attribute);
        });
    });
    engine.update_time_to_live(operation).await?;
    Ok(response)
}
