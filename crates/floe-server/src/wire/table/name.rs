//! Tables by their names, and by their resource names.

use floe_store::op::Faults;
use floe_store::{Engine, Error};

use crate::wire::{Refusal, Result, TableName, members, request};

members! {
    /// A request that names a table.
    Named<'a> {
        "TableName" => table_name: TableName<'a>,
    }
}

/// The plain name of the table that a request names, which has no other members.
pub(crate) fn requested(engine: &dyn Engine, body: &str) -> Result<String> {
    let request: Named<'_> = request(body)?;
    required(engine, request.table_name)
}

/// The plain name of the table that a request names, which must be there and be one that a table can have.
pub(crate) fn required(engine: &dyn Engine, name: Option<TableName<'_>>) -> Result<String> {
    let name = present(name)?;
    let mut faults = Faults::new();
    faults.table_name_by_pattern(&name);
    faults.into_result()?;
    own(engine, &name)?;
    Ok(String::from(name))
}

/// The name of a table, which must be there.
pub(crate) fn present(name: Option<TableName<'_>>) -> Result<TableName<'_>> {
    name.ok_or_else(|| {
        Refusal::validation(
            "The parameter 'TableName' is required but was not present in the request",
        )
    })
}

/// A resource name in the place of a name is that of a table here.
pub(crate) fn own(engine: &dyn Engine, name: &TableName<'_>) -> Result<()> {
    let Some((given, ours)) = name.resource_name().zip(engine.table_arn(name)) else {
        return Ok(());
    };
    match foreign_part(given, &ours) {
        None => Ok(()),
        Some(ACCOUNT) => Err(access_denied()),
        Some(part) => Err(Refusal::validation(format!(
            "1 validation error detected: Invalid AWS {part} in '{given}'"
        ))),
    }
}

/// The table that a resource name stands for, as the operations on tags take it.
pub(crate) fn of_resource(engine: &dyn Engine, arn: Option<&str>) -> Result<String> {
    let arn = arn.ok_or_else(|| Refusal::validation("Invalid TableArn"))?;
    if !arn.starts_with("arn:") {
        let message = format!("ARNs must start with 'arn:': {arn}");
        return Err(Refusal::invalid(message));
    }
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let [_, _, "dynamodb", _, _, resource] = *parts else {
        return Err(access_denied());
    };
    let Some(table) = resource.strip_prefix("table/") else {
        let message = format!("Provided Arn is not a DynamoDB resource arn: {arn}");
        return Err(Refusal::invalid(message));
    };
    let (table, rest) = table.split_once('/').unwrap_or((table, ""));
    if rest.starts_with("index/") {
        return Err(Refusal::invalid(format!(
            "Invalid resource arn provided, only table or stream is accepted. Provided \
             resource arn: {arn}"
        )));
    }
    let foreign = engine
        .table_arn(table)
        .and_then(|ours| foreign_part(arn, &ours));
    match foreign {
        Some(ACCOUNT) => Err(access_denied()),
        None if rest.is_empty() && floe_store::op::is_name(table) => Ok(table.to_owned()),
        _ => Err(Refusal::validation(format!(
            "Invalid TableArn: Invalid ResourceArn provided as input {arn}"
        ))),
    }
}

fn access_denied() -> Refusal {
    Refusal::Store(Error::AccessDenied("Access is denied".to_owned()))
}

/// The part in which a resource name differs from ours. Whose it is matters before where it is.
fn foreign_part(given: &str, ours: &str) -> Option<&'static str> {
    let part = |arn: &str, at: usize| arn.splitn(6, ':').nth(at).map(str::to_owned);
    let mut parts = [(4, ACCOUNT), (1, "partition"), (3, "region")].into_iter();
    parts
        .find(|(at, _)| part(given, *at) != part(ours, *at))
        .map(|(_, part)| part)
}

/// The part of a resource name that says whose it is.
const ACCOUNT: &str = "account";
