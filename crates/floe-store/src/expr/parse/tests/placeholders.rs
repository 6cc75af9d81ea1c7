//! Tests of placeholder maps and their use in a request.

use std::collections::BTreeMap;

use super::super::Parser;
use crate::error::{Error, Result};
use crate::item::Item;
use crate::text::Name;
use crate::value::Value;

type Names<'a> = Option<&'a [(&'a str, &'a str)]>;
type Values<'a> = Option<&'a [&'a str]>;

/// Parses the expressions of a request with these names, and with arbitrary values.
fn outcome(
    names: Names<'_>,
    values: Values<'_>,
    request: impl FnOnce(&mut Parser<'_>) -> Result<()>,
) -> Result<()> {
    let names: Option<BTreeMap<String, Name>> = names.map(|names| {
        let owned = |(key, name): &(&str, &str)| ((*key).to_owned(), Name::from(*name));
        names.iter().map(owned).collect()
    });
    let values: Option<BTreeMap<String, Value>> = values.map(|values| {
        values
            .iter()
            .map(|key| ((*key).to_owned(), Value::from(1)))
            .collect()
    });
    let mut parser = Parser::new(names.as_ref(), values.as_ref());
    request(&mut parser)?;
    parser.finish()
}

#[track_caller]
fn check(names: Names<'_>, values: Values<'_>, texts: &[&str], expected: &str) {
    let result = outcome(names, values, |parser| {
        texts
            .iter()
            .try_for_each(|text| parser.condition(text).map(drop))
    });
    let message = result.map_or_else(|error| error.to_string(), |()| String::new());
    assert_eq!(
        message, expected,
        "names={names:?} values={values:?} texts={texts:?}"
    );
}

#[test]
fn unused_placeholders_are_rejected() {
    let both = Some(&[("#a", "a"), ("#b", "b")][..]);
    check(None, None, &[], "");
    check(None, None, &["a = b"], "");
    check(both, None, &["#a = #b"], "");
    check(both, None, &["#a = c", "#b = c"], "");
    check(both, Some(&[":v"]), &["#a.#b IN (:v, :v)"], "");
    check(
        both,
        Some(&[":v"]),
        &["#a = :v"],
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}",
    );
    check(
        both,
        Some(&[":v", ":w"]),
        &["c = :v"],
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a, #b}",
    );
    check(
        None,
        Some(&[":v", ":w", ":x"]),
        &["a = :w"],
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v, :x}",
    );
}

#[test]
fn placeholders_require_an_expression() {
    check(
        Some(&[("#a", "a")]),
        Some(&[":v"]),
        &[],
        "ExpressionAttributeNames can only be specified when using expressions",
    );
    check(
        None,
        Some(&[]),
        &[],
        "ExpressionAttributeValues can only be specified when using expressions",
    );
    // A projection contains no values.
    let names = Some(&[("#a", "a")][..]);
    assert_eq!(
        outcome(names, None, |parser| parser.projection("#a").map(drop)),
        Ok(())
    );
    let values = [(":v".to_owned(), Value::from(1))].into();
    let mut parser = Parser::new(None, Some(&values))
        .absent("FilterExpression and KeyConditionExpression are null");
    parser.projection("a").unwrap();
    assert_eq!(
        parser.finish(),
        Err(Error::validation(
            "ExpressionAttributeValues can only be specified when using expressions: \
             FilterExpression and KeyConditionExpression are null"
        ))
    );
}

