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
fn refused(text: &str, detail: &str) {
    super::refused(
        text,
        Parser::key_condition,
        "KeyConditionExpression",
        detail,
    );
}

#[test]
fn conjunctions() {
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
        // The key's type settles whether a value suits it.
        ("pk = :SS", vec![("pk", KeyOp::Eq(value(":SS")))]),
    ] {
        check(text, &expected);
    }
}

#[test]
fn faults_of_conditions_in_general() {
    refused("", "The expression can not be empty;");
    refused("pk = :v AND begins_with(sk", &syntax("<EOF>", "sk"));
    refused("((pk = :v))", "The expression has redundant parentheses;");
    refused("foo(pk)", "Invalid function name; function: foo");
    refused(
        "name = :v",
        "Attribute name is a reserved keyword; reserved keyword: name",
    );
    refused(
        "pk = :undefined",
        "An expression attribute value used in expression is not defined; \
         attribute value: :undefined",
    );
    refused(
        "pk = :v AND begins_with(sk, :N)",
        "Incorrect operand type for operator or function; \
         operator or function: begins_with, operand type: N",
    );
    // The operator is told as it is written.
    refused(
        "pk = :v AND :BOOL < sk",
        "Incorrect operand type for operator or function; \
         operator or function: <, operand type: BOOL",
    );
    refused(
        "pk = :v AND sk BETWEEN :two AND :one",
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; \
         lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
    );
}

#[test]
fn faults_of_key_conditions() {
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
        // In the order of the text.
        ("attribute_exists(a.b) AND pk = :v", "attribute_exists"),
    ] {
        refused(
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
        refused(
            text,
            "KeyConditionExpressions cannot contain nested operations",
        );
    }
    refused(
        "pk = :v AND :v BETWEEN sk AND :w",
        &format!("{condition} BETWEEN operator must have the key attribute as its first operand"),
    );
    refused(
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
        refused(
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
        refused(
            text,
            "KeyConditionExpressions cannot have conditions on nested attributes",
        );
    }
    for text in [":v = :w", "pk = :v AND :v < :w"] {
        refused(text, &format!("{condition} No key attribute specified"));
    }
    for text in ["pk = :v AND pk = :w", "pk = :v AND sk > :v AND sk < :w"] {
        refused(
            text,
            "KeyConditionExpressions must only contain one condition per key",
        );
    }
}
