//! TagResource.

use floe_store::op::{Faults, UpdateTags};
use floe_store::{Engine, Error};

use super::create_table::tags;
use crate::wire::table::members::Tag;
use crate::wire::table::name;
use crate::wire::{RequestError, Result, Str, members, request};

members! {
    Request<'a> {
        "ResourceArn" => resource_arn: Str<'a>,
        "Tags" => tags: Vec<Tag<'a>>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let arn = request.resource_arn.as_deref();
    let list = match (&request.tags, arn) {
        (Some(list), _) => list.as_slice(),
        // A missing resource is reported before everything else.
        (None, None) => &[],
        (None, Some(_)) => return Err(null("tags")),
    };
    let table_name = name::from_arn(engine, arn)?;
    if list.is_empty() {
        let message = "Atleast one Tag needs to be provided as Input.";
        return Err(RequestError::validation(message));
    }
    let operation = UpdateTags {
        table_name,
        add: tags(list)?,
        remove: Vec::new(),
    };
    let changed = engine.update_tags(operation).await;
    changed.map_err(|error| missing_resource(error, arn.unwrap_or_default()))?;
    Ok(Vec::new())
}

/// Returns the fault of a missing member, reported alone.
pub(super) fn null(member: &str) -> RequestError {
    let mut faults = Faults::new();
    faults.add_null(member);
    match faults.into_result() {
        Err(error) => error.into(),
        Ok(()) => RequestError::Serialization(None),
    }
}

/// Rewords an error for a table that does not exist, with its ARN.
pub(super) fn missing_resource(error: Error, arn: &str) -> Error {
    match error {
        // The typo is DynamoDB's.
        Error::ResourceNotFound(_) => Error::ResourceNotFound(format!(
            "Requested resource not found: ResourcArn: {arn} not found"
        )),
        error => error,
    }
}
