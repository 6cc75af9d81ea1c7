//! What patterns match, and which are refused.

use floe_store::op::{ChangeKind, ChangeRecord, ServiceIdentity};
use floe_store::table::StreamView;
use floe_store::{Item, Number, Timestamp, Value};

use super::*;
use crate::changes::Change;

/// The removal of a layer that has expired.
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

/// A pattern of one field of the item that was removed.
fn of_item(field: &str) -> String {
    format!(r#"{{"detail":{{"record":{{"dynamodb":{{"OldImage":{{{field}}}}}}}}}}}"#)
}

#[test]
fn the_rule_of_the_seed_matches_removed_layers() {
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
        // A text that looks like a number is none.
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
fn what_is_there_and_what_is_not() {
    for (field, expected) in [
        (r#""rgn":{"S":[{"exists":true}]}"#, true),
        (r#""rgn":{"S":[{"exists":false}]}"#, false),
        (r#""other":{"S":[{"exists":true}]}"#, false),
        (r#""other":{"S":[{"exists":false}]}"#, true),
        // Only a value is there: an object is none.
        (r#""rgn":[{"exists":true}]"#, false),
        // What is anything but something is there.
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
fn one_of_several_patterns_is_enough() {
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
    // One says something of the record, the other does not.
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
fn numbers_keep_all_their_digits() {
    let bound: Number = "12345678901234567890.123456788".parse().unwrap();
    let path = "detail.record.dynamodb.OldImage.precise.N";
    let above = Pattern::any().field(path, [Rule::above(bound)]).unwrap();
    assert!(above.matches(&envelope()));
    let below = Pattern::any().field(path, [Rule::at_most(bound)]).unwrap();
    assert!(!below.matches(&envelope()));
}

#[test]
fn built_patterns_are_those_that_are_read() {
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
    // Objects are read in the order of their names.
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
fn a_pattern_of_another_form_is_refused_with_the_place() {
    for (pattern, expected) in [
        (
            "",
            "a pattern is JSON: EOF while parsing a value at line 1 column 0",
        ),
        ("[]", "a pattern is an object"),
        ("{}", "an object in a pattern has fields"),
        (r#"{"source":"x"}"#, "a value stands in a list: at=source"),
        (
            r#"{"source":[]}"#,
            "a list in a pattern has values: at=source",
        ),
        (
            r#"{"source":[["x"]]}"#,
            "a list holds values and comparisons: at=source[0]",
        ),
        (
            r#"{"detail_type":["x"]}"#,
            "no envelope has such a field: at=detail_type",
        ),
        (
            r#"{"detail":["x"]}"#,
            "no envelope has such a field: at=detail",
        ),
        (
            r#"{"detail":{"state":["x"]}}"#,
            "no envelope has such a field: at=detail.state",
        ),
        (
            r#"{"detail":{"record":["x"]}}"#,
            "no envelope has such a field: at=detail.record",
        ),
        (
            r#"{"detail":{}}"#,
            "an object in a pattern has fields: at=detail",
        ),
        (
            r#"{"$or":[{"source":["x"]}]}"#,
            "$or is a list of two patterns or more: at=$or",
        ),
        (
            r#"{"$or":[{"source":["x"]},7]}"#,
            "$or is a list of objects: at=$or",
        ),
        (
            r#"{"$or":[{"source":["x"]},{"a":["x"]}]}"#,
            "no envelope has such a field: at=a",
        ),
        (
            r#"{"source":[{"cidr":"10.0.0.0/8"}]}"#,
            "no such comparison: comparison=cidr at=source[0]",
        ),
        (
            r#"{"source":["a",{"prefix":7}]}"#,
            "it compares with text: comparison=prefix at=source[1]",
        ),
        (
            r#"{"source":[{"prefix":"a","suffix":"b"}]}"#,
            "a comparison has one field: at=source[0]",
        ),
        (
            r#"{"source":[{"exists":"yes"}]}"#,
            "exists is true or false: at=source[0]",
        ),
        (
            r#"{"source":[{"anything-but":[]}]}"#,
            "a list in a pattern has values: at=source[0].anything-but",
        ),
        (
            r#"{"source":[{"anything-but":{"numeric":["=",1]}}]}"#,
            "it cannot stand here: comparison=numeric at=source[0].anything-but[0]",
        ),
        (
            r#"{"source":[{"wildcard":"a**"}]}"#,
            "a wildcard has no `*` beside another: at=source[0]",
        ),
        (
            r#"{"source":[{"wildcard":{"equals-ignore-case":"a"}}]}"#,
            "it cannot stand here: comparison=wildcard at=source[0]",
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
    assert_eq!(
        error.to_string(),
        "no envelope has such a field: at=detail.level"
    );
    let error = Pattern::any().field("detail.record.a", []).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a field needs at least one rule: at=detail.record.a"
    );
}
