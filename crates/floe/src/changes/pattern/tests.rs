//! Matching of patterns, and validation errors.

use floe_store::op::{ChangeKind, ChangeRecord, ServiceIdentity};
use floe_store::table::StreamView;
use floe_store::{Item, Number, Timestamp, Value};

use super::*;
use crate::changes::Change;

/// The removal of an expired layer.
fn envelope() -> Envelope {
    let keys = Item::new()
        .with("pk", "lyr#eu-west-1.numpy")
        .with("sk", "lyrVrsn#v00012");
    let precise: Number = "12345678901234567890.123456789".parse().unwrap();
    let old = keys
        .clone()
        .with("rgn", "eu-west-1")
        .with("size", 512)
        .with("precise", Value::N(precise))
        .with("note", Value::Null)
        .with("live", true)
        .with("tags", Value::L(vec!["Stable".into(), 7.into()]));
    let record = ChangeRecord {
        event_id: "e7".to_owned(),
        kind: ChangeKind::Remove,
        keys,
        old_image: Some(old),
        new_image: None,
        sequence: "000000000000000000042".to_owned(),
        size_bytes: 99,
        view: StreamView::NewAndOldImages,
        created: Timestamp::from_millis(1_735_689_600_000),
        identity: Some(ServiceIdentity::Expiry),
    };
    Envelope::new("klayers", Change::new("layers", record))
}

fn check(pattern: &str, expected: bool) {
    let parsed = Pattern::parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    assert_eq!(parsed.matches(&envelope()), expected, "{pattern}");
}

