//! The grammar of conditions and filters: valid texts and their trees, and syntax errors.

use super::condition::{check, is, rejected, size};
use super::syntax;
use crate::expr::condition::Condition;
use crate::expr::path::Path;
use crate::expr::tests::{path, value};
use crate::value::{Value, ValueType};

#[test]
fn comparisons_parse() {
    for (text, expected) in [
        ("a = :v", Condition::eq(path("a"), "v")),
        ("a=:v", Condition::eq(path("a"), "v")),
        (" \t\r\na\n=\n:v ", Condition::eq(path("a"), "v")),
        ("a <> :v", Condition::ne(path("a"), "v")),
        ("a < :v", Condition::lt(path("a"), "v")),
        ("a <= :v", Condition::le(path("a"), "v")),
        ("a > :v", Condition::gt(path("a"), "v")),
        ("a >= :v", Condition::ge(path("a"), "v")),
        (":v = a", Condition::eq("v", path("a"))),
        (":v = :v", Condition::eq("v", "v")),
        (":v > :w", Condition::gt("v", "w")),
        ("a = b", Condition::eq(path("a"), path("b"))),
        ("a = :SS", Condition::eq(path("a"), value(":SS"))),
        ("a <> :NULL", Condition::ne(path("a"), Value::Null)),
        ("(a) = (:v)", Condition::eq(path("a"), "v")),
        ("a = (:v)", Condition::eq(path("a"), "v")),
        ("size(a) > :one", Condition::gt(size("a"), 1)),
        (
            "( size ( ( a.b ) ) ) >= size(c[1])",
            Condition::ge(size("a.b"), size("c[1]")),
        ),
        (":one < size(a)", Condition::lt(1, size("a"))),
        ("size(:S) = size(a)", Condition::eq(4, size("a"))),
        ("size(:L) = :two", Condition::eq(2, 2)),
        (":1 = :_", Condition::eq("digit", "under")),
    ] {
        check(text, &expected);
    }
}

#[test]
fn between_and_in_parse() {
    for (text, expected) in [
        (
            "a BETWEEN :v AND :w",
            Condition::between(path("a"), "v", "w"),
        ),
        (
            "a between :v and :v",
            Condition::between(path("a"), "v", "v"),
        ),
        (
            "(a)between(b.c)and(:v)",
            Condition::between(path("a"), path("b.c"), "v"),
        ),
        (
            ":v BETWEEN a AND b",
            Condition::between("v", path("a"), path("b")),
        ),
        (
            "a BETWEEN :w AND b",
            Condition::between(path("a"), "w", path("b")),
        ),
        (
            "size(a) BETWEEN :one AND :two",
            Condition::between(size("a"), 1, 2),
        ),
        (
            "a BETWEEN :v AND :w AND b = :v",
            Condition::between(path("a"), "v", "w").and(is("b")),
        ),
        ("a IN (:v)", Condition::is_in(path("a"), ["v"])),
        ("a in(:v,:w , b)", {
            Condition::In(
                path("a").into(),
                vec!["v".into(), "w".into(), path("b").into()],
            )
        }),
        (":v IN ((a), size(b), :BOOL)", {
            Condition::In("v".into(), vec![path("a").into(), size("b"), true.into()])
        }),
    ] {
        check(text, &expected);
    }
}

#[test]
fn functions_parse() {
    for (text, expected) in [
        ("attribute_exists(a)", Condition::attribute_exists("a")),
        (
            "attribute_exists ( ( a.b[0] ) )",
            Condition::attribute_exists(path("a.b[0]")),
        ),
        ("(attribute_exists(a))", Condition::attribute_exists("a")),
        (
            "attribute_not_exists(#name)",
            Condition::attribute_not_exists("name"),
        ),
        (
            "attribute_type(a, :typeSS)",
            Condition::attribute_type("a", ValueType::Ss),
        ),
        (
            "attribute_type(:NS, :typeSS)",
            Condition::AttributeType(value(":NS").into(), ValueType::Ss),
        ),
        ("begins_with(a, :v)", Condition::begins_with(path("a"), "v")),
        ("begins_with(:v, a)", Condition::begins_with("v", path("a"))),
        (
            "begins_with(a, b)",
            Condition::begins_with(path("a"), path("b")),
        ),
        (
            "begins_with(a, :B)",
            Condition::begins_with(path("a"), value(":B")),
        ),
        ("contains(a, :v)", Condition::contains(path("a"), "v")),
        (
            "contains(:L, a)",
            Condition::contains(value(":L"), path("a")),
        ),
        (
            "contains(a, :M)",
            Condition::contains(path("a"), value(":M")),
        ),
        (
            "contains(a, size(b))",
            Condition::contains(path("a"), size("b")),
        ),
    ] {
        check(text, &expected);
    }
}

