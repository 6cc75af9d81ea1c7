//! Conditions and filters that are well-formed but invalid.

use super::parse;
use crate::expr::condition::{Condition, Operand};
use crate::expr::parse::Parser;
use crate::expr::tests::path;
use crate::value::{Value, ValueType};

#[track_caller]
pub(super) fn check(text: &str, expected: &Condition) {
    match parse(text, Parser::condition) {
        Ok(condition) => assert_eq!(condition, *expected, "text={text}"),
        Err(error) => panic!("the text should parse: text={text} error={error}"),
    }
    assert_eq!(
        parse(text, Parser::filter),
        Ok(expected.clone()),
        "text={text}"
    );
}

#[track_caller]
pub(super) fn rejected(text: &str, detail: &str) {
    super::rejected(text, Parser::condition, "ConditionExpression", detail);
    super::rejected(text, Parser::filter, "FilterExpression", detail);
}

pub(super) fn size(text: &str) -> Operand {
    Operand::Size(path(text))
}

/// `name = :v`
pub(super) fn is(name: &str) -> Condition {
    Condition::eq(path(name), "v")
}

#[test]
fn unknown_functions_are_rejected() {
    for (text, function) in [
        ("foo(a)", "foo"),
        ("foo(a, :v) = :w", "foo"),
        ("Attribute_Exists(a)", "Attribute_Exists"),
        ("SIZE(a) > :one", "SIZE"),
        ("a = foo(b)", "foo"),
        ("contains(a, foo(bar(b)))", "bar"),
        // Reported before misplaced functions, reserved words and undefined placeholders.
        ("size(a) AND foo(name, #undefined)", "foo"),
    ] {
        rejected(
            text,
            &format!("Invalid function name; function: {function}"),
        );
    }
    for function in ["if_not_exists", "list_append"] {
        let detail =
            format!("The function is not allowed in a condition expression; function: {function}");
        rejected(&format!("{function}(a, :v) = :w"), &detail);
    }
}

#[test]
fn misplaced_functions_are_rejected() {
    for (text, function) in [
        ("size(a)", "size"),
        ("(size(a))", "size"),
        ("NOT size(a)", "size"),
        ("a = :v AND size(a)", "size"),
        ("size(a) OR a = :v", "size"),
        ("attribute_exists(a) = :v", "attribute_exists"),
        (":v = attribute_not_exists(a)", "attribute_not_exists"),
        ("a BETWEEN b AND attribute_exists(c)", "attribute_exists"),
        ("a IN (b, contains(c, :v))", "contains"),
        ("size(begins_with(a, :v)) > :one", "begins_with"),
        ("contains(attribute_type(a, :S), :v)", "attribute_type"),
        // Reported before reserved words, undefined placeholders and wrong numbers of operands.
        ("attribute_exists(name, #undefined) > b", "attribute_exists"),
    ] {
        let detail = format!(
            "The function is not allowed to be used this way in an expression; function: {function}"
        );
        rejected(text, &detail);
    }
}

#[test]
fn reserved_words_are_rejected() {
    for (text, word) in [
        ("name = :v", "name"),
        ("nAmE = :v", "nAmE"),
        ("a.data = :v", "data"),
        ("a[0].Status = :v", "Status"),
        ("size(a) > count", "count"),
        ("attribute_exists(views, #undefined)", "views"),
        (":undefined < abOrT", "abOrT"),
        ("a = :v AND set = :v", "set"),
        ("size = :v", "size"),
    ] {
        let detail = format!("Attribute name is a reserved keyword; reserved keyword: {word}");
        rejected(text, &detail);
    }
}

#[test]
fn list_indexes_and_path_depth_are_limited() {
    let range =
        |digits: &str| format!("List index is not within the allowable range; index: [{digits}]");
    rejected("a[2147483648] = :v", &range("2147483648"));
    let digits = "9".repeat(40);
    rejected(&format!("a[{digits}] = :v"), &range(&digits));

    let deep = |steps: usize| format!("a{} = :v", ".a".repeat(steps - 1));
    check(&deep(32), &Condition::eq(path(&deep(32)[..63]), "v"));
    rejected(
        &deep(33),
        "The document path has too many nesting levels; nesting levels: 33",
    );
}

