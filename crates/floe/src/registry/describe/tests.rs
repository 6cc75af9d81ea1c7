//! Descriptions that are read back, and what is refused of them.

use super::*;
use crate::error::ErrorKind;
use crate::registry::keys::tests::{BUILDS, LAYERS, LEGACY};

#[test]
fn a_description_reads_back_as_what_it_was_made_of() {
    for schema in [&LAYERS, &BUILDS, &LEGACY] {
        let read = RegistrySchema::from_description(&schema.describe()).unwrap();
        assert_eq!(read, schema);
    }
}

#[test]
fn it_is_told_in_the_words_of_the_derive() {
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
fn one_is_kept_for_each_distinct_description() {
    let text = LAYERS.describe();
    let first = RegistrySchema::from_description(&text).unwrap();
    let spaced = text.replace(": ", " :   ");
    let again = RegistrySchema::from_description(&spaced).unwrap();
    assert!(std::ptr::eq(first, again), "the same words");
    let elsewhere = RegistrySchema::from_description_in(&text, "copy").unwrap();
    assert_eq!((elsewhere.table, elsewhere.name), ("copy", "Layer"));
    assert!(!std::ptr::eq(first, elsewhere));
}

#[test]
fn retentions_are_told_in_the_greatest_unit() {
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

/// The description of layers with something else in the place of a part of it.
#[track_caller]
fn refused(part: &str, other: &str, told: &str) {
    let text = LAYERS.describe();
    assert!(text.contains(part), "{part}");
    let error = RegistrySchema::from_description(&text.replace(part, other)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert!(error.to_string().contains(told), "{error}");
}

#[test]
fn what_the_derive_would_refuse_is_refused() {
    refused("{\n  \"name\"", "[\n  \"name\"", "it is no JSON");
    refused("\"table\": \"klayers\",", "", "word=table expected=text");
    refused(
        "\"table\": \"klayers\"",
        "\"table\": 7",
        "word=table expected=text",
    );
    refused(
        "\"sk\": \"lyrVrsn#v{version}\"",
        "\"sk\": \"v\"",
        "one key has {version}",
    );
    refused(
        "\"sk\": \"lyrVrsn#v{version}\"",
        "\"sk\": \"{version}v\"",
        "text and {version} behind it",
    );
    refused(
        "{region}.{package}",
        "{region}{package}",
        "a sign between them",
    );
    refused("{region}.{package}", "{region}.{packet}", "field=packet");
    refused("{region}.{package}", "{region}.{region}", "field=region");
    refused("{region}.{package}", "{region", "in braces");
    refused(
        "\"lyrVrsn0#\"",
        "\"lyrVrsn#v\"",
        "neither it nor that of a version",
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
    refused("\"latest\"", "\"newest\"", "word=latest");
    refused(
        "\"version\"",
        "\"versions\"",
        "a word is not known: word=versions",
    );
}