#[test]
fn paths_parse() {
    for (text, expected) in [
        ("a.b.c", path("a.b.c")),
        ("a[0]", path("a[0]")),
        ("a[10][2].b[2147483647]", path("a[10][2].b[2147483647]")),
        ("a . b [ 1 ] . c", path("a.b[1].c")),
        ("#a.#b[1].#c", path("a.b[1].c")),
        ("(a).b", path("a.b")),
        ("(a.b)[1].c", path("a.b[1].c")),
        ("((a).b).c", path("a.b.c")),
        ("#dot", "a.b".into()),
        ("#three.#dot", Path::attribute("[3]").field("a.b")),
        ("#1.#_", path("one.under")),
        ("setx", path("setx")),
        ("And_", path("And_")),
        ("notx.inx.orx", path("notx.inx.orx")),
    ] {
        check(&format!("{text} = :v"), &Condition::eq(expected, "v"));
    }
}

#[test]
fn operators_follow_precedence() {
    for (text, expected) in [
        ("a = :v AND b = :v", is("a").and(is("b"))),
        ("a = :v and b = :v", is("a").and(is("b"))),
        (
            "a = :v OR b = :v AND c = :v",
            is("a").or(is("b").and(is("c"))),
        ),
        (
            "a = :v AND b = :v OR c = :v",
            is("a").and(is("b")).or(is("c")),
        ),
        (
            "(a = :v OR b = :v) AND c = :v",
            is("a").or(is("b")).and(is("c")),
        ),
        (
            "a = :v AND (b = :v OR c = :v)",
            is("a").and(is("b").or(is("c"))),
        ),
        (
            "a = :v AND b = :v AND c = :v",
            is("a").and(is("b")).and(is("c")),
        ),
        (
            "a = :v OR b = :v OR c = :v",
            is("a").or(is("b")).or(is("c")),
        ),
        (
            "a = :v AND (b = :v AND c = :v)",
            is("a").and(is("b").and(is("c"))),
        ),
        ("NOT a = :v", is("a").not()),
        ("not(a = :v)", is("a").not()),
        ("NOT a = :v AND b = :v", is("a").not().and(is("b"))),
        ("NOT (a = :v AND b = :v)", is("a").and(is("b")).not()),
        ("NOT NOT a = :v", is("a").not().not()),
        (
            "a = :v OR NOT b = :v AND c = :v",
            is("a").or(is("b").not().and(is("c"))),
        ),
        (
            "a = :v AND NOT b = :v OR c = :v",
            is("a").and(is("b").not()).or(is("c")),
        ),
        ("((a = :v) AND (b = :v))", is("a").and(is("b"))),
        ("((a = :v) OR (NOT (b = :v)))", is("a").or(is("b").not())),
        (
            "((a = :v OR b = :v) AND c = :v)",
            is("a").or(is("b")).and(is("c")),
        ),
        ("((a) = :v)", is("a")),
        ("(NOT (a = :v))", is("a").not()),
        ("((size(a)) > :one)", Condition::gt(size("a"), 1)),
        (
            "(a = :v OR b = :v) AND (c = :v OR NOT (attribute_exists(a) AND b = :v))",
            is("a")
                .or(is("b"))
                .and(is("c").or(Condition::attribute_exists("a").and(is("b")).not())),
        ),
    ] {
        check(text, &expected);
    }
}

#[test]
fn syntax_errors_at_the_end_of_text() {
    for (text, near) in [
        ("   ", "   "),
        ("attribute_not_exists(", "("),
        ("attribute_exists(pk", "pk"),
        ("a =", "="),
        ("a = ", "="),
        ("a = :v AND", "AND"),
        ("a BETWEEN :v", ":v"),
        ("a BETWEEN", "BETWEEN"),
        ("a BETWEEN :v AND", "AND"),
        ("(a = :v", ":v"),
        ("a.", "."),
        ("a[", "["),
        ("a[1", "1"),
        ("a", "a"),
        ("(a)", ")"),
        (":v", ":v"),
        ("NOT", "NOT"),
        ("NOT a", "a"),
        ("size(a) =", "="),
        ("a IN", "IN"),
        ("a IN (", "("),
        ("a IN (:v", ":v"),
        ("a IN (:v,", ","),
        ("(", "("),
        ("((((", "("),
        ("a = :v OR (b", "b"),
    ] {
        rejected(text, &syntax("<EOF>", near));
    }
}

