//! Table names and table ARNs.

use floe_store::op::Faults;
use floe_store::{Engine, Error};

use crate::wire::{RequestError, Result, TableName, members, request};

members! {
    /// A request whose only member is a table name.
    NameOnly<'a> {
        "TableName" => table_name: TableName<'a>,
    }
}

/// Parses a request whose only member is a table name. Returns the plain name.
pub(crate) fn from_request(engine: &dyn Engine, body: &str) -> Result<String> {
    let request: NameOnly<'_> = request(body)?;
    valid_name(engine, request.table_name)
}

/// Returns the plain name of a table. The name must be present and valid.
pub(crate) fn valid_name(engine: &dyn Engine, name: Option<TableName<'_>>) -> Result<String> {
    let name = require(name)?;
    let mut faults = Faults::new();
    faults.table_name_by_pattern(&name);
    faults.into_result()?;
    check_arn(engine, &name)?;
    Ok(String::from(name))
}

/// Returns the name of a table, which must be present.
pub(crate) fn require(name: Option<TableName<'_>>) -> Result<TableName<'_>> {
    name.ok_or_else(|| {
        RequestError::validation(
            "The parameter 'TableName' is required but was not present in the request",
        )
    })
}

/// Checks that an ARN used as a name belongs to a table of this store.
pub(crate) fn check_arn(engine: &dyn Engine, name: &TableName<'_>) -> Result<()> {
    let Some((given, ours)) = name.arn().zip(engine.table_arn(name)) else {
        return Ok(());
    };
    match differing_part(given, &ours) {
        None => Ok(()),
        Some(ACCOUNT) => Err(access_denied()),
        Some(part) => Err(RequestError::validation(format!(
            "1 validation error detected: Invalid AWS {part} in '{given}'"
        ))),
    }
}

/// Returns the table name in an ARN, as the tag operations expect it.
pub(crate) fn from_arn(engine: &dyn Engine, arn: Option<&str>) -> Result<String> {
    let arn = arn.ok_or_else(|| RequestError::validation("Invalid TableArn"))?;
    if !arn.starts_with("arn:") {
        let message = format!("ARNs must start with 'arn:': {arn}");
        return Err(RequestError::invalid(message));
    }
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let [_, _, "dynamodb", _, _, resource] = *parts else {
        return Err(access_denied());
    };
    let Some(table) = resource.strip_prefix("table/") else {
        let message = format!("Provided Arn is not a DynamoDB resource arn: {arn}");
        return Err(RequestError::invalid(message));
    };
    let (table, rest) = table.split_once('/').unwrap_or((table, ""));
    if rest.starts_with("index/") {
        return Err(RequestError::invalid(format!(
            "Invalid resource arn provided, only table or stream is accepted. Provided \
             resource arn: {arn}"
        )));
    }
    let foreign = engine
        .table_arn(table)
        .and_then(|ours| differing_part(arn, &ours));
    match foreign {
        Some(ACCOUNT) => Err(access_denied()),
        None if rest.is_empty() && floe_store::op::is_valid_name(table) => Ok(table.to_owned()),
        _ => Err(RequestError::validation(format!(
            "Invalid TableArn: Invalid ResourceArn provided as input {arn}"
        ))),
    }
}

fn access_denied() -> RequestError {
    RequestError::Store(Error::AccessDenied("Access is denied".to_owned()))
}

/// Returns the part in which an ARN differs from ours. The account is compared first.
fn differing_part(given: &str, ours: &str) -> Option<&'static str> {
    let part = |arn: &str, at: usize| arn.splitn(6, ':').nth(at).map(str::to_owned);
    let mut parts = [(4, ACCOUNT), (1, "partition"), (3, "region")].into_iter();
    parts
        .find(|(at, _)| part(given, *at) != part(ours, *at))
        .map(|(_, part)| part)
}

/// The account part of an ARN.
const ACCOUNT: &str = "account";
