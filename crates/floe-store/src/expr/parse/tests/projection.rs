//! Projections.

use super::{parse, syntax};
use crate::expr::parse::Parser;
use crate::expr::tests::path;
use crate::expr::{Path, Paths};

#[track_caller]
fn check(text: &str, expected: Vec<Path>) {
    assert_eq!(
        parse(text, Parser::projection),
        Ok(Paths(expected)),
        "text={text}"
    );
}

#[track_caller]
fn rejected(text: &str, detail: &str) {
    super::rejected(text, Parser::projection, "ProjectionExpression", detail);
}

#[test]
fn comma_separated_paths_parse() {
    check("a", vec![path("a")]);
    check(
        " a , b.c,d[0][1].e ",
        vec![path("a"), path("b.c"), path("d[0][1].e")],
    );
    check("#name, #dot", vec!["name".into(), "a.b".into()]);
    check(
        "a[1], a[0], a[10].b",
        vec![path("a[1]"), path("a[0]"), path("a[10].b")],
    );
    check("a.b, a.c", vec![path("a.b"), path("a.c")]);
    check("andx, bx", vec![path("andx"), path("bx")]);
}

#[test]
fn projection_faults_are_reported() {
    for (text, token, near) in [
        (" ", "<EOF>", " "),
        ("a,", "<EOF>", ","),
        ("a b", "b", "a b"),
        (",a", ",", ",a"),
        ("a,,b", ",", ",,b"),
        (":v", ":v", ":v"),
        ("(a)", "(", "(a"),
        ("size(a)", "(", "size(a"),
        ("a = b", "=", "a = b"),
        ("a[b]", "b", "[b]"),
        ("a.", "<EOF>", "."),
    ] {
        rejected(text, &syntax(token, near));
    }
    rejected("", "The expression can not be empty;");
    rejected(
        "a, status, #undefined",
        "Attribute name is a reserved keyword; reserved keyword: status",
    );
    rejected(
        "a, AND",
        "Attribute name is a reserved keyword; reserved keyword: AND",
    );
    rejected(
        "a, #undefined, a",
        "An expression attribute name used in the document path is not defined; \
         attribute name: #undefined",
    );
    rejected(
        &format!("a{}", "[0]".repeat(32)),
        "The document path has too many nesting levels; nesting levels: 33",
    );
    for (text, how, one, two) in [
        ("a, a", "overlap", "[a]", "[a]"),
        ("a, b, a.b", "overlap", "[a]", "[a, b]"),
        ("a.b[0].c, a.b", "overlap", "[a, b, [0], c]", "[a, b]"),
        ("a.b, a[0]", "conflict", "[a, b]", "[a, [0]]"),
        ("a.b, a[0], c, #c", "overlap", "[c]", "[c]"),
    ] {
        rejected(
            text,
            &format!(
                "Two document paths {how} with each other; must remove or rewrite one of these \
                 paths; path one: {one}, path two: {two}"
            ),
        );
    }
}
