//! AWS CloudFormation templates.

use floe_store::TableDef;

use super::create_input::{properties, stream_view, time_to_live};
use super::node::Node;
use super::resource_name::{logical_id, named};
use crate::error::Result;

/// A template with a resource for each table.
pub(super) fn template(tables: Vec<TableDef>) -> Result<String> {
    let template = Node::map([
        ("AWSTemplateFormatVersion", Node::text("2010-09-09")),
        ("Description", Node::text("The tables of the models.")),
        ("Resources", Node::map(resources(tables)?)),
    ]);
    template.write()
}

/// A resource for each table, under its logical id.
pub(crate) fn resources(tables: Vec<TableDef>) -> Result<Vec<(String, Node)>> {
    let named = named(tables, logical_id)?.into_iter();
    Ok(named.map(|(id, table)| (id, resource(table))).collect())
}

fn resource(table: TableDef) -> Node {
    let (expiry, stream) = (table.ttl_attribute.clone(), table.stream);
    let mut properties = properties(table);
    if let Some(attribute) = expiry {
        properties.push(("TimeToLiveSpecification", time_to_live(&attribute)));
    }
    if let Some(view) = stream {
        // Unlike CreateTable, CloudFormation has no StreamEnabled.
        properties.push(("StreamSpecification", Node::map([stream_view(view)])));
    }
    of_type("AWS::DynamoDB::Table", Some("Retain"), properties)
}

/// A resource of this type, with a policy for its deletion and replacement.
pub(crate) fn of_type<'a>(
    kind: &str,
    policy: Option<&str>,
    properties: impl IntoIterator<Item = (&'a str, Node)>,
) -> Node {
    let mut resource = vec![("Type", Node::text(kind))];
    for name in ["DeletionPolicy", "UpdateReplacePolicy"] {
        resource.extend(policy.map(|policy| (name, Node::text(policy))));
    }
    resource.push(("Properties", Node::map(properties)));
    Node::map(resource)
}
