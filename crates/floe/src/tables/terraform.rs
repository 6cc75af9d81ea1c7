//! Terraform resources, formatted as by `terraform fmt`.

use floe_store::op::{CreateIndex, CreateTable, KeyRole, KeySchemaElement};
use floe_store::table::{IndexKind, KeyKind, Projection};
use floe_store::{Name, TableDef};

use super::create_input::projection_type;
use super::resource_name::{identifier, named};
use crate::error::Result;

const NEEDS_KEY_SCHEMA: &str = "\
# Indexes are written with key_schema, which needs the provider hashicorp/aws 6.37 or later.

";

/// A resource for each table.
pub(super) fn resources(tables: Vec<TableDef>) -> Result<String> {
    let mut text = String::new();
    let has_indexes = |table: &TableDef| table.global_indexes().next().is_some();
    if tables.iter().any(has_indexes) {
        text.push_str(NEEDS_KEY_SCHEMA);
    }
    for (at, (name, table)) in named(tables, identifier)?.into_iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        resource(&name, table).write(&mut text, 0);
    }
    Ok(text)
}

fn resource(name: &str, table: TableDef) -> Block {
    let expiry = table.ttl_attribute.clone();
    let request = CreateTable::from(table);
    let mut block = Block::new(format!("resource \"aws_dynamodb_table\" {}", quoted(name)))
        .set("name", quoted(&request.table_name))
        .set("billing_mode", quoted("PAY_PER_REQUEST"));
    let names = ["hash_key", "range_key"].into_iter();
    for (key, element) in names.zip(&request.key_schema) {
        block = block.set(key, quoted(&element.name));
    }
    if let Some(view) = request.stream {
        block = block
            .set("stream_enabled", "true")
            .set("stream_view_type", quoted(view.as_str()));
    }
    let blocks = &mut block.blocks;
    blocks.extend(request.attribute_definitions.iter().map(attribute));
    blocks.extend(request.indexes.iter().map(index));
    blocks.extend(expiry.as_ref().map(ttl));
    blocks.push(Block::new("lifecycle").set("prevent_destroy", "true"));
    block
}

fn attribute((name, kind): &(Name, KeyKind)) -> Block {
    Block::new("attribute")
        .set("name", quoted(name))
        .set("type", quoted(kind.as_str()))
}

fn index(index: &CreateIndex) -> Block {
    let kind = match index.kind {
        IndexKind::Global => "global_secondary_index",
        IndexKind::Local => "local_secondary_index",
    };
    let projection = quoted(projection_type(&index.projection));
    let mut block = Block::new(kind)
        .set("name", quoted(&index.name))
        .set("projection_type", projection);
    if let Projection::Include(names) = &index.projection {
        let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
        block = block.set("non_key_attributes", format!("[{}]", names.join(", ")));
    }
    if index.kind == IndexKind::Local {
        let mut key = index.key_schema.iter();
        if let Some(sort) = key.find(|element| element.role == KeyRole::Range) {
            block = block.set("range_key", quoted(&sort.name));
        }
        return block;
    }
    block.blocks = index.key_schema.iter().map(key_element).collect();
    block
}

fn key_element(element: &KeySchemaElement) -> Block {
    Block::new("key_schema")
        .set("attribute_name", quoted(&element.name))
        .set("key_type", quoted(element.role.as_str()))
}

fn ttl(attribute: &Name) -> Block {
    Block::new("ttl")
        .set("attribute_name", quoted(attribute))
        .set("enabled", "true")
}

/// An HCL block: settings, then nested blocks.
struct Block {
    head: String,
    settings: Vec<(&'static str, String)>,
    blocks: Vec<Block>,
}

impl Block {
    fn new(head: impl Into<String>) -> Self {
        Self {
            head: head.into(),
            settings: Vec::new(),
            blocks: Vec::new(),
        }
    }

    fn set(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.settings.push((key, value.into()));
        self
    }

    fn write(&self, text: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        text.push_str(&format!("{indent}{} {{\n", self.head));
        let widths = self.settings.iter().map(|(key, _)| key.len());
        let width = widths.max().unwrap_or(0);
        for (key, value) in &self.settings {
            text.push_str(&format!("{indent}  {key:width$} = {value}\n"));
        }
        for block in &self.blocks {
            text.push('\n');
            block.write(text, depth + 1);
        }
        text.push_str(&format!("{indent}}}\n"));
    }
}

/// Quotes a text for HCL, and escapes template sequences.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let begins_template = matches!(c, '$' | '%') && chars.peek() == Some(&'{');
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if begins_template || c.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
