//! Tests of matching key conditions with key schemas.

use super::{KeyCondition, KeyOp, KeyRange};
use crate::error::Error;
use crate::expr::tests::strings;
use crate::table::{KeyAttribute, KeyKind, KeySchema};
use crate::value::Value;

/// A schema with attributes `p…` and `s…`: `"SN"` means two attributes, a string and a number.
fn schema(partition: &str, sort: &str) -> KeySchema {
    let attributes = |sign: char, kinds: &str| {
        let attribute = |(n, kind): (usize, char)| {
            let kind = match kind {
                'S' => KeyKind::S,
                'N' => KeyKind::N,
                _ => KeyKind::B,
            };
            KeyAttribute::new(format!("{sign}{n}"), kind)
        };
        kinds.chars().enumerate().map(attribute).collect()
    };
    KeySchema {
        partition: attributes('p', partition),
        sort: attributes('s', sort),
    }
}

fn condition(terms: &[(&str, KeyOp)]) -> KeyCondition {
    let terms = terms
        .iter()
        .map(|(name, op)| ((*name).into(), op.clone()))
        .collect();
    KeyCondition { terms }
}

fn eq(value: impl Into<Value>) -> KeyOp {
    KeyOp::Eq(value.into())
}

fn lt(value: impl Into<Value>) -> KeyOp {
    KeyOp::Lt(value.into())
}

#[track_caller]
fn check(
    schema: &KeySchema,
    terms: &[(&str, KeyOp)],
    partition: &[&str],
    prefix: &[&str],
    range: Option<KeyOp>,
) {
    let values = |texts: &[&str]| texts.iter().map(|&text| Value::from(text)).collect();
    let expected = KeyRange {
        partition: values(partition),
        sort_prefix: values(prefix),
        range,
    };
    assert_eq!(
        condition(terms).resolve(schema),
        Ok(expected),
        "terms={terms:?}"
    );
}

#[track_caller]
fn rejected(schema: &KeySchema, terms: &[(&str, KeyOp)], message: &str) {
    let result = condition(terms).resolve(schema);
    assert_eq!(result, Err(Error::validation(message)), "terms={terms:?}");
}

#[test]
fn resolves_keys_of_one_and_two_attributes() {
    let hash = schema("S", "");
    check(&hash, &[("p0", eq("a"))], &["a"], &[], None);
    let both = schema("S", "S");
    check(&both, &[("p0", eq("a"))], &["a"], &[], None);
    check(
        &both,
        &[("p0", eq("a")), ("s0", eq("b"))],
        &["a"],
        &["b"],
        None,
    );
    check(
        &both,
        &[("s0", eq("b")), ("p0", eq("a"))],
        &["a"],
        &["b"],
        None,
    );
    for op in [
        lt("b"),
        KeyOp::Le("b".into()),
        KeyOp::Gt("b".into()),
        KeyOp::Ge("b".into()),
        KeyOp::Between("b".into(), "c".into()),
        KeyOp::BeginsWith("b".into()),
    ] {
        check(
            &both,
            &[("p0", eq("a")), ("s0", op.clone())],
            &["a"],
            &[],
            Some(op),
        );
    }
}

