//! ListTagsOfResource.

use floe_store::Engine;

use super::tag_resource::missing_resource;
use crate::wire::table::name;
use crate::wire::{Result, Str, members, object, request, write_list};

members! {
    Request<'a> {
        "ResourceArn" => resource_arn: Str<'a>,
        // Ignored: all tags of a table fit on one page.
        "NextToken" => next_token: Str<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let arn = request.resource_arn.as_deref();
    let name = name::from_arn(engine, arn)?;
    let table = engine.describe_table(name).await;
    let table = table.map_err(|error| missing_resource(error, arn.unwrap_or_default()))?;
    Ok(object(256, |w| {
        write_list(w, "Tags", &table.definition.tags, |w, (key, value)| {
            w.object(|w| {
                w.name("Key").string(key);
                w.name("Value").string(value);
            });
        });
    }))
}