#[test]
fn syntax_errors_quote_the_token() {
    for (text, token, near) in [
        ("attribute_exists(pk) x", "x", ") x"),
        ("attribute_exists(pk) x y", "x", ") x y"),
        ("a = :v :w", ":w", ":v :w"),
        ("a = :v :w x", ":w", ":v :w x"),
        ("a = :v)", ")", ":v)"),
        ("a :v", ":v", "a :v"),
        ("a = = :v", "=", "= = :v"),
        ("a == :v", "=", "== :v"),
        ("= :v", "=", "= :v"),
        ("AND a = :v", "AND", "AND a"),
        ("aaa = :v AND bbbb = :w cccc = :x", "cccc", ":w cccc ="),
        ("attribute_exists pk", "pk", "attribute_exists pk"),
        ("attribute_exists(pk,)", ")", ",)"),
        ("attribute_exists()", ")", "()"),
        ("begins_with(a :v)", ":v", "a :v)"),
        ("a IN :v", ":v", "IN :v"),
        ("a IN ()", ")", "()"),
        ("a in (b,c,)", ")", ",)"),
        ("a BETWEEN :v OR :w", "OR", ":v OR :w"),
        ("a BETWEEN :v, :w", ",", ":v, :w"),
        ("a[x] = :v", "x", "[x]"),
        ("a[:v] = :v", ":v", "[:v]"),
        ("a[#a] = :v", "#a", "[#a]"),
        ("a[1 = :v", "=", "1 = :v"),
        ("a[00] = :v", "0", "00]"),
        ("a[01] = :v", "1", "01]"),
        ("a[-1] = :v", "-", "[-1"),
        ("a[1.5] = :v", ".", "1.5"),
        ("a = :v !", "!", ":v !"),
        ("a ! b", "!", "a ! b"),
        ("a != :v", "!", "a !="),
        ("a = 4", "4", "= 4"),
        ("a = \"x\"", "\"", "= \"x"),
        ("a..b = :v", ".", "..b"),
        ("a.:v = :w", ":v", ".:v ="),
        (":v.a = :w", ".", ":v.a"),
        ("a-b = :v", "-", "a-b"),
        ("a + b = :v", "+", "a + b"),
        ("_a = :v", "_", "_a"),
        ("1a = :v", "1", "1a"),
        ("# = :v", "#", "# ="),
        ("a = :", ":", "= :"),
        ("a#b = :v", "#b", "a#b ="),
        ("ü = :v", "ü", "ü ="),
        ("a\u{a0}= :v", "\u{a0}", "a\u{a0}="),
        ("a AND b = :v", "AND", "a AND b"),
        ("(a) AND b = :v", "AND", ") AND b"),
        ("(a = :v) = :w", "=", ") = :w"),
        ("a = :v = :w", "=", ":v = :w"),
        ("a < b < c", "<", "b < c"),
        ("a = (b = :v)", "=", "b = :v"),
        ("contains(a = :v, :w)", "=", "a = :v"),
        ("contains(a AND b, :w)", "AND", "a AND b"),
        ("contains((size(a) AND size(b)), :w)", "AND", ") AND size"),
        ("contains(NOT a, :w)", "NOT", "(NOT a"),
        ("a = NOT b", "NOT", "= NOT b"),
        ("a NOT IN (:v)", "NOT", "a NOT IN"),
        ("a > between", "between", "> between"),
        ("a.and = :v", "and", ".and ="),
        ("a = :v AND AND b = :v", "AND", "AND AND b"),
        ("a = :v OR OR b = :v", "OR", "OR OR b"),
        ("(a)between(b.(c.d))and(c)", "(", ".(c"),
        ("()", ")", "()"),
        ("a = ()", ")", "()"),
        (")", ")", ")"),
        ("size(a).b > c", ".", ").b"),
        ("(size(a))[0] > c", "[", ")[0"),
        ("(a = :v).b", ".", ").b"),
        ("a, b", ",", "a, b"),
        ("a = :v, b = :w", ",", ":v, b"),
        ("things are not gonna be ok", "are", "things are not"),
        ("SET a = :v", "a", "SET a ="),
    ] {
        rejected(text, &syntax(token, near));
    }
}

#[test]
fn redundant_parentheses_are_rejected() {
    for text in [
        "((a = :v))",
        "((a)) = :v",
        "a = ((:v))",
        "((attribute_exists(a)))",
        "attribute_exists(((a)))",
        "a = :v AND ((b = :v))",
        "a = :v AND ((b = :v AND c = :v)) AND a = :w",
        "a = :v OR ((b = :v OR (c = :v OR a = :w)))",
        "(((a)).b) = :v",
        "NOT ((a = :v))",
        "a IN (((:v)))",
        // Reported before any other fault of the text.
        "((nope(b)))",
        "((a = :undefined))",
        "((a = :v)) oops",
        "((name = :v))",
    ] {
        rejected(text, "The expression has redundant parentheses;");
    }
}

#[test]
fn empty_and_overlong_texts_are_rejected() {
    rejected("", "The expression can not be empty;");
    let spaces = |length: usize| format!("a = :v{}", " ".repeat(length - 6));
    check(&spaces(4096), &is("a"));
    rejected(
        &spaces(4097),
        "Expression size has exceeded the maximum allowed size;",
    );
    // The length is checked first.
    rejected(
        &"(".repeat(4097),
        "Expression size has exceeded the maximum allowed size;",
    );
}
