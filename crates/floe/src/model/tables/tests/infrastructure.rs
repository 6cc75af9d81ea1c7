//! Tables exported as infrastructure code.

use serde_json::{Value as Json, json};

use super::super::{InfrastructureFormat, infrastructure};
use super::*;
use crate::error::ErrorKind;
use crate::tables::resource_name::{identifier, logical_id, named};

/// A table with every feature, and names that need escaping.
const AWKWARD: Schema = Schema {
    table: "9-lives.v2",
    sort_constant: Some("cat"),
    indexes: &[index(
        "by_mood",
        &["mood", "price"],
        &["id"],
        IndexProjection::Include(&["quote"]),
    )],
    expires: Some("until"),
    ..model("Cat", &[ID, MOOD, PRICE, QUOTE, UNTIL])
};
const MOOD: FieldSchema = field("mood", Role::Plain, FieldKind::Bytes);
const QUOTE: FieldSchema = FieldSchema {
    attribute: "say \"${miau}\"\\%{x} $1 100%\n",
    ..field("quote", Role::Plain, FieldKind::Text)
};

fn json_of(schemas: &[&Schema], format: InfrastructureFormat) -> Json {
    serde_json::from_str(&infrastructure(schemas, format).unwrap()).unwrap()
}

#[test]
fn cloudformation_retains_every_table() {
    let template = json_of(&[&PLAIN, &AWKWARD], InfrastructureFormat::CloudFormation);
    let resources = template["Resources"].as_object().unwrap();
    assert_eq!(resources.len(), 2);
    let expected = json!({
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": {
            "TableName": "Order",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "_id", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "_id", "KeyType": "HASH" }],
        },
    });
    assert_eq!(resources["OrderTable"], expected);
    let expected = json!({
        "Type": "AWS::DynamoDB::Table",
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": {
            "TableName": "9-lives.v2",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [
                { "AttributeName": "_id", "AttributeType": "S" },
                { "AttributeName": "_sk", "AttributeType": "S" },
                { "AttributeName": "mood", "AttributeType": "B" },
                { "AttributeName": "price", "AttributeType": "N" },
                { "AttributeName": "id", "AttributeType": "S" },
            ],
            "KeySchema": [
                { "AttributeName": "_id", "KeyType": "HASH" },
                { "AttributeName": "_sk", "KeyType": "RANGE" },
            ],
            "GlobalSecondaryIndexes": [{
                "IndexName": "by_mood",
                "KeySchema": [
                    { "AttributeName": "mood", "KeyType": "HASH" },
                    { "AttributeName": "price", "KeyType": "HASH" },
                    { "AttributeName": "id", "KeyType": "RANGE" },
                ],
                "Projection": {
                    "ProjectionType": "INCLUDE",
                    "NonKeyAttributes": ["say \"${miau}\"\\%{x} $1 100%\n", "until"],
                },
            }],
            "TimeToLiveSpecification": { "AttributeName": "until", "Enabled": true },
        },
    });
    assert_eq!(resources["9livesv2Table3fe80c40"], expected);
}

#[test]
fn json_is_input_for_the_aws_cli() {
    let inputs = json_of(&[&FULL, &AWKWARD], InfrastructureFormat::Json);
    assert_eq!(inputs.as_array().unwrap().len(), 2);
    let template = json_of(&[&FULL], InfrastructureFormat::CloudFormation);
    let properties = &template["Resources"]["OrderTable"]["Properties"];
    for key in [
        "TableName",
        "BillingMode",
        "AttributeDefinitions",
        "KeySchema",
        "GlobalSecondaryIndexes",
    ] {
        assert_eq!(inputs[1]["CreateTable"][key], properties[key]);
    }
    assert_eq!(inputs[1]["CreateTable"].as_object().unwrap().len(), 5);
    let expected = json!({
        "TableName": "Order",
        "TimeToLiveSpecification": { "AttributeName": "until", "Enabled": true },
    });
    assert_eq!(inputs[1]["UpdateTimeToLive"], expected);
    let plain = json_of(&[&PLAIN], InfrastructureFormat::Json);
    assert_eq!(
        plain[0].as_object().unwrap().len(),
        1,
        "without expiry there is no TTL request"
    );
}

