//! Key conditions.

use super::{parse, syntax};
use crate::expr::parse::Parser;
use crate::expr::tests::value;
use crate::expr::{KeyCondition, KeyOp};

#[track_caller]
fn check(text: &str, expected: &[(&str, KeyOp)]) {
    let terms = expected
        .iter()
        .map(|(name, op)| ((*name).into(), op.clone()))
        .collect();
    assert_eq!(
        parse(text, Parser::key_condition),
        Ok(KeyCondition { terms }),
        "text={text}"
    );
}

#[track_caller]
fn rejected(text: &str, detail: &str) {
    super::rejected(
        text,
        Parser::key_condition,
        "KeyConditionExpression",
        detail,
    );
}

#[test]
fn conjunctions_parse() {
    let pk = || ("pk", KeyOp::Eq("v".into()));
    for (text, expected) in [
        ("pk = :v", vec![pk()]),
        ("(pk = :v)", vec![pk()]),
        (":v = pk", vec![pk()]),
        ("#name = :v", vec![("name", KeyOp::Eq("v".into()))]),
        (
            "pk = :v AND sk = :w",
            vec![pk(), ("sk", KeyOp::Eq("w".into()))],
        ),
        (
            "sk < :w and pk = :v",
            vec![("sk", KeyOp::Lt("w".into())), pk()],
        ),
        (
            "pk = :v AND sk <= :w",
            vec![pk(), ("sk", KeyOp::Le("w".into()))],
        ),
        (
            "pk = :v AND sk > :w",
            vec![pk(), ("sk", KeyOp::Gt("w".into()))],
        ),
        (
            "pk = :v AND sk >= :w",
            vec![pk(), ("sk", KeyOp::Ge("w".into()))],
        ),
        (
            "pk = :v AND :w < sk",
            vec![pk(), ("sk", KeyOp::Gt("w".into()))],
        ),
        (
            "pk = :v AND :w <= sk",
            vec![pk(), ("sk", KeyOp::Ge("w".into()))],
        ),
        (
            "pk = :v AND :w > sk",
            vec![pk(), ("sk", KeyOp::Lt("w".into()))],
        ),
        (
            "pk = :v AND :w >= sk",
            vec![pk(), ("sk", KeyOp::Le("w".into()))],
        ),
        ("pk = :v AND sk BETWEEN :one AND :two", {
            vec![pk(), ("sk", KeyOp::Between(1.into(), 2.into()))]
        }),
        (
            "pk = :v AND begins_with(sk, :w)",
            vec![pk(), ("sk", KeyOp::BeginsWith("w".into()))],
        ),
        (
            "(pk = :v) AND (sk = :w)",
            vec![pk(), ("sk", KeyOp::Eq("w".into()))],
        ),
        (
            "((pk = :v) AND (sk = :w))",
            vec![pk(), ("sk", KeyOp::Eq("w".into()))],
        ),
        ("pk = :v AND a = :w AND b = :x AND c > :N", {
            let eq = |value: &str| KeyOp::Eq(value.into());
            vec![
                pk(),
                ("a", eq("w")),
                ("b", eq("x")),
                ("c", KeyOp::Gt(5.into())),
            ]
        }),
        ("pk = :v AND (a = :w AND b = :x)", {
            vec![
                pk(),
                ("a", KeyOp::Eq("w".into())),
                ("b", KeyOp::Eq("x".into())),
            ]
        }),
        // The key schema determines the valid type.
        ("pk = :SS", vec![("pk", KeyOp::Eq(value(":SS")))]),
    ] {
        check(text, &expected);
    }
}

#[test]
fn general_condition_faults_are_reported() {
    rejected("", "The expression can not be empty;");
    rejected("pk = :v AND begins_with(sk", &syntax("<EOF>", "sk"));
    rejected("((pk = :v))", "The expression has redundant parentheses;");
    rejected("foo(pk)", "Invalid function name; function: foo");
    rejected(
        "name = :v",
        "Attribute name is a reserved keyword; reserved keyword: name",
    );
    rejected(
        "pk = :undefined",
        "An expression attribute value used in expression is not defined; \
         attribute value: :undefined",
    );
    rejected(
        "pk = :v AND begins_with(sk, :N)",
        "Incorrect operand type for operator or function; \
         operator or function: begins_with, operand type: N",
    );
    // The operator is reported as written.
    rejected(
        "pk = :v AND :BOOL < sk",
        "Incorrect operand type for operator or function; \
         operator or function: <, operand type: BOOL",
    );
    rejected(
        "pk = :v AND sk BETWEEN :two AND :one",
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; \
         lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
    );
}

#[test]
fn key_condition_faults_are_reported() {
    for (text, operator) in [
        ("pk = :v OR sk = :w", "OR"),
        ("NOT pk = :v", "NOT"),
        ("pk = :v AND NOT (sk = :w)", "NOT"),
        ("pk IN (:v)", "IN"),
        ("pk <> :v", "<>"),
        ("attribute_exists(pk)", "attribute_exists"),
        (
            "pk = :v AND attribute_not_exists(sk)",
            "attribute_not_exists",
        ),
        ("attribute_type(pk, :typeSS)", "attribute_type"),
        ("pk = :v AND contains(sk, :w)", "contains"),
        // Faults are reported in text order.
        ("attribute_exists(a.b) AND pk = :v", "attribute_exists"),
    ] {
        rejected(
            text,
            &format!("Invalid operator used in KeyConditionExpression: {operator}"),
        );
    }
    let condition = "Invalid condition in KeyConditionExpression:";
    for text in [
        "pk = :v AND size(sk) > :one",
        "pk = size(sk)",
        "pk = :v AND sk BETWEEN size(a) AND :one",
        "size(sk) BETWEEN :one AND :two",
        "pk = size(:S)",
    ] {
        rejected(
            text,
            "KeyConditionExpressions cannot contain nested operations",
        );
    }
    rejected(
        "pk = :v AND :v BETWEEN sk AND :w",
        &format!("{condition} BETWEEN operator must have the key attribute as its first operand"),
    );
    rejected(
        "pk = :v AND begins_with(:w, sk)",
        &format!(
            "{condition} begins_with operator must have the key attribute as its first operand"
        ),
    );
    for text in [
        "pk = sk",
        "pk = :v AND sk BETWEEN :v AND a",
        "begins_with(pk, sk)",
    ] {
        rejected(
            text,
            &format!("{condition} Multiple attribute names used in one condition"),
        );
    }
    for text in [
        "pk.a = :v",
        ":v = pk[0]",
        "pk = :v AND begins_with(sk.a, :v)",
        "a.b = a.c",
    ] {
        rejected(
            text,
            "KeyConditionExpressions cannot have conditions on nested attributes",
        );
    }
    for text in [":v = :w", "pk = :v AND :v < :w"] {
        rejected(text, &format!("{condition} No key attribute specified"));
    }
    for text in ["pk = :v AND pk = :w", "pk = :v AND sk > :v AND sk < :w"] {
        rejected(
            text,
            "KeyConditionExpressions must only contain one condition per key",
        );
    }
}
