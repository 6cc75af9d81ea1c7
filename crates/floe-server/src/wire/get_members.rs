//! The projection of GetItem and BatchGetItem, as an expression or as the legacy parameter that it replaces.

use floe_store::expr::Paths;
use floe_store::json::ValidationLayer;

use super::expressions::{Parameters, Placeholders};
use super::legacy::attributes_to_get;
use super::parameter::OptionalStr;
use super::read::{Map, Str, members};
use super::request_error::Result;

members! {
    /// The members with which GetItem and BatchGetItem select attributes.
    GetMembers<'a> {
        "AttributesToGet" => attributes_to_get: Vec<Str<'a>>,
        "ConsistentRead" => consistent_read: bool,
        "ProjectionExpression" => expression: Str<'a>,
        "ExpressionAttributeNames" => names: Map<'a, Str<'a>>,
    }
}

impl GetMembers<'_> {
    /// Rejects a combination of both forms.
    pub(crate) fn check_unmixed(&self, layer: ValidationLayer) -> Result<()> {
        Parameters {
            replaced: &[("AttributesToGet", self.attributes_to_get.is_some())],
            expressions: &[("ProjectionExpression", self.expression.is_some())],
            names: self.names.is_some(),
            values: false,
        }
        .check(layer)
    }

    /// Parses the projection.
    pub(crate) fn parse(self, layer: ValidationLayer) -> Result<Option<Paths>> {
        let listed = self.attributes_to_get.as_deref();
        projection(&self.expression, self.names, listed, layer)
    }
}

/// Parses a projection expression, or else converts the listed attributes.
pub(crate) fn projection(
    expression: &OptionalStr<'_>,
    names: Option<Map<'_, Str<'_>>>,
    listed: Option<&[Str<'_>]>,
    layer: ValidationLayer,
) -> Result<Option<Paths>> {
    let placeholders = Placeholders::new(names, None, layer)?;
    let mut parser = placeholders.parser();
    let projection = match (expression, listed) {
        (Some(text), _) => Some(parser.projection(text)?),
        (None, Some(names)) => Some(attributes_to_get(names)?),
        (None, None) => None,
    };
    parser.finish()?;
    Ok(projection)
}
