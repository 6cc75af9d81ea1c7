//! Texts with the deepest possible nesting: all are parsed or rejected without overflowing the stack.

use super::{parse, syntax};
use crate::expr::condition::Condition;
use crate::expr::parse::Parser;
use crate::limits;

const TOO_MANY: &str = "The expression contains too many operators; operator count: 301";

#[track_caller]
fn rejected(text: &str, detail: &str) {
    assert!(
        text.len() <= limits::EXPRESSION_BYTES_MAX,
        "length={}",
        text.len()
    );
    super::rejected(text, Parser::condition, "ConditionExpression", detail);
}

#[test]
fn operators_are_accepted_up_to_the_limit() {
    // Three hundred operators: 150 comparisons, 149 logical operators, and one negation.
    let chain = |comparisons: usize, joint: &str| {
        let text = vec!["a=:v"; comparisons].join(joint);
        format!("NOT {text}")
    };
    for joint in [" AND ", " OR "] {
        let condition = parse(&chain(150, joint), Parser::condition).unwrap();
        assert_eq!(condition.paths().count(), 150);
        assert_eq!(condition.check(), Ok(()));
        rejected(&format!("NOT {}", chain(150, joint)), TOO_MANY);
        rejected(&chain(151, joint), TOO_MANY);
    }
    let sizes = |comparisons: usize| vec!["size(a)=size(b)"; comparisons].join(" OR ");
    assert!(parse(&sizes(75), Parser::condition).is_ok());
    rejected(&sizes(76), TOO_MANY);
    let unknown = format!("a<{}b{}", "f(".repeat(1_355), ")".repeat(1_355));
    rejected(&unknown, "Invalid function name; function: f");
}

#[test]
fn sums_and_functions_in_updates_count_as_operators() {
    let update = |sums: usize| {
        let sums: Vec<_> = (0..sums).map(|n| format!("a{n}=b+c")).collect();
        format!("SET {}", sums.join(","))
    };
    assert!(parse(&update(300), Parser::update).is_ok());
    let rejected = |text: &str| {
        super::rejected(text, Parser::update, "UpdateExpression", TOO_MANY);
    };
    rejected(&update(301));
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
fn deeply_nested_groups_do_not_overflow_the_stack() {
    let deep = |open: &str, inner: &str, close: &str, levels: usize| {
        format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
    };
    // Nested on the right and on the left, as deep as the number of operators allows.
    for (open, close) in [("a=b OR (", ")"), ("NOT (", ")")] {
        let levels = if open.starts_with('N') { 299 } else { 149 };
        let condition = parse(&deep(open, "a=b", close, levels), Parser::condition).unwrap();
        assert_eq!(condition.check(), Ok(()));
        rejected(&deep(open, "a=b", close, levels + 1), TOO_MANY);
    }
    let left = deep("(", "a=b", " AND a=b)", 149);
    let mut expected = Condition::eq(crate::expr::tests::path("a"), crate::expr::tests::path("b"));
    let leaf = expected.clone();
    for _ in 0..149 {
        expected = expected.and(leaf.clone());
    }
    assert_eq!(parse(&left, Parser::condition), Ok(expected));

    rejected(&deep("NOT ", "a=b", "", 1000), TOO_MANY);
    rejected(
        &deep("(", "a=b", ")", 2000),
        "The expression has redundant parentheses;",
    );
    rejected(
        &deep("(", "a", ")", 2000),
        "The expression has redundant parentheses;",
    );
    rejected(&"(".repeat(4096), &syntax("<EOF>", "("));
    rejected(&deep("(", "a=b", "", 4000), &syntax("<EOF>", "b"));
    rejected(&deep("NOT(", "", "", 1024), &syntax("<EOF>", "("));
    rejected(&deep("size(", "a", ")", 600), TOO_MANY);
    rejected(
        &format!("{} > a", deep("f(", "a", ")", 250)),
        "Invalid function name; function: f",
    );
}

#[test]
fn long_paths_and_lists_are_limited() {
    rejected(
        &format!("a{} = b", ".a".repeat(2000)),
        "The document path has too many nesting levels; nesting levels: 2001",
    );
    rejected(
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
