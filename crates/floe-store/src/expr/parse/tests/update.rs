//! Updates.

use super::{parse, syntax};
use crate::expr::parse::Parser;
use crate::expr::tests::{path, value};
use crate::expr::update::{SetOperand, Update};
use crate::value::Value;

#[track_caller]
fn check(text: &str, expected: &Update) {
    match parse(text, Parser::update) {
        Ok(update) => assert_eq!(update, *expected, "text={text}"),
        Err(error) => panic!("the text should parse: text={text} error={error}"),
    }
}

#[track_caller]
fn rejected(text: &str, detail: &str) {
    super::rejected(text, Parser::update, "UpdateExpression", detail);
}

#[test]
fn sections_parse_in_any_order() {
    for (text, expected) in [
        ("SET a = :v", Update::new().set("a", "v")),
        ("  set   a=:v  ", Update::new().set("a", "v")),
        ("sEt a.b[3] = :v", Update::new().set(path("a.b[3]"), "v")),
        (
            "SET a = :v, b = :w",
            Update::new().set("a", "v").set("b", "w"),
        ),
        ("SET #name = :NULL", Update::new().set("name", Value::Null)),
        ("REMOVE a", Update::new().remove("a")),
        ("remove a, b.c, #three[0]", {
            Update::new()
                .remove("a")
                .remove(path("b.c"))
                .remove(path("x[0]").rooted("[3]"))
        }),
        ("ADD a :one", Update::new().add("a", 1)),
        (
            "ADD a :one, b.c :SS",
            Update::new().add("a", 1).add(path("b.c"), value(":SS")),
        ),
        ("DELETE a :NS", Update::new().delete("a", value(":NS"))),
        ("DELETE a :BS, b :SS", {
            Update::new()
                .delete("a", value(":BS"))
                .delete("b", value(":SS"))
        }),
        (
            "REMOVE a SET b = :v",
            Update::new().set("b", "v").remove("a"),
        ),
        ("SET a = :v REMOVE b ADD c :one DELETE d :SS", {
            Update::new()
                .set("a", "v")
                .remove("b")
                .add("c", 1)
                .delete("d", value(":SS"))
        }),
        ("DELETE d :SS ADD c :one REMOVE b SET a = :v", {
            Update::new()
                .set("a", "v")
                .remove("b")
                .add("c", 1)
                .delete("d", value(":SS"))
        }),
    ] {
        check(text, &expected);
    }
}

trait Rooted {
    fn rooted(&self, root: &str) -> Self;
}

impl Rooted for crate::expr::Path {
    /// The same steps, starting with another attribute.
    fn rooted(&self, root: &str) -> Self {
        use crate::expr::Segment;
        self.rest()
            .iter()
            .fold(Self::attribute(root), |path, step| match step {
                Segment::Name(name) => path.field(name),
                Segment::Index(at) => path.index(*at),
            })
    }
}

#[test]
fn set_values_parse() {
    fn if_not_exists(name: &str, otherwise: impl Into<SetOperand>) -> SetOperand {
        SetOperand::if_not_exists(name, otherwise)
    }
    let list_append = |one: SetOperand, two: SetOperand| SetOperand::list_append(one, two);
    let set = |operand: SetOperand| Update::new().set("a", operand);
    let sum = |left: SetOperand, right: SetOperand| Update::new().set_sum("a", left, right);
    let b = || SetOperand::from(path("b"));
    let l = || SetOperand::from(value(":L"));
    for (text, expected) in [
        ("b", set(b())),
        ("b.c[0]", set(path("b.c[0]").into())),
        ("(:v)", set("v".into())),
        ("b + :one", sum(b(), 1.into())),
        ("b+:one", sum(b(), 1.into())),
        ("b - :one", Update::new().set_difference("a", b(), 1)),
        ("(b - :one)", Update::new().set_difference("a", b(), 1)),
        ("(b) + (:one)", sum(b(), 1.into())),
        ("((b) + (:one))", sum(b(), 1.into())),
        (":one + :two", sum(1.into(), 2.into())),
        ("a + a", sum(path("a").into(), path("a").into())),
        ("if_not_exists(b, :v)", set(if_not_exists("b", "v"))),
        (
            "if_not_exists ( ( b ) , ( :v ) )",
            set(if_not_exists("b", "v")),
        ),
        (
            "if_not_exists(b, if_not_exists(c, :v))",
            set(if_not_exists("b", if_not_exists("c", "v"))),
        ),
        (
            "if_not_exists(a, :one) + :two",
            sum(if_not_exists("a", 1), 2.into()),
        ),
        (":two - if_not_exists(a, :one)", {
            Update::new().set_difference("a", 2, if_not_exists("a", 1))
        }),
        ("list_append(b, :L)", set(list_append(b(), l()))),
        ("list_append(:L, :L)", set(list_append(l(), l()))),
        ("list_append(if_not_exists(b, :L), :L)", {
            set(list_append(if_not_exists("b", value(":L")), l()))
        }),
        (
            "if_not_exists(b, list_append(:L, b))",
            set(if_not_exists("b", list_append(l(), b()))),
        ),
        // The result type of a function depends on the item.
        (
            "list_append(b, if_not_exists(c, :S))",
            set(list_append(b(), if_not_exists("c", "text"))),
        ),
    ] {
        check(&format!("SET a = {text}"), &expected);
    }
}

