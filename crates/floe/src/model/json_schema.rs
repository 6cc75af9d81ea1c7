//! The JSON Schema of a model, for documentation or validation elsewhere.

use serde_json::{Map, Value as Json, json};

use super::schema::{FieldSchema, Schema};

/// Returns the JSON Schema (2020-12) of the values of a model, with the attribute names.
///
/// Fields that may be absent and those with a default are not required.
pub fn json_schema(schema: &Schema) -> Json {
    let properties: Map<String, Json> = schema.fields.iter().map(property).collect();
    let required = schema.fields.iter().filter(|field| field.is_required());
    let required: Vec<&str> = required.map(|field| field.attribute).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": schema.model,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(field: &FieldSchema) -> (String, Json) {
    let mut json = (field.json_schema)();
    if field.read_only {
        match &mut json {
            Json::Object(keywords) => _ = keywords.insert("readOnly".to_owned(), true.into()),
            // A schema can also be `true` or `false`, which have no keywords.
            other => *other = json!({"allOf": [other], "readOnly": true}),
        }
    }
    (field.attribute.to_owned(), json)
}

#[cfg(test)]
mod tests {
    use super::super::schema::{FieldKind, Role, SortKeyEncoding};
    use super::*;

    const PLAIN: FieldSchema = FieldSchema {
        name: "id",
        attribute: "id",
        role: Role::Plain,
        kind: FieldKind::Text,
        optional: false,
        read_only: false,
        has_default: false,
        json_schema: || json!({"type": "string"}),
    };

    const ORDER: Schema = Schema {
        model: "Order",
        table: "Orders",
        fields: &[
            FieldSchema {
                role: Role::Partition,
                ..PLAIN
            },
            FieldSchema {
                name: "note",
                attribute: "remark",
                optional: true,
                ..PLAIN
            },
            FieldSchema {
                name: "batch",
                attribute: "batch",
                has_default: true,
                read_only: true,
                ..PLAIN
            },
            FieldSchema {
                name: "extra",
                attribute: "extra",
                read_only: true,
                json_schema: || Json::Bool(true),
                ..PLAIN
            },
        ],
        sort_constant: None,
        sort_key_encoding: SortKeyEncoding::Ordered,
        indexes: &[],
        expires: None,
        exactly_once: false,
        stream: false,
    };

    #[test]
    fn model_is_an_object_without_additional_properties() {
        let expected = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Order",
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "remark": {"type": "string"},
                "batch": {"type": "string", "readOnly": true},
                "extra": {"allOf": [true], "readOnly": true},
            },
            "required": ["id", "extra"],
            "additionalProperties": false,
        });
        assert_eq!(json_schema(&ORDER), expected);
    }
}
