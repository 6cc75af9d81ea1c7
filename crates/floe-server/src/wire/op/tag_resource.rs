//! TagResource.

use floe_store::op::{Faults, UpdateTags};
use floe_store::{Engine, Error};

use super::create_table::tags;
use crate::wire::table::members::Tag;
use crate::wire::table::name;
use crate::wire::{Refusal, Result, Str, members, request};

members! {
    Request<'a> {
        "ResourceArn" => resource_arn: Str<'a>,
        "Tags" => tags: Vec<Tag<'a>>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let arn = request.resource_arn.as_deref();
    let list = match (&request.tags, arn) {
        (Some(list), _) => list.as_slice(),
        // Without a resource nothing else matters.
        (None, None) => &[],
        (None, Some(_)) => return Err(null("tags")),
    };
    let table_name = name::of_resource(engine, arn)?;
    if list.is_empty() {
        let message = "Atleast one Tag needs to be provided as Input.";
        return Err(Refusal::validation(message));
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

/// The refusal of a member that is missing, by itself.
pub(super) fn null(member: &str) -> Refusal {
    let mut faults = Faults::new();
    faults.add_null(member);
    match faults.into_result() {
        Err(error) => error.into(),
        Ok(()) => Refusal::Serialization(None),
    }
}

/// A table that is not there is named by its resource name.
pub(super) fn missing_resource(error: Error, arn: &str) -> Error {
    match error {
        // The service has spelled it so for years.
        Error::ResourceNotFound(_) => Error::ResourceNotFound(format!(
            "Requested resource not found: ResourcArn: {arn} not found"
        )),
        error => error,
    }
}