#[test]
fn streams_are_declared_in_every_format() {
    let images = "NEW_AND_OLD_IMAGES";
    let template = json_of(&[&STREAMED], InfrastructureFormat::CloudFormation);
    let properties = &template["Resources"]["OrderTable"]["Properties"];
    let expected = json!({ "StreamViewType": images });
    assert_eq!(properties["StreamSpecification"], expected);

    let inputs = json_of(&[&STREAMED], InfrastructureFormat::Json);
    let expected = json!({ "StreamEnabled": true, "StreamViewType": images });
    assert_eq!(inputs[0]["CreateTable"]["StreamSpecification"], expected);

    let text = infrastructure(&[&STREAMED], InfrastructureFormat::Terraform).unwrap();
    let expected = r#"resource "aws_dynamodb_table" "Order" {
  name             = "Order"
  billing_mode     = "PAY_PER_REQUEST"
  hash_key         = "_id"
  stream_enabled   = true
  stream_view_type = "NEW_AND_OLD_IMAGES"

  attribute {
"#;
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn terraform_protects_every_table() {
    let text = infrastructure(&[&PLAIN, &AWKWARD], InfrastructureFormat::Terraform).unwrap();
    let expected = r##"# Indexes are written with key_schema, which needs the provider hashicorp/aws 6.37 or later.

resource "aws_dynamodb_table" "table_9-lives_v2_3fe80c40" {
  name         = "9-lives.v2"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "_id"
  range_key    = "_sk"

  attribute {
    name = "_id"
    type = "S"
  }

  attribute {
    name = "_sk"
    type = "S"
  }

  attribute {
    name = "mood"
    type = "B"
  }

  attribute {
    name = "price"
    type = "N"
  }

  attribute {
    name = "id"
    type = "S"
  }

  global_secondary_index {
    name               = "by_mood"
    projection_type    = "INCLUDE"
    non_key_attributes = ["say \"\u0024{miau}\"\\\u0025{x} $1 100%\n", "until"]

    key_schema {
      attribute_name = "mood"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "price"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "id"
      key_type       = "RANGE"
    }
  }

  ttl {
    attribute_name = "until"
    enabled        = true
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "Order" {
  name         = "Order"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "_id"

  attribute {
    name = "_id"
    type = "S"
  }

  lifecycle {
    prevent_destroy = true
  }
}
"##;
    assert_eq!(text, expected);
}

#[test]
fn output_does_not_depend_on_the_order_of_models() {
    use InfrastructureFormat::{CloudFormation, Json, Terraform};
    for format in [CloudFormation, Terraform, Json] {
        let one = infrastructure(&[&PLAIN, &AWKWARD], format).unwrap();
        assert_eq!(
            one,
            infrastructure(&[&AWKWARD, &PLAIN, &AWKWARD], format).unwrap()
        );
        assert!(one.ends_with('\n') && !one.ends_with("\n\n"));
    }
}

#[test]
fn resource_names_are_valid_and_depend_on_the_table_only() {
    let long = "x".repeat(255);
    let tables = [
        "Orders",
        "my-orders",
        "my.orders",
        "my_orders",
        "_x",
        "1st",
        ".hidden",
        "-dash",
        &long,
    ];
    let mut seen = Vec::new();
    for table in tables {
        let (logical, identifier) = (logical_id(table), identifier(table));
        assert!(logical.len() <= 255 && logical.chars().all(|c| c.is_ascii_alphanumeric()));
        assert!(identifier.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
        let mut rest = identifier.chars();
        assert!(
            rest.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')),
            "{identifier}"
        );
        assert!(
            !seen.contains(&logical) && !seen.contains(&identifier),
            "{table}"
        );
        seen.extend([logical, identifier]);
    }
    assert_eq!(logical_id("Orders"), "OrdersTable");
    assert_eq!(identifier("my-orders"), "my-orders");
}

#[test]
fn resource_names_are_unique() {
    let other = Schema {
        table: "Orders",
        ..PLAIN
    };
    let tables = super::super::table_definitions(&[&PLAIN, &other]).unwrap();
    let error = named(tables, |_| "same".to_owned()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
    assert_eq!(
        error.to_string(),
        "two tables have the same resource name: resource=same tables=Order,Orders"
    );
}

#[test]
fn formats_are_parsed_by_name() {
    let read = |text: &str| text.parse::<InfrastructureFormat>();
    assert_eq!(
        read("cloudformation"),
        Ok(InfrastructureFormat::CloudFormation)
    );
    assert_eq!(read("terraform"), Ok(InfrastructureFormat::Terraform));
    assert_eq!(read("json"), Ok(InfrastructureFormat::Json));
    let error = read("yaml").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert_eq!(
        error.to_string(),
        "unknown format: expected=cloudformation|terraform|json actual=yaml"
    );
}
