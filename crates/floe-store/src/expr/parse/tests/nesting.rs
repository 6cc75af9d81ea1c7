//! Texts that nest as deep as their length allows: each gets an answer, none exhausts the stack.

use super::{parse, syntax};
use crate::expr::condition::Condition;
use crate::expr::parse::Parser;
use crate::limits;

const TOO_MANY: &str = "The expression contains too many operators; operator count: 301";

#[track_caller]
fn refused(text: &str, detail: &str) {
    assert!(
        text.len() <= limits::EXPRESSION_BYTES_MAX,
        "length={}",
        text.len()
    );
    super::refused(text, Parser::condition, "ConditionExpression", detail);
}

#[test]
fn operators_up_to_the_most() {
    // Three hundred operators: 150 comparisons, 149 that join them, and one negation.
    let chain = |comparisons: usize, joint: &str| {
        let text = vec!["a=:v"; comparisons].join(joint);
        format!("NOT {text}")
    };
    for joint in [" AND ", " OR "] {
        let condition = parse(&chain(150, joint), Parser::condition).unwrap();
        assert_eq!(condition.paths().count(), 150);
        assert_eq!(condition.check(), Ok(()));
        refused(&format!("NOT {}", chain(150, joint)), TOO_MANY);
        refused(&chain(151, joint), TOO_MANY);
    }
    let sizes = |comparisons: usize| vec!["size(a)=size(b)"; comparisons].join(" OR ");
    assert!(parse(&sizes(75), Parser::condition).is_ok());
    refused(&sizes(76), TOO_MANY);
    let unknown = format!("a<{}b{}", "f(".repeat(1_355), ")".repeat(1_355));
    refused(&unknown, "Invalid function name; function: f");
}

#[test]
fn sums_and_functions_of_updates_count() {
    let update = |sums: usize| {
        let sums: Vec<_> = (0..sums).map(|n| format!("a{n}=b+c")).collect();
        format!("SET {}", sums.join(","))
    };
    assert!(parse(&update(300), Parser::update).is_ok());
    let refused = |text: &str| {
        super::refused(text, Parser::update, "UpdateExpression", TOO_MANY);
    };
    refused(&update(301));
    let nested = format!(
        "SET a={}:v{}",
        "if_not_exists(b,".repeat(240),
        ")".repeat(240)
    );
    assert!(nested.len() <= limits::EXPRESSION_BYTES_MAX);
    let update = parse(&nested, Parser::update).unwrap();
    assert_eq!(update.read_paths().count(), 240);
    assert_eq!(update.check(), Ok(()));
}

#[test]
fn deep_groups() {
    let deep = |open: &str, inner: &str, close: &str, levels: usize| {
        format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
    };
    // Right and left, as deep as the number of operators allows.
    for (open, close) in [("a=b OR (", ")"), ("NOT (", ")")] {
        let levels = if open.starts_with('N') { 299 } else { 149 };
        let condition = parse(&deep(open, "a=b", close, levels), Parser::condition).unwrap();
        assert_eq!(condition.check(), Ok(()));
        refused(&deep(open, "a=b", close, levels + 1), TOO_MANY);
    }
    let left = deep("(", "a=b", " AND a=b)", 149);
    let mut expected = Condition::eq(crate::expr::tests::path("a"), crate::expr::tests::path("b"));
    let leaf = expected.clone();
    for _ in 0..149 {
        expected = expected.and(leaf.clone());
    }
    assert_eq!(parse(&left, Parser::condition), Ok(expected));

    refused(&deep("NOT ", "a=b", "", 1000), TOO_MANY);
    refused(
        &deep("(", "a=b", ")", 2000),
        "The expression has redundant parentheses;",
    );
    refused(
        &deep("(", "a", ")", 2000),
        "The expression has redundant parentheses;",
    );
    refused(&"(".repeat(4096), &syntax("<EOF>", "("));
    refused(&deep("(", "a=b", "", 4000), &syntax("<EOF>", "b"));
    refused(&deep("NOT(", "", "", 1024), &syntax("<EOF>", "("));
    refused(&deep("size(", "a", ")", 600), TOO_MANY);
    refused(
        &format!("{} > a", deep("f(", "a", ")", 250)),
        "Invalid function name; function: f",
    );
}

#[test]
fn long_paths_and_lists() {
    refused(
        &format!("a{} = b", ".a".repeat(2000)),
        "The document path has too many nesting levels; nesting levels: 2001",
    );
    refused(
        &format!("a IN (b{})", ",b".repeat(2000)),
        "The IN operator is provided with too many operands; number of operands: 2001",
    );
    let paths: Vec<_> = (0..800).map(|n| format!("a{n}")).collect();
    let text = format!("REMOVE {}", paths.join(","));
    assert_eq!(parse(&text, Parser::update).unwrap().remove.len(), 800);
    assert_eq!(
        parse(&paths.join(","), Parser::projection).unwrap().0.len(),
        800
    );
}
