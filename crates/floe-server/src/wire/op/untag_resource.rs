//! UntagResource.

use floe_store::op::{UpdateTags, missing_table};
use floe_store::{Engine, Error};

use super::tag_resource::null;
use crate::wire::table::name;
use crate::wire::{RequestError, Result, Str, members, request};

members! {
    Request<'a> {
        "ResourceArn" => resource_arn: Str<'a>,
        "TagKeys" => tag_keys: Vec<Str<'a>>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let arn = request.resource_arn.as_deref();
    if request.tag_keys.is_none() && arn.is_some() {
        return Err(null("tagKeys"));
    }
    let table_name = name::from_arn(engine, arn)?;
    let keys = request.tag_keys.unwrap_or_default();
    if keys.is_empty() {
        let message = "Atleast one Tag Key needs to be provided as Input.";
        return Err(RequestError::validation(message));
    }
    let operation = UpdateTags {
        table_name,
        remove: keys.into_iter().map(Str::into_owned).collect(),
        ..UpdateTags::default()
    };
    let changed = engine.update_tags(operation).await;
    changed.map_err(|error| match error {
        Error::ResourceNotFound(_) => missing_table(),
        error => error,
    })?;
    Ok(Vec::new())
}