#[test]
fn undefined_placeholders_are_rejected() {
    for (text, name) in [
        ("#x = :v", "#x"),
        ("a.#x = :v", "#x"),
        ("#a.#b.#cc = :v", "#cc"),
        ("attribute_exists(#x.b, :undefined) AND a = a", "#x"),
        ("begins_with(a.#x)", "#x"),
        ("(#x BETWEEN :undefined AND :w) AND (a IN (:v))", "#x"),
        ("#A = :v", "#A"),
    ] {
        let detail = format!(
            "An expression attribute name used in the document path is not defined; \
             attribute name: {name}"
        );
        rejected(text, &detail);
    }
    for (text, placeholder) in [
        ("a = :undefined", ":undefined"),
        (":u < :b", ":u"),
        ("begins_with(:hello, #x, #y)", ":hello"),
        ("a IN (:v, :u)", ":u"),
        ("a BETWEEN :v AND :u", ":u"),
        ("attribute_type(a, :t)", ":t"),
        ("a = :V", ":V"),
    ] {
        let detail = format!(
            "An expression attribute value used in expression is not defined; \
             attribute value: {placeholder}"
        );
        rejected(text, &detail);
    }
}

#[test]
fn wrong_numbers_of_operands_are_rejected() {
    for (text, function, count) in [
        ("attribute_exists(a, b)", "attribute_exists", 2),
        ("attribute_not_exists(a, :v, b)", "attribute_not_exists", 3),
        ("attribute_type(a)", "attribute_type", 1),
        ("begins_with(a)", "begins_with", 1),
        ("begins_with(a, size(b), c)", "begins_with", 3),
        ("contains(a)", "contains", 1),
        ("contains(a, b, c)", "contains", 3),
        ("size(a, b) > :one", "size", 2),
        // Reported before equal operands and wrong types.
        ("contains(a, a, a)", "contains", 3),
        ("begins_with(:N)", "begins_with", 1),
    ] {
        let detail = format!(
            "Incorrect number of operands for operator or function; \
             operator or function: {function}, number of operands: {count}"
        );
        rejected(text, &detail);
    }
}

#[test]
fn operands_that_must_be_paths_are_checked() {
    for (text, function) in [
        ("attribute_exists(:v)", "attribute_exists"),
        ("attribute_not_exists(:v) AND a = a", "attribute_not_exists"),
        ("attribute_exists(size(a))", "attribute_exists"),
        ("attribute_not_exists(size(:S))", "attribute_not_exists"),
    ] {
        let detail = format!(
            "Operator or function requires a document path; operator or function: {function}"
        );
        rejected(text, &detail);
    }
}

#[test]
fn equal_operands_are_rejected() {
    for (text, operator, first) in [
        ("a = a", "=", "[a]"),
        ("#a <> a", "<>", "[a]"),
        ("a > #a", ">", "[a]"),
        ("a < a", "<", "[a]"),
        ("a <= a AND #undefined = :v", "<=", "[a]"),
        ("((a = a) OR (b = b))", "=", "[a]"),
        ("a BETWEEN b AND a", "BETWEEN", "[a]"),
        ("a BETWEEN a AND b", "BETWEEN", "[a]"),
        ("a IN (:v, a)", "IN", "[a]"),
        (
            "contains(a.b[1].c, a.b[1].#c)",
            "contains",
            "[a, b, [1], c]",
        ),
        ("begins_with(a.b, a.b)", "begins_with", "[a, b]"),
        ("attribute_type(a[0], a[0])", "attribute_type", "[a, [0]]"),
        ("#dot = #dot", "=", "[a.b]"),
    ] {
        let detail = format!(
            "The first operand must be distinct from the remaining operands for this operator or \
             function; operator: {operator}, first operand: {first}"
        );
        rejected(text, &detail);
    }
    // Only paths, and only the first operand compared with the others.
    check(":v = :v", &Condition::eq("v", "v"));
    check(
        "a BETWEEN b AND b",
        &Condition::between(path("a"), path("b"), path("b")),
    );
    check("size(a) = a", &Condition::eq(size("a"), path("a")));
    check("size(a) = size(a)", &Condition::eq(size("a"), size("a")));
}