#[test]
fn placeholder_maps_are_checked_before_expressions() {
    let bad = &["a = = b"][..];
    check(
        Some(&[]),
        Some(&[]),
        bad,
        "ExpressionAttributeNames must not be empty",
    );
    check(
        None,
        Some(&[]),
        bad,
        "ExpressionAttributeValues must not be empty",
    );
    for key in ["", "a", "#", "#a-b", ":a", "##", "#ü", "# a"] {
        check(
            Some(&[(key, "a")]),
            Some(&[]),
            bad,
            &format!("ExpressionAttributeNames contains invalid key: Syntax error; key: \"{key}\""),
        );
    }
    for key in ["a", ":", ":a b", "#a", ":a:"] {
        check(
            Some(&[("#a", "a")]),
            Some(&[key]),
            bad,
            &format!(
                "ExpressionAttributeValues contains invalid key: Syntax error; key: \"{key}\""
            ),
        );
    }
    check(
        Some(&[("#a", "")]),
        None,
        bad,
        "ExpressionAttributeNames contains invalid value: Empty attribute name for key #a",
    );
    let long = |sign: char, length: usize| format!("{sign}{}", "a".repeat(length - 1));
    check(
        Some(&[(&long('#', 256), "a")]),
        None,
        bad,
        "ExpressionAttributeNames contains invalid key: \
         The expression attribute map contains a key that is too long; size of key: 256",
    );
    check(
        None,
        Some(&[&long(':', 256)]),
        bad,
        "ExpressionAttributeValues contains invalid key: \
         The expression attribute map contains a key that is too long;",
    );
    let name = long('#', 255);
    check(Some(&[(&name, "a")]), None, &[&format!("{name} = b")], "");
}

#[test]
fn nesting_of_values_is_limited() {
    let nested = |levels: usize| {
        (1..levels).fold(Value::from(1), |value, n| match n % 2 {
            0 => Value::L(vec![value]),
            _ => Value::M(Item::new().with("m", value)),
        })
    };
    let parse = |levels: usize| {
        let values = [(":v".to_owned(), nested(levels))].into();
        Parser::new(None, Some(&values))
            .condition("a = :v")
            .map(drop)
    };
    assert_eq!(parse(33), Ok(()));
    assert_eq!(
        parse(34),
        Err(Error::validation(
            "ExpressionAttributeValues contains invalid value: Nesting Levels have exceeded \
             supported limits: Attributes in the item have nested levels beyond supported limit \
             for key :v"
        ))
    );
}

#[test]
fn placeholders_are_shared_by_all_expressions_of_a_request() {
    let names = Some(&[("#a", "a"), ("#b", "b"), ("#c", "c")][..]);
    let values = Some(&[":v", ":w"][..]);
    let request = |parser: &mut Parser<'_>| {
        parser.key_condition("#a = :v")?;
        parser.filter("#b = :w")?;
        parser.projection("#c, #a")?;
        Ok(())
    };
    assert_eq!(outcome(names, values, request), Ok(()));
    let request = |parser: &mut Parser<'_>| {
        parser.update("SET #a = :v REMOVE #c")?;
        parser.condition("#b = :w").map(drop)
    };
    assert_eq!(outcome(names, values, request), Ok(()));
}

#[test]
fn empty_names_in_values_are_rejected() {
    let empty = Value::L(vec![Value::M(Item::new().with("", 1))]);
    let values = [(":v".to_owned(), empty), (":w".to_owned(), 1.into())].into();
    let expected = Error::validation("Empty attribute name");
    for text in ["a = :w", "a = :v", "a = = :v"] {
        let result = Parser::new(None, Some(&values)).condition(text);
        assert_eq!(result, Err(expected.clone()), "{text}");
    }
}

#[test]
fn total_size_of_placeholder_maps_is_limited_to_two_megabytes() {
    const MAX: usize = 2 * 1024 * 1024;
    const VALUES: &str = "ExpressionAttributeValues exceeds max size";
    const BOTH: &str =
        "Combined size of ExpressionAttributeNames and ExpressionAttributeValues exceeds max size";
    // The sizes include the placeholders.
    let message = |name_bytes: usize, value_bytes: usize| {
        let text = |bytes: usize| "x".repeat(bytes - 2);
        let names = [("#n".to_owned(), Name::from(text(name_bytes)))].into();
        let values = [(":v".to_owned(), Value::from(text(value_bytes)))].into();
        let parsed = Parser::new(Some(&names), Some(&values)).condition("#n = :v");
        parsed.map_or_else(|error| error.to_string(), |_| String::new())
    };
    assert_eq!(message(1000, MAX - 1000), "");
    assert_eq!(message(1000, MAX - 999), BOTH);
    assert_eq!(message(3, MAX), BOTH);
    assert_eq!(message(3, MAX + 1), VALUES);
    assert_eq!(
        message(MAX + 1, MAX + 1),
        "ExpressionAttributeNames exceeds max size"
    );
}