/// A pattern on one field of the removed item.
fn of_item(field: &str) -> String {
    format!(r#"{{"detail":{{"record":{{"dynamodb":{{"OldImage":{{{field}}}}}}}}}}}"#)
}

#[test]
fn layer_rule_matches_removed_layers() {
    check(
        r#"{"source":["klayers"],"detail-type":["REMOVE"],"detail":{"pk_type":["lyr"]}}"#,
        true,
    );
    check(r#"{"detail":{"pk_type":["bld"]}}"#, false);
    check(r#"{"detail":{"sk_type":["lyrVrsn"]}}"#, true);
    check(r#"{"source":["layers"]}"#, false);
    check(
        r#"{"resources":["layers"],"id":["e7"],"version":["0"]}"#,
        true,
    );
    check(r#"{"time":[{"prefix":"2025-01-01T"}]}"#, true);
    let expired = r#"{"detail":{"record":{"userIdentity":{"type":["Service"]}}}}"#;
    check(expired, true);
}

#[test]
fn values_match_by_each_comparison() {
    for (field, expected) in [
        (r#""rgn":{"S":["eu-west-1"]}"#, true),
        (r#""rgn":{"S":["us-east-1"]}"#, false),
        (r#""rgn":{"S":["us-east-1","eu-west-1"]}"#, true),
        (r#""rgn":{"S":[{"prefix":"eu-"}]}"#, true),
        (r#""rgn":{"S":[{"prefix":"us-"}]}"#, false),
        (
            r#""rgn":{"S":[{"prefix":{"equals-ignore-case":"EU-"}}]}"#,
            true,
        ),
        (r#""rgn":{"S":[{"suffix":"-1"}]}"#, true),
        (
            r#""rgn":{"S":[{"suffix":{"equals-ignore-case":"WEST-1"}}]}"#,
            true,
        ),
        (r#""rgn":{"S":[{"suffix":"-2"}]}"#, false),
        (r#""rgn":{"S":[{"equals-ignore-case":"EU-West-1"}]}"#, true),
        (r#""rgn":{"S":[{"equals-ignore-case":"EU-West"}]}"#, false),
        (r#""rgn":{"S":[{"wildcard":"eu-*-1"}]}"#, true),
        (r#""rgn":{"S":[{"wildcard":"*west*"}]}"#, true),
        (r#""rgn":{"S":[{"wildcard":"eu*1*1"}]}"#, false),
        (r#""rgn":{"S":[{"wildcard":"eu-west-1\\*"}]}"#, false),
        (r#""rgn":{"S":[{"anything-but":"us-east-1"}]}"#, true),
        (
            r#""rgn":{"S":[{"anything-but":["us-east-1","eu-west-1"]}]}"#,
            false,
        ),
        (r#""rgn":{"S":[{"anything-but":{"prefix":"us-"}}]}"#, true),
        (
            r#""rgn":{"S":[{"anything-but":{"prefix":["us-","eu-"]}}]}"#,
            false,
        ),
        (r#""rgn":{"S":[{"anything-but":{"suffix":"-1"}}]}"#, false),
        (
            r#""rgn":{"S":[{"anything-but":{"equals-ignore-case":"EU-WEST-1"}}]}"#,
            false,
        ),
        (
            r#""rgn":{"S":[{"anything-but":{"wildcard":"eu-*"}}]}"#,
            false,
        ),
        (r#""size":{"N":[{"numeric":["=",512]}]}"#, true),
        (r#""size":{"N":[{"numeric":[">",511.5,"<=",512]}]}"#, true),
        (r#""size":{"N":[{"numeric":["<",512]}]}"#, false),
        (r#""size":{"N":[{"numeric":[">=",513]}]}"#, false),
        (r#""size":{"N":["512"]}"#, true),
        (r#""size":{"N":[512]}"#, true),
        (r#""size":{"N":[512.0]}"#, true),
        (r#""size":{"N":[{"anything-but":[512,513]}]}"#, false),
        // Text that looks like a number is not a number.
        (r#""pk":{"S":[{"numeric":[">",0]}]}"#, false),
        (r#""live":{"BOOL":[true]}"#, true),
        (r#""live":{"BOOL":[false]}"#, false),
        (r#""live":{"BOOL":["true"]}"#, false),
        // Lists match by their elements.
        (r#""tags":{"L":{"S":["Stable"]}}"#, true),
        (r#""tags":{"L":{"N":[{"numeric":["<",8]}]}}"#, true),
        (r#""tags":{"L":{"S":["Beta"]}}"#, false),
    ] {
        check(&of_item(field), expected);
    }
}

#[test]
fn exists_and_absent_values() {
    for (field, expected) in [
        (r#""rgn":{"S":[{"exists":true}]}"#, true),
        (r#""rgn":{"S":[{"exists":false}]}"#, false),
        (r#""other":{"S":[{"exists":true}]}"#, false),
        (r#""other":{"S":[{"exists":false}]}"#, true),
        // Objects do not count as values.
        (r#""rgn":[{"exists":true}]"#, false),
        // `anything-but` requires a present value.
        (r#""other":{"S":[{"anything-but":"x"}]}"#, false),
        (r#""other":{"S":["x",{"exists":false}]}"#, true),
        (r#""other":{"S":[null]}"#, false),
    ] {
        check(&of_item(field), expected);
    }
    check(
        r#"{"detail":{"record":{"dynamodb":{"NewImage":{"a":{"S":[{"exists":false}]}}}}}}"#,
        true,
    );
    check(
        r#"{"detail":{"record":{"dynamodb":{"NewImage":{"a":{"S":["x"]}}}}}}"#,
        false,
    );
}

#[test]
fn or_matches_if_one_pattern_matches() {
    check(
        r#"{"$or":[{"source":["x"]},{"detail-type":["REMOVE"]}]}"#,
        true,
    );
    check(
        r#"{"$or":[{"source":["x"]},{"detail-type":["INSERT"]}]}"#,
        false,
    );
    check(
        r#"{"source":["klayers"],"detail":{"$or":[{"pk_type":["x"]},{"sk_type":["lyrVrsn"]}]}}"#,
        true,
    );
    check(
        r#"{"source":["x"],"$or":[{"detail":{"pk_type":["lyr"]}},{"detail-type":["REMOVE"]}]}"#,
        false,
    );
    // One pattern has rules on the record, the other does not.
    check(
        r#"{"$or":[{"source":["x"]},{"detail":{"record":{"eventName":["INSERT"]}}}]}"#,
        false,
    );
    check(
        r#"{"$or":[{"source":["x"]},{"detail":{"record":{"eventName":["REMOVE"]}}}]}"#,
        true,
    );
}

#[test]
fn numbers_keep_all_digits() {
    let bound: Number = "12345678901234567890.123456788".parse().unwrap();
    let path = "detail.record.dynamodb.OldImage.precise.N";
    let above = Pattern::any().field(path, [Rule::above(bound)]).unwrap();
    assert!(above.matches(&envelope()));
    let below = Pattern::any().field(path, [Rule::at_most(bound)]).unwrap();
    assert!(!below.matches(&envelope()));
}

#[test]
fn built_patterns_equal_parsed_patterns() {
    let built = Pattern::any()
        .source("klayers")
        .kind(ChangeKind::Remove)
        .pk_type("lyr")
        .sk_type(Rule::anything_but(["lyrVrsn0"]))
        .field(
            "detail.record.dynamodb.OldImage.size.N",
            [Rule::between(1, 1024)],
        )
        .unwrap();
    let read = Pattern::parse(
        r#"{"source":["klayers"],"detail-type":["REMOVE"],"detail":{"pk_type":["lyr"],
            "sk_type":[{"anything-but":"lyrVrsn0"}],
            "record":{"dynamodb":{"OldImage":{"size":{"N":[{"numeric":[">=",1,"<=",1024]}]}}}}}}"#,
    );
    let read = read.unwrap();
    assert!(built.matches(&envelope()) && read.matches(&envelope()));
    // Objects are parsed in the order of their names.
    assert_eq!(sorted(built), sorted(read));
    let either = Pattern::any().one_of([Pattern::any().source("x"), Pattern::any().pk_type("lyr")]);
    assert!(either.matches(&envelope()));
    let neither = Pattern::any().one_of([Pattern::any().source("x")]);
    assert!(!neither.matches(&envelope()));
    for (rule, expected) in [
        (Rule::prefix("lyr"), true),
        (Rule::suffix("x"), false),
        (Rule::equals_ignore_case("LYR"), true),
        (Rule::exists(), true),
        (Rule::absent(), false),
        (Rule::null(), false),
        (Rule::is(true), false),
    ] {
        let pattern = Pattern::any().pk_type(rule.clone());
        assert_eq!(pattern.matches(&envelope()), expected, "{rule:?}");
    }
}

fn sorted(pattern: Pattern) -> Pattern {
    fn sort(node: &mut Node) {
        if let Node::Object(fields) = node {
            fields.fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            fields.fields.iter_mut().for_each(|(_, node)| sort(node));
        }
    }
    let mut pattern = pattern;
    sort(&mut pattern.root);
    pattern
}

#[test]
fn invalid_patterns_are_rejected_with_the_path() {
    for (pattern, expected) in [
        (
            "",
            "the pattern is not JSON: EOF while parsing a value at line 1 column 0",
        ),
        ("[]", "a pattern must be an object"),
        ("{}", "an object in a pattern must have fields"),
        (r#"{"source":"x"}"#, "values must be in a list: at=source"),
        (
            r#"{"source":[]}"#,
            "a list in a pattern must not be empty: at=source",
        ),
        (
            r#"{"source":[["x"]]}"#,
            "a list may contain values and comparisons only: at=source[0]",
        ),
        (
            r#"{"detail_type":["x"]}"#,
            "unknown envelope field: at=detail_type",
        ),
        (r#"{"detail":["x"]}"#, "unknown envelope field: at=detail"),
        (
            r#"{"detail":{"state":["x"]}}"#,
            "unknown envelope field: at=detail.state",
        ),
        (
            r#"{"detail":{"record":["x"]}}"#,
            "unknown envelope field: at=detail.record",
        ),
        (
            r#"{"detail":{}}"#,
            "an object in a pattern must have fields: at=detail",
        ),
        (
            r#"{"$or":[{"source":["x"]}]}"#,
            "$or needs a list of at least two patterns: at=$or",
        ),
        (
            r#"{"$or":[{"source":["x"]},7]}"#,
            "$or needs a list of objects: at=$or",
        ),
        (
            r#"{"$or":[{"source":["x"]},{"a":["x"]}]}"#,
            "unknown envelope field: at=a",
        ),
        (
            r#"{"source":[{"cidr":"10.0.0.0/8"}]}"#,
            "unknown comparison: comparison=cidr at=source[0]",
        ),
        (
            r#"{"source":["a",{"prefix":7}]}"#,
            "the comparison needs text: comparison=prefix at=source[1]",
        ),
        (
            r#"{"source":[{"prefix":"a","suffix":"b"}]}"#,
            "a comparison must have one field: at=source[0]",
        ),
        (
            r#"{"source":[{"exists":"yes"}]}"#,
            "exists must be true or false: at=source[0]",
        ),
        (
            r#"{"source":[{"anything-but":[]}]}"#,
            "a list in a pattern must not be empty: at=source[0].anything-but",
        ),
        (
            r#"{"source":[{"anything-but":{"numeric":["=",1]}}]}"#,
            "the comparison is not allowed here: comparison=numeric at=source[0].anything-but[0]",
        ),
        (
            r#"{"source":[{"wildcard":"a**"}]}"#,
            "a wildcard must not contain `**`: at=source[0]",
        ),
        (
            r#"{"source":[{"wildcard":{"equals-ignore-case":"a"}}]}"#,
            "the comparison is not allowed here: comparison=wildcard at=source[0]",
        ),
    ] {
        let error = Pattern::parse(pattern).unwrap_err();
        assert_eq!(error.to_string(), expected, "{pattern}");
    }
    for numeric in [
        "[]",
        "[\">\"]",
        "[\"!\",1]",
        "[\">\",\"1\"]",
        "[\"<\",1,\">\",0]",
        "[\">\",2,\"<\",1]",
        "7",
    ] {
        let pattern = format!(r#"{{"source":[{{"numeric":{numeric}}}]}}"#);
        let error = Pattern::parse(&pattern).unwrap_err().to_string();
        assert!(error.ends_with(": at=source[0]"), "{numeric}: {error}");
    }
    let error = Pattern::any()
        .field("detail.level", [Rule::exists()])
        .unwrap_err();
    assert_eq!(error.to_string(), "unknown envelope field: at=detail.level");
    let error = Pattern::any().field("detail.record.a", []).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a field needs at least one rule: at=detail.record.a"
    );
}