#[test]
fn syntax_errors_quote_the_token() {
    for (text, token, near) in [
        ("  ", "<EOF>", "  "),
        ("SET", "<EOF>", "SET"),
        ("SET a", "<EOF>", "a"),
        ("SET a =", "<EOF>", "="),
        ("SET a = :v,", "<EOF>", ","),
        ("SET a = b +", "<EOF>", "+"),
        ("SET a = (b", "<EOF>", "b"),
        ("SET a = if_not_exists(b", "<EOF>", "b"),
        ("ADD a", "<EOF>", "a"),
        ("REMOVE", "<EOF>", "REMOVE"),
        ("SET a = :v REMOVE", "<EOF>", "REMOVE"),
        ("SET a = :v x", "x", ":v x"),
        ("SET a :v", ":v", "a :v"),
        ("REMOVE a :v", ":v", "a :v"),
        ("INVALID SYNTAX HERE", "INVALID", "INVALID SYNTAX"),
        ("a = :v", "a", "a ="),
        ("SET l[007] = :v", "0", "007"),
        ("REMOVE l[01]", "1", "01]"),
        ("SET _123 = :v", "_", "SET _123"),
        ("SET a[:v] = :v", ":v", "[:v]"),
        ("SET :v = b", ":v", "SET :v ="),
        ("SET a = set", "set", "= set"),
        ("SET set = :v", "set", "SET set ="),
        ("REMOVE a = b", "=", "a = b"),
        ("REMOVE a b", "b", "a b"),
        ("REMOVE a,", "<EOF>", ","),
        ("REMOVE a,, b", ",", ",, b"),
        ("ADD a b", "b", "a b"),
        ("ADD a = :v", "=", "a = :v"),
        (
            "ADD a if_not_exists(b, :v)",
            "if_not_exists",
            "a if_not_exists(",
        ),
        ("DELETE a b", "b", "a b"),
        ("DELETE :v :SS", ":v", "DELETE :v :SS"),
        ("SET a = b / c", "/", "b / c"),
        ("SET a = b * c", "*", "b * c"),
        ("SET a = 1", "1", "= 1"),
        ("SET a = b + c + d", "+", "c + d"),
        ("SET a = (b + c) + d", "+", ") + d"),
        ("SET a = b + (c + d)", "+", "c + d"),
        ("SET a = if_not_exists(b + c, :v)", "+", "b + c"),
        ("SET a = if_not_exists((b + c), :v)", "+", "b + c"),
        ("SET a = (b.c).d", ".", ").d"),
        ("SET a = b)", ")", "b)"),
        ("SET (a = b)", "(", "SET (a"),
        ("SET f(a) = b", "(", "f(a"),
        ("SET a = f()", ")", "()"),
        ("SET a = b AND c = d", "AND", "b AND c"),
        ("SET a < :v", "<", "a < :v"),
        ("SET a == :v", "=", "== :v"),
    ] {
        rejected(text, &syntax(token, near));
    }
    for text in [
        "SET a = ((b))",
        "SET a = ((b + c))",
        "SET a = b + ((c))",
        "SET a = f(((b)))",
    ] {
        rejected(text, "The expression has redundant parentheses;");
    }
    rejected("", "The expression can not be empty;");
}

