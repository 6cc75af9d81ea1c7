//! UpdateTimeToLive.

use floe_store::Engine;
use floe_store::json::Writer;
use floe_store::op::{Faults, UpdateTimeToLive};

use crate::wire::parameter::TableName;
use crate::wire::read::{Str, members, request};
use crate::wire::refusal::Result;
use crate::wire::table::name;

members! {
    Request<'a> as "UpdateTimeToLiveInput" {
        "TableName" => table_name: TableName<'a>,
        "TimeToLiveSpecification" => specification: Specification<'a>,
    }
}

members! {
    /// Whether items expire, and by which attribute.
    Specification<'a> as "TimeToLiveSpecification" {
        "Enabled" => enabled: bool,
        "AttributeName" => attribute_name: Str<'a>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let given_name = name::present(request.table_name)?;
    let mut faults = Faults::new();
    let specification = request.specification;
    if specification.is_none() {
        faults.add_null("timeToLiveSpecification");
    }
    let Specification {
        enabled,
        attribute_name,
        ..
    } = specification.unwrap_or(Specification {
        enabled: Some(true),
        attribute_name: Some("missing".into()),
        ..Specification::default()
    });
    if enabled.is_none() {
        faults.add_null("timeToLiveSpecification.enabled");
    }
    if attribute_name.is_none() {
        faults.add_null("timeToLiveSpecification.attributeName");
    }
    let attribute = attribute_name.unwrap_or("missing".into());
    let operation = UpdateTimeToLive {
        table_name: (*given_name).to_owned(),
        attribute: (&*attribute).into(),
        enabled: enabled.unwrap_or(false),
    };
    operation.add_faults(&mut faults);
    faults.into_result()?;
    name::own(engine, &given_name)?;
    let answer = write(&operation);
    engine.update_time_to_live(operation).await?;
    Ok(answer)
}

fn write(operation: &UpdateTimeToLive) -> Vec<u8> {
    let mut writer = Writer::with_capacity(128);
    writer.object(|w| {
        w.name("TimeToLiveSpecification").object(|w| {
            w.name("Enabled").bool(operation.enabled);
            w.name("AttributeName").string(&operation.attribute);
        });
    });
    writer.into_bytes()
}
