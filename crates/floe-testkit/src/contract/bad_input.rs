//! Invalid input: each request is rejected with DynamoDB's error and has no effect.

use std::collections::BTreeMap;

use floe_store::expr::KeyCondition;
use floe_store::expr::{Condition, Parser, Path, SetOperand, Update};
use floe_store::op::{
    BatchGetItem, BatchWriteItem, ConditionCheck, DeleteItem, GetItem, PutItem, Query, Scan,
    TransactWriteItems, UpdateItem,
};
use floe_store::{Error, Item, Result, Set, SetError, Text, Value};

use super::fixture::*;

pub(super) fn malformed_expressions_are_rejected(_: &mut Fixture) {
    let values = values! {"v" => 1, "w" => 2};
    let malformed = [
        ("a =", r#"Syntax error; token: "<EOF>", near: "=""#),
        ("= :v", r#"Syntax error; token: "=", near: "= :v""#),
        ("a = = :v", r#"Syntax error; token: "=", near: "= = :v""#),
        ("(a = :v", r#"Syntax error; token: "<EOF>", near: ":v""#),
        ("a = :v)", r#"Syntax error; token: ")", near: ":v)""#),
        ("a ! b", r#"Syntax error; token: "!", near: "a ! b""#),
        ("NOT", r#"Syntax error; token: "<EOF>", near: "NOT""#),
        ("a IN ()", r#"Syntax error; token: ")", near: "()""#),
        ("a[x] = :v", r#"Syntax error; token: "x", near: "[x]""#),
        ("", "The expression can not be empty;"),
        ("((a = :v))", "The expression has redundant parentheses;"),
        ("foo(a)", "Invalid function name; function: foo"),
        (
            "name = :v",
            "Attribute name is a reserved keyword; reserved keyword: name",
        ),
        (
            "a = :missing",
            "An expression attribute value used in expression is not defined; attribute value: :missing",
        ),
        (
            "#missing = :v",
            "An expression attribute name used in the document path is not defined; attribute name: #missing",
        ),
        (
            "size(a)",
            "The function is not allowed to be used this way in an expression; function: size",
        ),
        (
            "begins_with(a)",
            "Incorrect number of operands for operator or function; operator or function: begins_with, number of operands: 1",
        ),
    ];
    for (text, detail) in malformed {
        rejected(Parser::new(None, Some(&values)).condition(text), detail);
    }
}

pub(super) fn malformed_updates_are_rejected(_: &mut Fixture) {
    let values = values! {"v" => 1, "s" => "text"};
    let malformed = [
        ("SET", r#"Syntax error; token: "<EOF>", near: "SET""#),
        ("SET a :v", r#"Syntax error; token: ":v", near: "a :v""#),
        ("ADD a", r#"Syntax error; token: "<EOF>", near: "a""#),
        (
            "SET a = :v SET b = :v",
            r#"The "SET" section can only be used once in an update expression;"#,
        ),
        (
            "SET a = :v, a = :v",
            "Two document paths overlap with each other",
        ),
        (
            "SET a = :s + :v",
            "operator or function: +, operand type: S",
        ),
        (
            "SET a = list_append(a, :v)",
            "operator or function: list_append, operand type: N",
        ),
        (
            "ADD a :s",
            "Incorrect operand type for operator or function; operator: ADD, operand type: STRING",
        ),
        (
            "SET l[007] = :v",
            r#"Syntax error; token: "0", near: "007""#,
        ),
    ];
    for (text, detail) in malformed {
        rejected(Parser::new(None, Some(&values)).update(text), detail);
    }
}

pub(super) fn unused_placeholders_are_rejected(_: &mut Fixture) {
    let values = values! {"v" => 1, "unused" => 2};
    let mut parser = Parser::new(None, Some(&values));
    parser.condition("a = :v").unwrap();
    rejected(
        parser.finish(),
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}",
    );
    let names = BTreeMap::from([("#unused".to_owned(), "x".into())]);
    let mut parser = Parser::new(Some(&names), None);
    parser.projection("a").unwrap();
    rejected(
        parser.finish(),
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#unused}",
    );
}

pub(super) fn deep_expressions_do_not_overflow_the_stack(_: &mut Fixture) {
    let values = values! {"v" => 1};
    let open = "NOT (".repeat(2000);
    let close = ")".repeat(2000);
    for text in [
        format!("{open}a = :v{close}"),
        "(".repeat(4000),
        "NOT ".repeat(1000),
        "a[0]".repeat(900),
    ] {
        let parsed = Parser::new(None, Some(&values)).condition(&text);
        assert!(matches!(parsed, Err(Error::Validation(_))), "{parsed:?}");
    }
}

pub(super) fn malformed_numbers_are_rejected(_: &mut Fixture) {
    for text in [
        "", " 5", "5 ", "1e", ".", "-", "+", "NaN", "Infinity", "0x1", "1_000", "1,5", "--1",
        "1e5.5", "१",
    ] {
        assert!(text.parse::<floe_store::Number>().is_err(), "{text:?}");
    }
    let huge = [
        "1e999999999999999999999",
        "-1e2147483648",
        "0e126",
        &"9".repeat(5000),
        &format!("0.{}1", "0".repeat(5000)),
    ];
    for text in huge {
        assert!(text.parse::<floe_store::Number>().is_err(), "{text:?}");
    }
    for text in ["+5", ".5", "5.", "00042", "1E-130", "-0.0", "1.50e+3"] {
        assert!(text.parse::<floe_store::Number>().is_ok(), "{text:?}");
    }
}

pub(super) fn duplicate_set_elements_are_rejected(_: &mut Fixture) {
    let text = |elements: &[&str]| Set::new(elements.iter().map(|text| Text::from(*text)));
    assert_eq!(text(&["a", "b", "a"]), Err(SetError::Duplicate));
    assert_eq!(text(&[]), Err(SetError::Empty));
    let equal = Set::new([number("1"), number("1.0")]);
    assert_eq!(
        equal,
        Err(SetError::Duplicate),
        "numbers are compared by value"
    );
    let empty = text(&["", "a"]);
    assert!(empty.is_ok(), "an empty string is a valid element");
}

pub(super) fn attribute_names_must_not_be_empty(t: &mut Fixture) {
    t.create(plain());
    let detail = "Empty attribute name";
    rejected(t.put("Plain", item("a").with("", 1)), detail);
    rejected(t.put("Plain", item("a").with("m", map([("", 1)]))), detail);
    let deep = list([map([("k", map([("", 1)]))])]);
    rejected(t.put("Plain", item("a").with("l", deep)), detail);
}

pub(super) fn attribute_names_in_operands_must_not_be_empty(t: &mut Fixture) {
    t.create_with(plain(), [item("a")]);
    let detail = "Empty attribute name";
    let nameless = || list([map([("k", map([("", 1)]))])]);
    let equal = || Condition::eq(Path::from("m"), nameless());
    let put = PutItem::new("Plain", item("a").with("v", 1)).condition(equal().not());
    rejected(t.write(put.clone()), detail);
    let delete = DeleteItem::new("Plain", item("a")).condition(equal().not());
    rejected(t.write(delete), detail);
    let set = UpdateItem::new("Plain", item("a"), Update::new().set("m", nameless()));
    rejected(t.write(set.clone()), detail);
    let query = Query::new("Plain", KeyCondition::partition("pk", "a"));
    rejected(t.query(query.filter(equal())), detail);
    rejected(t.scan(Scan::new("Plain").filter(equal())), detail);
    if t.can().transactions {
        let check = ConditionCheck::new("Plain", item("b"), equal().not());
        for action in [put.into(), set.into(), check.into()] {
            let transact = TransactWriteItems::new([action]);
            rejected(t.transact_write_items(transact), detail);
        }
    }
    t.assert_item("Plain", item("a"));
}

pub(super) fn paths_into_keys_are_rejected(t: &mut Fixture) {
    t.create_with(plain(), [item("a")]);
    let into = Condition::attribute_exists(Path::attribute("pk").field("x"));
    rejected(
        t.write(PutItem::new("Plain", item("a")).condition(into)),
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: pk",
    );
}

pub(super) fn large_list_indexes_are_rejected(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("l", list([1]))]);
    let set = |at: usize| {
        let tree = Update::new().set(Path::attribute("l").index(at), 2);
        UpdateItem::new("Plain", item("a"), tree)
    };
    let last = 2_147_483_647;
    t.write(set(last)).unwrap();
    t.assert_item("Plain", item("a").with("l", list([1, 2])));
    rejected(
        t.write(set(last + 1)),
        "List index is not within the allowable range; index: [2147483648]",
    );
}

pub(super) fn wrong_function_operands_are_rejected(t: &mut Fixture) {
    t.create(plain());
    let set =
        |operand: SetOperand| UpdateItem::new("Plain", item("a"), Update::new().set("x", operand));
    let nested = SetOperand::list_append(
        SetOperand::list_append(Path::from("l"), list([1])),
        list([2]),
    );
    rejected(
        t.write(set(nested)),
        "The function is not allowed to be used this way in an expression; function: list_append",
    );
}

/// Requests with table names that no table can have.
pub(super) fn every_operation_validates_the_table_name(t: &mut Fixture) {
    fn invalid<T: std::fmt::Debug>(what: &str, response: Result<T>) {
        let error = response.expect_err(what);
        assert!(matches!(error, Error::Validation(_)), "{what}: {error:?}");
    }
    for name in ["", "ab", "not a name", &"x".repeat(2000)] {
        let key = || item("a");
        invalid("get", t.get_item(GetItem::new(name, key())));
        invalid("put", t.put(name, key()));
        invalid("scan", t.scan(Scan::new(name)));
        let query = Query::new(name, KeyCondition::partition("pk", "a"));
        invalid("query", t.query(query));
        let get = BatchGetItem::new().keys(name, [key()]);
        invalid("batch get", t.batch_get_item(get));
        let write = BatchWriteItem::new().put(name, key());
        invalid("batch write", t.batch_write_item(write));
        let transact = TransactWriteItems::new([PutItem::new(name, key()).into()]);
        invalid("transact", t.transact_write_items(transact));
    }
}

pub(super) fn wrong_key_types_are_rejected(t: &mut Fixture) {
    t.create(sorted());
    let values = [
        Value::Null,
        true.into(),
        "text".into(),
        binary(b"x"),
        list([1]),
        map([("k", 1)]),
        strings(["a"]),
        numbers([1]),
        binaries([b"x"]),
    ];
    for value in values {
        let response = t.put("Sorted", row("a", value.clone()));
        let actual = value.value_type().as_str();
        let detail = format!("Type mismatch for key sk expected: N actual: {actual}");
        rejected(response, &detail);
        let get = GetItem::new("Sorted", row("a", value));
        rejected(t.get_item(get), WRONG_KEY);
    }
}

pub(super) fn long_attribute_names_are_rejected(t: &mut Fixture) {
    t.create(plain());
    let named = |bytes: usize| item("a").with("n".repeat(bytes), 1);
    t.put("Plain", named(65_535)).unwrap();
    invalid(t.put("Plain", named(65_536)));
}

pub(super) fn unusual_strings_are_stored_unchanged(t: &mut Fixture) {
    t.create(sorted_by(floe_store::table::KeyKind::S));
    let odd = [
        "\0",
        "\0\0",
        "\u{FFFF}",
        "\u{10FFFF}",
        "a\0b",
        "\n\r\t",
        "\"\\",
        "é",
        "e\u{301}",
        "\u{202E}",
    ];
    for text in odd {
        let item: Item = row(text, text)
            .with(text, text)
            .with("m", map([(text, text)]));
        t.put("Sorted", item.clone()).unwrap();
        assert_eq!(t.get("Sorted", row(text, text)), Some(item), "{text:?}");
    }
    t.reopen();
    assert_eq!(t.all_items("Sorted").len(), odd.len());
}
