//! Tests: parsing of descriptions, and rejected ones.

use super::*;
use crate::error::ErrorKind;
use crate::registry::keys::tests::{BUILDS, LAYERS, LEGACY};

#[test]
fn description_round_trips() {
    for schema in [&LAYERS, &BUILDS, &LEGACY] {
        let read = RegistrySchema::from_description(&schema.describe()).unwrap();
        assert_eq!(read, schema);
    }
}

#[test]
fn description_uses_the_attribute_names_of_the_derive() {
    let expected = r##"{
  "name": "Layer",
  "table": "klayers",
  "pk": "lyr#{region}.{package}",
  "sk": "lyrVrsn#v{version}",
  "latest": "lyrVrsn0#",
  "version": "lyrVrsn",
  "published": "crtdDt",
  "deleted": "deleted_date",
  "status": "dplySts",
  "expires": "exDt",
  "retention": "1d",
  "fields": [
    {
      "name": "region",
      "attribute": "rgn",
      "kind": "text"
    },
    {
      "name": "package",
      "attribute": "pckg",
      "kind": "text"
    },
    {
      "name": "arn",
      "attribute": "arn",
      "kind": "text"
    }
  ],
  "indexes": [
    {
      "name": "package-status",
      "key": "package"
    },
    {
      "name": "region-status",
      "key": "region"
    }
  ]
}
"##;
    assert_eq!(LAYERS.describe(), expected);
}

#[test]
fn equal_descriptions_share_one_schema() {
    let text = LAYERS.describe();
    let first = RegistrySchema::from_description(&text).unwrap();
    let spaced = text.replace(": ", " :   ");
    let again = RegistrySchema::from_description(&spaced).unwrap();
    assert!(std::ptr::eq(first, again), "the same description");
    let elsewhere = RegistrySchema::from_description_in(&text, "copy").unwrap();
    assert_eq!((elsewhere.table, elsewhere.name), ("copy", "Layer"));
    assert!(!std::ptr::eq(first, elsewhere));
}

#[test]
fn retentions_use_the_largest_unit() {
    for (secs, text) in [
        (86_400 * 30, "30d"),
        (7200, "2h"),
        (90 * 60, "90m"),
        (61, "61s"),
    ] {
        assert_eq!(retention_text(secs), text);
        assert_eq!(retention_secs(text), Some(secs));
    }
    for text in ["", "d", "0d", "3", "3w", "-1d", "99999999999999999999d"] {
        assert_eq!(retention_secs(text), None, "{text}");
    }
}

/// Replaces a part of the description of layers, and expects an error that contains a text.
#[track_caller]
fn refused(part: &str, other: &str, expected: &str) {
    let text = LAYERS.describe();
    assert!(text.contains(part), "{part}");
    let error = RegistrySchema::from_description(&text.replace(part, other)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn descriptions_that_the_derive_would_reject_are_rejected() {
    refused("{\n  \"name\"", "[\n  \"name\"", "not JSON");
    refused(
        "\"table\": \"klayers\",",
        "",
        "property=table expected=text",
    );
    refused(
        "\"table\": \"klayers\"",
        "\"table\": 7",
        "property=table expected=text",
    );
    refused(
        "\"sk\": \"lyrVrsn#v{version}\"",
        "\"sk\": \"v\"",
        "one key must contain {version}",
    );
    refused(
        "\"sk\": \"lyrVrsn#v{version}\"",
        "\"sk\": \"{version}v\"",
        "text followed by {version}",
    );
    refused(
        "{region}.{package}",
        "{region}{package}",
        "separated by a punctuation character",
    );
    refused("{region}.{package}", "{region}.{packet}", "field=packet");
    refused("{region}.{package}", "{region}.{region}", "field=region");
    refused("{region}.{package}", "{region", "in braces");
    refused(
        "\"lyrVrsn0#\"",
        "\"lyrVrsn#v\"",
        "neither it nor the prefix of a version's key",
    );
    refused("\"status\": \"dplySts\",", "", "`expires` needs `status`");
    refused("\"expires\": \"exDt\",", "", "`retention` needs `expires`");
    refused("\"1d\"", "\"1w\"", "retention=1w");
    refused(
        "\"key\": \"region\"",
        "\"key\": \"arn\"",
        "index=region-status key=arn",
    );
    refused(
        "\"key\": \"region\"",
        "\"key\": \"package\"",
        "index=region-status key=package",
    );
    refused(
        "\"kind\": \"text\"\n    },\n    {\n      \"name\": \"package\"",
        "\"kind\": \"bytes\"\n    },\n    {\n      \"name\": \"package\"",
        "field=region",
    );
    refused(
        "\"attribute\": \"arn\"",
        "\"attribute\": \"_arn\"",
        "attribute=_arn",
    );
    refused(
        "\"attribute\": \"arn\"",
        "\"attribute\": \"exDt\"",
        "attribute=exDt",
    );
    refused("\"name\": \"arn\"", "\"name\": \"region\"", "field=region");
    refused("\"kind\": \"text\"", "\"kind\": \"uuid\"", "kind=uuid");
    refused("\"latest\"", "\"newest\"", "property=latest");
    refused(
        "\"version\"",
        "\"versions\"",
        "unknown property: property=versions",
    );
}
