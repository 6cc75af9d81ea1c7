//! Tests for the keys of both layouts of the seed, and for unusual names.

use super::*;
use crate::attribute::FieldKind;
use crate::registry::schema::{RegistryField, StatusIndex};

pub(crate) const fn field(name: &'static str, attribute: &'static str) -> RegistryField {
    RegistryField {
        name,
        attribute,
        kind: FieldKind::Text,
        is_optional: false,
    }
}

/// Layers: the partition key is the group.
pub(crate) static LAYERS: RegistrySchema = RegistrySchema {
    name: "Layer",
    table: "klayers",
    layout: Layout::Grouped,
    group_key: &[
        KeyPart::Text("lyr#"),
        KeyPart::Name(0),
        KeyPart::Text("."),
        KeyPart::Name(1),
    ],
    escaped: "#.",
    group: &[field("region", "rgn"), field("package", "pckg")],
    version_prefix: "lyrVrsn#v",
    latest: "lyrVrsn0#",
    legacy_keys: false,
    fields: &[
        field("region", "rgn"),
        field("package", "pckg"),
        field("arn", "arn"),
    ],
    version: "lyrVrsn",
    published: "crtdDt",
    status: Some("dplySts"),
    expires: Some("exDt"),
    deleted: "deleted_date",
    retention_secs: Some(86_400),
    hash: None,
    indexes: &[
        StatusIndex {
            name: "package-status",
            field: 1,
        },
        StatusIndex {
            name: "region-status",
            field: 0,
        },
    ],
};

/// Builds: the partition key is the version.
pub(crate) static BUILDS: RegistrySchema = RegistrySchema {
    name: "Build",
    table: "klayers",
    layout: Layout::Versioned,
    group_key: &[KeyPart::Text("pckg#"), KeyPart::Name(0)],
    escaped: "#",
    group: &[field("package", "pckg")],
    version_prefix: "bld#v",
    latest: "bldVrsn0#",
    legacy_keys: false,
    fields: &[
        field("package", "pckg"),
        field("requirements", "requirementsHsh"),
    ],
    version: "bldVrsn",
    published: "crtdDt",
    status: None,
    expires: None,
    deleted: "deleted_date",
    retention_secs: None,
    hash: Some("requirementsHsh"),
    indexes: &[],
};

/// Layers with the legacy keys of the seed.
pub(crate) static LEGACY: RegistrySchema = RegistrySchema {
    legacy_keys: true,
    indexes: &[],
    ..copy(&LAYERS)
};

const fn copy(schema: &RegistrySchema) -> RegistrySchema {
    RegistrySchema { ..*schema }
}

fn group(schema: &'static RegistrySchema, names: &[&str]) -> GroupKey {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    GroupKey {
        schema,
        text: group_text(schema, &names).unwrap(),
    }
}

fn keys(key: &ItemKey) -> (&str, &str) {
    (&key.pk, &key.sk)
}

#[test]
fn layer_keys_match_the_seed() {
    let group = group(&LAYERS, &["eu-west-1", "numpy"]);
    let pk = "lyr#eu-west-1.numpy";
    assert_eq!(keys(&group.version(3)), (pk, "lyrVrsn#v0000000003"));
    assert_eq!(keys(&group.pointer()), (pk, "lyrVrsn0#"));
    assert_eq!(keys(&group.alias("lts").unwrap()), (pk, "lyrVrsn0#lts"));
}

#[test]
fn build_keys_match_the_seed() {
    let group = group(&BUILDS, &["numpy"]);
    assert_eq!(keys(&group.version(3)), ("bld#v0000000003", "pckg#numpy"));
    assert_eq!(keys(&group.pointer()), ("bldVrsn0#", "pckg#numpy"));
    let alias = group.alias("lts").unwrap();
    assert_eq!(keys(&alias), ("bldVrsn0#lts", "pckg#numpy"));
}

#[test]
fn legacy_keys_match_the_seed() {
    let group = group(&LEGACY, &["eu-west-1", "zope.interface"]);
    let pk = "lyr#eu-west-1.zope.interface";
    assert_eq!(keys(&group.version(3)), (pk, "lyrVrsn#v3"));
    assert_eq!(keys(&group.pointer()), (pk, "lyrVrsn0#"));
}

#[test]
fn version_keys_sort_like_numbers() {
    let group = group(&LAYERS, &["eu", "numpy"]);
    let numbers = [1, 2, 9, 10, 11, 99, 100, 4_294_967_296, VERSION_MAX];
    let texts: Vec<_> = numbers.map(|number| group.version(number).sk).into();
    assert!(texts.is_sorted(), "{texts:?}");
}

#[test]
fn groups_with_separators_in_names_have_different_keys() {
    let names = [
        "a", "b", "a.b", "a#b", ".", "..", "%", "%2E", "a%2Eb", "ä.ß", "🦀", " ", "\0",
    ];
    let mut seen = std::collections::BTreeMap::new();
    for schema in [&LAYERS, &LEGACY] {
        seen.clear();
        for one in names {
            for other in names {
                let text = group(schema, &[one, other]).text;
                let known = seen.insert(text.clone(), (one, other));
                assert_eq!(known, None, "{text} is {one:?} {other:?}");
            }
        }
    }
}

#[test]
fn version_of_recognizes_version_keys_only() {
    let layer = group(&LAYERS, &["eu", "numpy"]);
    let build = group(&BUILDS, &["numpy"]);
    assert_eq!(version_of(&LAYERS, &layer.version(12).to_item()), Some(12));
    assert_eq!(version_of(&BUILDS, &build.version(12).to_item()), Some(12));
    assert_eq!(version_of(&LAYERS, &layer.pointer().to_item()), None);
    assert_eq!(
        version_of(&LAYERS, &layer.alias("1").unwrap().to_item()),
        None
    );
    assert_eq!(version_of(&LAYERS, &build.version(12).to_item()), None);
    assert_eq!(version_of(&BUILDS, &layer.version(12).to_item()), None);
    let unpadded = Item::new()
        .with("pk", "lyr#eu.numpy")
        .with("sk", "lyrVrsn#v12");
    assert_eq!(version_of(&LAYERS, &unpadded), None);
    assert_eq!(version_of(&LEGACY, &unpadded), Some(12));
    assert_eq!(version_of(&LAYERS, &Item::new()), None);
}

#[test]
fn keys_beyond_store_limits_are_rejected() {
    let text = |schema, letters| group_text(schema, &["a".to_owned(), "b".repeat(letters)]);
    let fixed = "lyr#a.".len();
    assert!(text(&LAYERS, 2048 - fixed).is_ok());
    let error = text(&LAYERS, 2049 - fixed).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the key is too long: bytes=2049 bytes_max=2048 model=Layer field=pk"
    );
    let build = |letters| group_text(&BUILDS, &["b".repeat(letters)]);
    assert!(build(1024 - "pckg#".len()).is_ok());
    assert!(build(1025 - "pckg#".len()).is_err());
    let layer = group(&LAYERS, &["a", "b"]);
    assert!(layer.alias(&"x".repeat(1024 - "lyrVrsn0#".len())).is_ok());
    assert!(layer.alias(&"x".repeat(1025 - "lyrVrsn0#".len())).is_err());
    assert!(layer.alias("").is_err());
}

#[test]
fn number_after_the_largest_is_an_error() {
    let group = group(&BUILDS, &["numpy"]);
    assert_eq!(next_number(&group, VERSION_MAX - 1), Ok(VERSION_MAX));
    let error = next_number(&group, VERSION_MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}
