//! Tests: registries that share a table, and conflicts between them.

use super::*;
use crate::registry::keys::tests::field;
use crate::registry::keys::tests::{BUILDS, LAYERS};
use crate::registry::schema::{KeyPart, RegistryField, StatusIndex};

/// The error of the layers registry together with another one.
fn error(other: &RegistrySchema) -> String {
    let error = registry_tables(&[&LAYERS, other]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
    error.to_string()
}

fn builds() -> RegistrySchema {
    RegistrySchema { ..BUILDS }
}

#[test]
fn layers_and_builds_share_a_table() {
    let tables = registry_tables(&[&LAYERS, &BUILDS, &LAYERS]).unwrap();
    let [table] = tables.as_slice() else {
        panic!("one table: {tables:?}");
    };
    let expected = TableDef::builder("klayers", "pk", KeyKind::S)
        .sort_key("sk", KeyKind::S)
        .global_index(
            "package-status",
            [("pckg", KeyKind::S)],
            [("dplySts", KeyKind::S)],
            Projection::All,
        )
        .global_index(
            "region-status",
            [("rgn", KeyKind::S)],
            [("dplySts", KeyKind::S)],
            Projection::All,
        )
        .ttl("exDt")
        .stream(StreamView::NewAndOldImages)
        .build()
        .unwrap();
    assert_eq!(*table, expected);
    let [alone] = registry_tables(&[&BUILDS]).unwrap().try_into().unwrap();
    assert_eq!((alone.ttl_attribute, alone.stream), (None, None));
}

#[test]
fn keys_that_could_collide_are_rejected() {
    let other = RegistrySchema {
        group_key: &[KeyPart::Text("lyr"), KeyPart::Name(0)],
        version_prefix: "lyrVrsn",
        layout: Layout::Grouped,
        ..builds()
    };
    assert_eq!(
        error(&other),
        "the keys of two registries in one table could collide: choose prefixes of which none begins with the other: table=klayers \
         registries=Layer,Build one=Layer other=Build"
    );
    let apart = RegistrySchema {
        group_key: &[KeyPart::Text("lyr#"), KeyPart::Name(0)],
        layout: Layout::Grouped,
        ..builds()
    };
    assert!(
        registry_tables(&[&LAYERS, &apart]).is_ok(),
        "their sort keys differ"
    );
}

#[test]
fn pointer_key_that_could_be_a_description_is_rejected() {
    let other = RegistrySchema {
        latest: "_registry#",
        ..builds()
    };
    assert_eq!(
        error(&other),
        "the keys of pointers could collide with those of descriptions: table=klayers registries=Layer,Build \
         latest=_registry#"
    );
}

#[test]
fn conflicting_definitions_in_one_table_are_rejected() {
    let other = RegistrySchema {
        status: Some("state"),
        indexes: &[StatusIndex {
            name: "package-status",
            field: 0,
        }],
        ..builds()
    };
    assert_eq!(
        error(&other),
        "registries of one table define an index differently: table=klayers registries=Layer,Build \
         index=package-status"
    );
    let other = RegistrySchema {
        expires: Some("ttl"),
        ..builds()
    };
    assert_eq!(
        error(&other),
        "registries of one table expire by different attributes: table=klayers registries=Layer,Build"
    );
    let other = RegistrySchema {
        fields: const { &[field("expiry", "exDt")] },
        ..builds()
    };
    assert_eq!(
        error(&other),
        "versions would expire by an attribute that another registry of the table declares as expiry: \
         table=klayers registries=Layer,Build attribute=exDt registry=Build"
    );
    let other = RegistrySchema {
        group: const {
            &[RegistryField {
                kind: FieldKind::Number,
                ..field("package", "dplySts")
            }]
        },
        status: Some("state"),
        indexes: &[StatusIndex {
            name: "other",
            field: 0,
        }],
        ..builds()
    };
    assert!(
        error(&other).contains("registries=Layer,Build"),
        "one attribute with two types"
    );
}

#[test]
fn tables_are_exported_as_infrastructure_code() {
    let schemas = [&LAYERS, &BUILDS];
    let json = registry_infrastructure(&schemas, InfrastructureFormat::CloudFormation).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let resources = json["Resources"].as_object().unwrap();
    let table = &resources.values().next().unwrap()["Properties"];
    assert_eq!(table["TableName"], "klayers");
    assert_eq!(table["GlobalSecondaryIndexes"].as_array().unwrap().len(), 2);
    assert_eq!(table["TimeToLiveSpecification"]["AttributeName"], "exDt");
    let terraform = registry_infrastructure(&schemas, InfrastructureFormat::Terraform).unwrap();
    assert!(terraform.contains("region-status"), "{terraform}");
}