#[test]
fn invalid_words_functions_and_sections_are_rejected() {
    let reserved =
        |word: &str| format!("Attribute name is a reserved keyword; reserved keyword: {word}");
    rejected(" SET #x = :undefined SET abOrt = true ", &reserved("abOrt"));
    rejected(" REMOVE Absolute ", &reserved("Absolute"));
    rejected("SET a = if_not_exists(name, :v)", &reserved("name"));
    rejected("SET a = f(name)", &reserved("name"));
    rejected("SET a.b.data = :v", &reserved("data"));
    rejected(
        "REMOVE a[2147483648]",
        "List index is not within the allowable range; index: [2147483648]",
    );

    let unknown = |function: &str| format!("Invalid function name; function: {function}");
    rejected(
        "SET #x = if_not_exist(:undefined) SET c = d",
        &unknown("if_not_exist"),
    );
    rejected("SET a = LIST_APPEND(:L, :L)", &unknown("LIST_APPEND"));
    for function in ["size", "attribute_exists", "contains"] {
        rejected(
            &format!("SET a = {function}(b)"),
            &format!("The function is not allowed in an update expression; function: {function}"),
        );
    }
    for text in [
        "SET a = list_append(list_append(:L, :L), :L)",
        "SET a = list_append(:L, list_append(b, c))",
        "SET a = list_append(list_append(list_append(b, c), d), e)",
        "SET a = if_not_exists(b, list_append(:L, list_append(b, c)))",
    ] {
        rejected(
            text,
            "The function is not allowed to be used this way in an expression; function: list_append",
        );
    }

    for (text, section) in [
        ("SET a = #x SET c = :undefined", "SET"),
        ("REMOVE #x SET a = b REMOVE e", "REMOVE"),
        ("ADD #x :u SET a = b add e :f", "ADD"),
        ("DELETE #x :u SET a = b DELETE #y :f", "DELETE"),
        ("SET a = b REMOVE c REMOVE d SET e = f", "REMOVE"),
    ] {
        rejected(
            text,
            &format!("The \"{section}\" section can only be used once in an update expression;"),
        );
    }
}

#[test]
fn undefined_placeholders_are_rejected() {
    let name = |name: &str| {
        format!(
            "An expression attribute name used in the document path is not defined; \
             attribute name: {name}"
        )
    };
    let value = |value: &str| {
        format!(
            "An expression attribute value used in expression is not defined; \
             attribute value: {value}"
        )
    };
    rejected("SET #x = if_not_exists(:u)", &name("#x"));
    rejected("SET a = #x", &name("#x"));
    rejected("SET a = :u, b = #x", &name("#x"));
    rejected("REMOVE a.#x", &name("#x"));
    rejected("SET #a = if_not_exists(:u)", &value(":u"));
    rejected("SET a = if_not_exists(:u, :v)", &value(":u"));
    rejected("ADD a :u", &value(":u"));
    rejected("SET a = :u, a.b = :v", &value(":u"));
    rejected("DELETE a :S, b :u", &value(":u"));
}