#[test]
fn wrong_operand_types_are_rejected() {
    let all = ["S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"];
    let unfit = |operator: &str, operand: &str| {
        format!(
            "Incorrect operand type for operator or function; \
             operator or function: {operator}, operand type: {operand}"
        )
    };
    let accepts = |text: &str| assert!(parse(text, Parser::condition).is_ok(), "text={text}");
    for of in all {
        let ordered = ["S", "N", "B"].contains(&of);
        let textual = ["S", "B"].contains(&of);
        let sized = !["N", "BOOL", "NULL"].contains(&of);
        for operator in ["<", "<=", ">", ">="] {
            for text in [format!("a {operator} :{of}"), format!(":{of} {operator} a")] {
                if ordered {
                    accepts(&text);
                } else {
                    rejected(&text, &unfit(operator, of));
                }
            }
        }
        for operator in ["=", "<>"] {
            accepts(&format!("a {operator} :{of}"));
        }
        accepts(&format!("a IN (:{of}, :v)"));
        accepts(&format!("contains(a, :{of})"));
        accepts(&format!("contains(:{of}, a)"));
        for text in [
            format!("a BETWEEN :{of} AND b"),
            format!("a BETWEEN b AND :{of}"),
            format!(":{of} BETWEEN a AND b"),
        ] {
            if ordered {
                accepts(&text);
            } else {
                rejected(&text, &unfit("BETWEEN", of));
            }
        }
        for text in [
            format!("begins_with(a, :{of})"),
            format!("begins_with(:{of}, a)"),
        ] {
            if textual {
                accepts(&text);
            } else {
                rejected(&text, &unfit("begins_with", of));
            }
        }
        if sized {
            accepts(&format!("size(:{of}) > :one"));
        } else {
            rejected(&format!("size(:{of}) > :one"), &unfit("size", of));
        }
        if of != "S" {
            rejected(
                &format!("attribute_type(a, :{of})"),
                &unfit("attribute_type", of),
            );
        }
    }
    rejected("size(size(a)) > :one", &unfit("size", "N"));
    rejected("attribute_exists(size(:N))", &unfit("size", "N"));
    rejected("begins_with(a, size(b))", &unfit("begins_with", "N"));
    rejected("attribute_type(a, size(b))", &unfit("attribute_type", "N"));
    rejected(
        "attribute_type(a, b)",
        &unfit("attribute_type", "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"),
    );
}

#[test]
fn attribute_type_requires_a_known_type_name() {
    for of in ["S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"] {
        let values = [(":t".to_owned(), Value::from(of))].into();
        let mut parser = Parser::new(None, Some(&values));
        let condition = parser.condition("attribute_type(a, :t)").unwrap();
        let expected = Condition::attribute_type("a", ValueType::from_name(of).unwrap());
        assert_eq!(condition, expected);
    }
    let unknown = |name: &str| {
        format!(
            "Invalid attribute type name found; type: {name}, \
             valid types: {{B,NULL,SS,BOOL,L,BS,N,NS,S,M}}"
        )
    };
    rejected("attribute_type(a, :S)", &unknown("text"));
    rejected("attribute_type(a, :typess)", &unknown("ss"));
}

#[test]
fn invalid_between_bounds_are_rejected() {
    let types = |low: &str, high: &str| {
        format!(
            "The BETWEEN operator requires same data type for lower and upper bounds; \
             lower bound operand: AttributeValue: {{{low}}}, \
             upper bound operand: AttributeValue: {{{high}}}"
        )
    };
    let order = |low: &str, high: &str| {
        format!(
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; \
             lower bound operand: AttributeValue: {{{low}}}, \
             upper bound operand: AttributeValue: {{{high}}}"
        )
    };
    rejected("a BETWEEN :v AND :one", &types("S:v", "N:1"));
    rejected("a BETWEEN :N AND :S", &types("N:5", "S:text"));
    rejected(
        "a BETWEEN :B AND :S",
        &types("B:java.nio.HeapByteBuffer[pos=0 lim=5 cap=5]", "S:text"),
    );
    rejected("a BETWEEN :w AND :v", &order("S:w", "S:v"));
    rejected("a BETWEEN :two AND :one", &order("N:2", "N:1"));
    rejected(
        "NOT (b = :v OR a BETWEEN :two AND :one)",
        &order("N:2", "N:1"),
    );
}

#[test]
fn in_accepts_up_to_100_operands() {
    let choices = |count: usize| format!("a IN ({}:v)", ":v, ".repeat(count - 1));
    let expected = Condition::is_in(path("a"), vec!["v"; 100]);
    check(&choices(100), &expected);
    for count in [101, 163] {
        rejected(
            &choices(count),
            &format!(
                "The IN operator is provided with too many operands; number of operands: {count}"
            ),
        );
    }
}

#[test]
fn faults_of_the_same_pass_are_reported_in_text_order() {
    rejected(
        "a = a AND #undefined = :v",
        "The first operand must be distinct from the remaining operands for this operator or \
         function; operator: =, first operand: [a]",
    );
    rejected(
        "a = :undefined AND a = a",
        "An expression attribute value used in expression is not defined; \
         attribute value: :undefined",
    );
    rejected(
        "a < :BOOL AND contains(a)",
        "Incorrect operand type for operator or function; \
         operator or function: <, operand type: BOOL",
    );
}