#[test]
fn resolves_keys_of_many_attributes() {
    let wide = schema("SSSS", "SSSS");
    let partition = || {
        ["p3", "p1", "p0", "p2"]
            .map(|name| (name, eq(name)))
            .to_vec()
    };
    let with = |sort: &[(&'static str, KeyOp)]| {
        let mut terms = sort.to_vec();
        terms.extend(partition());
        terms
    };
    let parts = &["p0", "p1", "p2", "p3"];
    check(&wide, &with(&[]), parts, &[], None);
    check(&wide, &with(&[("s0", eq("a"))]), parts, &["a"], None);
    check(&wide, &with(&[("s0", lt("a"))]), parts, &[], Some(lt("a")));
    check(
        &wide,
        &with(&[("s1", lt("b")), ("s0", eq("a"))]),
        parts,
        &["a"],
        Some(lt("b")),
    );
    check(
        &wide,
        &with(&[
            ("s3", lt("d")),
            ("s1", eq("b")),
            ("s2", eq("c")),
            ("s0", eq("a")),
        ]),
        parts,
        &["a", "b", "c"],
        Some(lt("d")),
    );
    check(
        &wide,
        &with(&[
            ("s0", eq("a")),
            ("s1", eq("b")),
            ("s2", eq("c")),
            ("s3", eq("d")),
        ]),
        parts,
        &["a", "b", "c", "d"],
        None,
    );

    let unequal = |names: &str| {
        format!("HASH key attributes {names} must have equality conditions specified in the query")
    };
    rejected(&wide, &partition()[1..], &unequal("p3"));
    rejected(
        &wide,
        &[("p1", eq("x")), ("p2", lt("x"))],
        &unequal("p0, p2, p3"),
    );
    rejected(&schema("S", "SS"), &[("s0", eq("x"))], &unequal("p0"));
    rejected(
        &schema("SS", ""),
        &[("p0", lt("x")), ("p1", eq("x"))],
        &unequal("p0"),
    );

    let gap = |names: &str, last: &str| {
        format!(
            "RANGE key attributes {names} must have equality conditions specified in the query \
             because a condition is present on key attribute {last}"
        )
    };
    rejected(&wide, &with(&[("s1", eq("b"))]), &gap("s0", "s1"));
    rejected(
        &wide,
        &with(&[("s3", lt("d")), ("s1", eq("b"))]),
        &gap("s0, s2", "s3"),
    );
    rejected(
        &wide,
        &with(&[("s0", lt("a")), ("s1", eq("b"))]),
        &gap("s0", "s1"),
    );
    rejected(
        &wide,
        &with(&[("s0", eq("a")), ("s1", lt("b")), ("s2", lt("c"))]),
        &gap("s1", "s2"),
    );
    rejected(
        &wide,
        &with(&[("s0", eq("a")), ("other", eq("b"))]),
        "Query condition missed key schema element: s1",
    );
}

#[test]
fn conditions_that_do_not_match_the_key_are_rejected() {
    let hash = schema("S", "");
    let both = schema("S", "N");
    let missed = |name: &str| format!("Query condition missed key schema element: {name}");
    let count = |given: usize, defined: usize| {
        format!(
            "The number of query conditions ({given}) exceeds the number of key attributes \
             defined in the schema ({defined})"
        )
    };
    rejected(&hash, &[("x", eq("a"))], &missed("p0"));
    rejected(&hash, &[], &missed("p0"));
    rejected(
        &hash,
        &[("p0", lt("a"))],
        "Query key condition not supported",
    );
    rejected(&hash, &[("p0", eq("a")), ("x", eq("b"))], &count(2, 1));
    rejected(&both, &[("s0", eq(1))], &missed("p0"));
    rejected(&both, &[("s0", eq(1)), ("x", eq(1))], &missed("p0"));
    rejected(
        &both,
        &[("p0", lt("a")), ("s0", eq(1))],
        "Query key condition not supported",
    );
    rejected(&both, &[("p0", eq("a")), ("x", eq(1))], &missed("s0"));
    rejected(
        &both,
        &[("p0", eq("a")), ("s0", eq(1)), ("x", eq(1))],
        &count(3, 2),
    );
    rejected(
        &both,
        &[("p0", eq("a")), ("p0", eq("b"))],
        "Invalid KeyConditionExpression: \
         KeyConditionExpressions must only contain one condition per key",
    );
}

#[test]
fn values_that_do_not_match_the_key_are_rejected() {
    let mismatch = "One or more parameter values were invalid: \
                    Condition parameter type does not match schema type";
    let both = schema("S", "N");
    rejected(&both, &[("p0", eq(1))], mismatch);
    rejected(&both, &[("p0", eq(strings(["a"])))], mismatch);
    rejected(&both, &[("p0", eq("a")), ("s0", eq("1"))], mismatch);
    rejected(&both, &[("p0", eq("a")), ("s0", lt("1"))], mismatch);
    rejected(
        &both,
        &[("p0", eq("a")), ("s0", KeyOp::BeginsWith("1".into()))],
        mismatch,
    );
    rejected(
        &schema("S", "B"),
        &[
            ("p0", eq("a")),
            ("s0", KeyOp::Between("1".into(), "2".into())),
        ],
        mismatch,
    );

    let empty = |kind: &str, name: &str| {
        format!(
            "One or more parameter values are not valid. The AttributeValue for a key attribute \
             cannot contain an empty {kind} value. Key: {name}"
        )
    };
    rejected(&both, &[("p0", eq(""))], &empty("string", "p0"));
    let bytes = schema("B", "S");
    rejected(
        &bytes,
        &[("p0", eq(Vec::<u8>::new()))],
        &empty("binary", "p0"),
    );
    rejected(
        &bytes,
        &[("p0", eq(vec![1])), ("s0", lt(""))],
        &empty("string", "s0"),
    );
    rejected(
        &bytes,
        &[
            ("p0", eq(vec![1])),
            ("s0", KeyOp::Between("".into(), "a".into())),
        ],
        &empty("string", "s0"),
    );
    // Types are checked before emptiness.
    rejected(&both, &[("p0", eq("")), ("s0", eq("x"))], mismatch);
}

#[test]
fn length_of_key_values_is_limited() {
    const PARTITION: &str = "One or more parameter values were invalid: \
                             Size of hashkey has exceeded the maximum size limit of2048 bytes";
    const SORT: &str = "One or more parameter values were invalid: \
                        Aggregated size of all range keys has exceeded the size limit of 1024 bytes";
    let text = |bytes: usize| Value::from("x".repeat(bytes));
    let fits = |schema: &KeySchema, terms: &[(&str, KeyOp)]| {
        assert!(condition(terms).resolve(schema).is_ok());
    };
    let both = schema("S", "S");
    fits(&both, &[("p0", eq(text(2048)))]);
    rejected(&both, &[("p0", eq(text(2049)))], PARTITION);
    rejected(&both, &[("p0", eq("é".repeat(1025)))], PARTITION);
    let ops: [fn(Value) -> KeyOp; 8] = [
        KeyOp::Eq,
        KeyOp::Lt,
        KeyOp::Le,
        KeyOp::Gt,
        KeyOp::Ge,
        KeyOp::BeginsWith,
        |value| KeyOp::Between("a".into(), value),
        |value| KeyOp::Between(value, "y".into()),
    ];
    for op in ops {
        fits(&both, &[("p0", eq("a")), ("s0", op(text(1024)))]);
        rejected(&both, &[("p0", eq("a")), ("s0", op(text(1025)))], SORT);
    }
    let bytes = |count: usize| eq(vec![7u8; count]);
    let binary = schema("B", "B");
    fits(&binary, &[("p0", bytes(2048)), ("s0", bytes(1024))]);
    rejected(&binary, &[("p0", bytes(2049)), ("s0", bytes(1))], PARTITION);
    rejected(&binary, &[("p0", bytes(1)), ("s0", bytes(1025))], SORT);
    // The attributes of a key count together, the bounds of a range separately, and numbers not at all.
    let many = schema("SS", "SNS");
    let query = |p1: usize, high: usize| {
        let between = KeyOp::Between(text(high), text(high));
        [
            ("p0", eq(text(1000))),
            ("p1", eq(text(p1))),
            ("s0", eq(text(1000))),
            ("s1", eq(1)),
            ("s2", between),
        ]
    };
    fits(&many, &query(1048, 24));
    rejected(&many, &query(1049, 24), PARTITION);
    rejected(&many, &query(1048, 25), SORT);
}