#[test]
fn clashing_paths_are_rejected() {
    let clash = |how: &str, one: &str, two: &str| {
        format!(
            "Two document paths {how} with each other; must remove or rewrite one of these paths; \
             path one: {one}, path two: {two}"
        )
    };
    for (text, one, two) in [
        ("SET a = :v, a = :w", "[a]", "[a]"),
        ("SET a = :v REMOVE a", "[a]", "[a]"),
        ("REMOVE a SET a = :v", "[a]", "[a]"),
        ("SET #a = :v, a = :w", "[a]", "[a]"),
        ("SET a.b = :v, a = :w", "[a, b]", "[a]"),
        ("SET a.b = :v, a.b.c.d = :w", "[a, b]", "[a, b, c, d]"),
        ("SET a[1] = :v REMOVE a[1][2]", "[a, [1]]", "[a, [1], [2]]"),
        ("ADD a :one DELETE a :SS", "[a]", "[a]"),
        (
            "SET #c[3].#three = a, #c[3] = b",
            "[c, [3], [3]]",
            "[c, [3]]",
        ),
        // Overlaps are reported before conflicts and before wrong numbers of operands.
        (
            "SET d[1] = a, d.b = a, c[1].a = a, #c = if_not_exists(a)",
            "[c, [1], a]",
            "[c]",
        ),
        ("REMOVE x, a, y, a.b, z, y", "[a]", "[a, b]"),
    ] {
        rejected(text, &clash("overlap", one, two));
    }
    for (text, one, two) in [
        ("SET a.b = :v, a[1] = :w", "[a, b]", "[a, [1]]"),
        ("SET a.b.c = :v, a.b[2] = :w", "[a, b, c]", "[a, b, [2]]"),
        ("REMOVE a.#c SET a[1] = b", "[a, c]", "[a, [1]]"),
        (
            "SET #c[3].#three = a, #c.#three[3] = if_not_exists(a)",
            "[c, [3], [3]]",
            "[c, [3], [3]]",
        ),
        (
            "SET a[1].b = :v, b.c = :v, a.b[1].c = :w",
            "[a, [1], b]",
            "[a, b, [1], c]",
        ),
    ] {
        rejected(text, &clash("conflict", one, two));
    }
    check(
        "SET a.b = a.c, a.c = a.b REMOVE a.d[0], a.d[1]",
        &Update::new()
            .set(path("a.b"), path("a.c"))
            .set(path("a.c"), path("a.b"))
            .remove(path("a.d[0]"))
            .remove(path("a.d[1]")),
    );
    check(
        "SET #dot = :v, a.b = :w",
        &Update::new().set("a.b", "v").set(path("a.b"), "w"),
    );
}

#[test]
fn wrong_operands_of_add_and_delete_are_rejected() {
    for (of, type_name) in [
        ("S", "STRING"),
        ("B", "Binary"),
        ("BOOL", "BOOL"),
        ("NULL", "NULL"),
        ("L", "LIST"),
        ("M", "MAP"),
    ] {
        for action in ["ADD", "DELETE"] {
            rejected(
                &format!("{action} a.b :{of}"),
                &format!(
                    "Incorrect operand type for operator or function; operator: {action}, \
                     operand type: {type_name}, typeSet: ALLOWED_FOR_ADD_OPERAND"
                ),
            );
        }
    }
    // Reported before the functions.
    rejected(
        "SET b = list_append(:S, a), c = if_not_exists(a) DELETE d :N",
        "Incorrect operand type for operator or function; operator: DELETE, \
         operand type: NUMBER, typeSet: ALLOWED_FOR_ADD_OPERAND",
    );
}

#[test]
fn wrong_operands_of_functions_and_sums_are_rejected() {
    let count = |function: &str, count: usize| {
        format!(
            "Incorrect number of operands for operator or function; \
             operator or function: {function}, number of operands: {count}"
        )
    };
    rejected("SET a = if_not_exists(c)", &count("if_not_exists", 1));
    rejected("SET a = list_append(c)", &count("list_append", 1));
    rejected("SET a = list_append(:L, :S, :L)", &count("list_append", 3));

    for text in [
        "SET a = if_not_exists(:v, b)",
        "SET a = if_not_exists(if_not_exists(a, b), c)",
        "SET a = if_not_exists(list_append(a, b), c)",
    ] {
        rejected(
            text,
            "Operator or function requires a document path; operator or function: if_not_exists",
        );
    }

    let unfit = |operator: &str, operand: &str| {
        format!(
            "Incorrect operand type for operator or function; \
             operator or function: {operator}, operand type: {operand}"
        )
    };
    for of in ["S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"] {
        for text in [
            format!("list_append(:{of}, b)"),
            format!("list_append(b, :{of})"),
        ] {
            if of != "L" {
                rejected(&format!("SET a = {text}"), &unfit("list_append", of));
            }
        }
        for operator in ["+", "-"] {
            for text in [format!("b {operator} :{of}"), format!(":{of} {operator} b")] {
                if of != "N" {
                    rejected(&format!("SET a = {text}"), &unfit(operator, of));
                }
            }
        }
    }
    rejected("SET a = :S + :B", &unfit("+", "S"));
    rejected("SET a = list_append(b, :L) + :one", &unfit("+", "L"));
}
