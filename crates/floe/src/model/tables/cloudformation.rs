//! A template of AWS CloudFormation.

use floe_store::TableDef;

use super::create_input::{properties, time_to_live};
use super::node::Node;
use super::resource_name::{logical_id, named};
use crate::error::Result;

/// A template with a resource for each table.
pub(super) fn template(tables: Vec<TableDef>) -> Result<String> {
    let resources = named(tables, logical_id)?;
    let resources = resources
        .into_iter()
        .map(|(id, table)| (id, resource(table)));
    let template = Node::map([
        ("AWSTemplateFormatVersion", Node::text("2010-09-09")),
        ("Description", Node::text("The tables of the models.")),
        ("Resources", Node::map(resources)),
    ]);
    template.write()
}

fn resource(table: TableDef) -> Node {
    let expiry = table.ttl_attribute.clone();
    let mut properties = properties(table);
    if let Some(attribute) = expiry {
        properties.push(("TimeToLiveSpecification", time_to_live(&attribute)));
    }
    Node::map([
        ("Type", Node::text("AWS::DynamoDB::Table")),
        ("DeletionPolicy", Node::text("Retain")),
        ("UpdateReplacePolicy", Node::text("Retain")),
        ("Properties", Node::map(properties)),
    ])
}
