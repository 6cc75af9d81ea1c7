//! What of an item is read: a projection, or the parameter that it has replaced.

use floe_store::expr::Paths;
use floe_store::json::Layer;

use super::expressions::{Parameters, Placeholders};
use super::legacy::attributes_to_get;
use super::parameter::Word;
use super::read::{Map, Str, members};
use super::refusal::Result;

members! {
    /// The members by which GetItem and BatchGetItem read parts of items.
    Projected<'a> {
        "AttributesToGet" => attributes_to_get: Vec<Str<'a>>,
        "ConsistentRead" => consistent_read: bool,
        "ProjectionExpression" => expression: Str<'a>,
        "ExpressionAttributeNames" => names: Map<'a, Str<'a>>,
    }
}

impl Projected<'_> {
    /// Refuses a mixture of both.
    pub(crate) fn check_unmixed(&self, layer: Layer) -> Result<()> {
        Parameters {
            replaced: &[("AttributesToGet", self.attributes_to_get.is_some())],
            expressions: &[("ProjectionExpression", self.expression.is_some())],
            names: self.names.is_some(),
            values: false,
        }
        .check(layer)
    }

    /// The parts that are asked for.
    pub(crate) fn parse(self, layer: Layer) -> Result<Option<Paths>> {
        let listed = self.attributes_to_get.as_deref();
        projection(&self.expression, self.names, listed, layer)
    }
}

/// The parts that an expression asks for, or else the attributes that are listed.
pub(crate) fn projection(
    expression: &Word<'_>,
    names: Option<Map<'_, Str<'_>>>,
    listed: Option<&[Str<'_>]>,
    layer: Layer,
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
