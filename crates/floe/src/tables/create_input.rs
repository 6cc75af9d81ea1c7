//! The input of the AWS CLI for `create-table` and `update-time-to-live`.

use floe_store::op::{CreateIndex, CreateTable, KeySchemaElement};
use floe_store::table::{IndexKind, KeyKind, Projection, StreamView};
use floe_store::{Name, TableDef};

use super::node::Node;
use crate::error::Result;

/// A list with the inputs for each table.
pub(super) fn inputs(tables: Vec<TableDef>) -> Result<String> {
    Node::List(tables.into_iter().map(input).collect()).write()
}

fn input(table: TableDef) -> Node {
    let name = table.name.clone();
    let (expiry, stream) = (table.ttl_attribute.clone(), table.stream);
    let mut create = properties(table);
    if let Some(view) = stream {
        let enabled = ("StreamEnabled", Node::Flag(true));
        let specification = Node::map([enabled, stream_view(view)]);
        create.push(("StreamSpecification", specification));
    }
    let mut inputs = vec![("CreateTable", Node::map(create))];
    if let Some(attribute) = expiry {
        let update = Node::map([
            ("TableName", Node::Text(name)),
            ("TimeToLiveSpecification", time_to_live(&attribute)),
        ]);
        inputs.push(("UpdateTimeToLive", update));
    }
    Node::map(inputs)
}

/// The properties of a table that CreateTable and CloudFormation share.
pub(super) fn properties(table: TableDef) -> Vec<(&'static str, Node)> {
    let request = CreateTable::from(table);
    let definitions = request.attribute_definitions.iter().map(definition);
    let mut properties = vec![
        ("TableName", Node::Text(request.table_name)),
        ("BillingMode", Node::text("PAY_PER_REQUEST")),
        ("AttributeDefinitions", Node::List(definitions.collect())),
        ("KeySchema", key_schema(&request.key_schema)),
    ];
    for (member, kind) in [
        ("LocalSecondaryIndexes", IndexKind::Local),
        ("GlobalSecondaryIndexes", IndexKind::Global),
    ] {
        let indexes = request.indexes.iter().filter(|index| index.kind == kind);
        let indexes: Vec<_> = indexes.map(index).collect();
        if !indexes.is_empty() {
            properties.push((member, Node::List(indexes)));
        }
    }
    properties
}

pub(super) fn time_to_live(attribute: &str) -> Node {
    Node::map([
        ("AttributeName", Node::text(attribute)),
        ("Enabled", Node::Flag(true)),
    ])
}

pub(super) fn stream_view(view: StreamView) -> (&'static str, Node) {
    ("StreamViewType", Node::text(view.as_str()))
}

fn definition((name, kind): &(Name, KeyKind)) -> Node {
    Node::map([
        ("AttributeName", Node::text(name.as_str())),
        ("AttributeType", Node::text(kind.as_str())),
    ])
}

fn key_schema(elements: &[KeySchemaElement]) -> Node {
    let element = |element: &KeySchemaElement| {
        Node::map([
            ("AttributeName", Node::text(element.name.as_str())),
            ("KeyType", Node::text(element.role.as_str())),
        ])
    };
    Node::List(elements.iter().map(element).collect())
}

fn index(index: &CreateIndex) -> Node {
    Node::map([
        ("IndexName", Node::text(&index.name)),
        ("KeySchema", key_schema(&index.key_schema)),
        ("Projection", projection(&index.projection)),
    ])
}

fn projection(projection: &Projection) -> Node {
    let kind = ("ProjectionType", Node::text(projection_type(projection)));
    match projection {
        Projection::All | Projection::KeysOnly => Node::map([kind]),
        Projection::Include(names) => {
            let names = names.iter().map(|name| Node::text(name.as_str()));
            Node::map([kind, ("NonKeyAttributes", Node::List(names.collect()))])
        }
    }
}

/// DynamoDB's name for the projection.
pub(super) const fn projection_type(projection: &Projection) -> &'static str {
    match projection {
        Projection::All => "ALL",
        Projection::KeysOnly => "KEYS_ONLY",
        Projection::Include(_) => "INCLUDE",
    }
}
