//! Tests of evaluating conditions.

use crate::expr::condition::Condition;
use crate::expr::parse::Parser;
use crate::expr::tests::{Random, list, numbers, path, strings};
use crate::item::Item;
use crate::number::Number;
use crate::value::{Set, Value};

/// An item with a value of each type, some of them twice.
fn item() -> Item {
    let bytes = |bytes: &[u8]| Value::from(bytes);
    Item::new()
        .with("s", "hello")
        .with("s2", "hello")
        .with("blank", "")
        .with("wide", "aü€😀")
        .with("n", 42)
        .with("n2", "42.0".parse::<Number>().unwrap())
        .with(
            "big",
            "123456789012345678901234567890.5"
                .parse::<Number>()
                .unwrap(),
        )
        .with("b", bytes(b"hello"))
        .with("b2", bytes(&[0, 255, 0, 255, 1]))
        .with("yes", true)
        .with("nay", false)
        .with("nul", Value::Null)
        .with(
            "l",
            vec![Value::from(1), Value::from("x"), list([2, 3]), Value::Null],
        )
        .with("l0", list([]))
        .with("m", Item::new().with("x", 1).with("y", list([7])))
        .with("ss", strings(["a", "b", ""]))
        .with("ns", numbers([1, 2]))
        .with("bs", Set::new([vec![1], vec![2, 3]]).unwrap())
}

/// Whether the condition holds for the item above; `values` are `:0`, `:1` and so on.
#[track_caller]
fn holds(text: &str, values: &[Value]) -> bool {
    let values = values.iter().enumerate();
    let values = values
        .map(|(n, value)| (format!(":{n}"), value.clone()))
        .collect();
    let mut parser = Parser::new(None, Some(&values));
    match parser.condition(text) {
        Ok(condition) => condition.evaluate(&item()),
        Err(error) => panic!("the test case does not parse: text={text} error={error}"),
    }
}

#[track_caller]
fn check(text: &str, values: &[Value], expected: bool) {
    assert_eq!(
        holds(text, values),
        expected,
        "text={text} values={values:?}"
    );
}

/// One value of each type.
fn samples() -> Vec<Value> {
    vec![
        "x".into(),
        1.into(),
        vec![b'x'].into(),
        true.into(),
        Value::Null,
        Item::new().into(),
        list([]),
        strings(["x"]),
        numbers([1]),
        Set::new([vec![b'x']]).unwrap().into(),
    ]
}

#[test]
fn equality_compares_type_and_value() {
    let yes = true;
    let no = false;
    for (text, values, expected) in [
        ("s = :0", vec!["hello".into()], yes),
        ("s = :0", vec!["Hello".into()], no),
        ("s = s2", vec![Value::Null], yes),
        ("s = b", vec![Value::Null], no),
        ("n = n2", vec![Value::Null], yes),
        (
            "n = :0",
            vec!["4.2E1".parse::<Number>().unwrap().into()],
            yes,
        ),
        ("n = :0", vec!["42".into()], no),
        (
            "big = :0",
            vec![
                "123456789012345678901234567890.6"
                    .parse::<Number>()
                    .unwrap()
                    .into(),
            ],
            no,
        ),
        ("yes = :0", vec![true.into()], yes),
        ("yes = nay", vec![Value::Null], no),
        ("nul = :0", vec![Value::Null], yes),
        ("ss = :0", vec![strings(["", "b", "a"])], yes),
        ("ss = :0", vec![strings(["a", "b"])], no),
        ("l0 = :0", vec![list([])], yes),
        ("l[2] = :0", vec![list([2, 3])], yes),
        ("l[2] = :0", vec![list([3, 2])], no),
        (
            "m = :0",
            vec![Item::new().with("y", list([7])).with("x", 1).into()],
            yes,
        ),
        ("m = :0", vec![Item::new().with("x", 1).into()], no),
        ("m.y[0] = :0", vec![7.into()], yes),
        (":0 = :1", vec![1.into(), 1.into()], yes),
    ] {
        check(text, &values, expected);
        check(&text.replace('=', "<>"), &values, !expected);
    }
}

#[test]
fn values_of_different_types_are_neither_equal_nor_ordered() {
    let samples = samples();
    for (n, one) in samples.iter().enumerate() {
        for (m, two) in samples.iter().enumerate() {
            let of = |condition: Condition| condition.evaluate(&item());
            assert_eq!(of(Condition::eq(one.clone(), two.clone())), n == m);
            assert_eq!(of(Condition::ne(one.clone(), two.clone())), n != m);
            let ordered = n == m && n < 3;
            assert!(!of(Condition::lt(one.clone(), two.clone())));
            assert!(!of(Condition::gt(one.clone(), two.clone())));
            assert_eq!(of(Condition::le(one.clone(), two.clone())), ordered);
            assert_eq!(of(Condition::ge(one.clone(), two.clone())), ordered);
            assert_eq!(
                of(Condition::between(one.clone(), two.clone(), two.clone())),
                ordered
            );
            assert_eq!(of(Condition::is_in(one.clone(), [two.clone()])), n == m);
        }
    }
}

#[test]
fn values_of_one_type_are_ordered() {
    for (text, values, expected) in [
        ("n < :0", vec![43.into()], true),
        ("n < :0", vec![42.into()], false),
        ("n <= :0", vec![42.into()], true),
        ("n > :0", vec![5.into()], true),
        ("n >= :0", vec![43.into()], false),
        ("s < :0", vec!["help".into()], true),
        ("s < :0", vec!["hell".into()], false),
        ("s > blank", vec![Value::Null], true),
        // By code points: in UTF-16 the order would be reversed.
        (":0 < :1", vec!["\u{ff61}".into(), "\u{1f600}".into()], true),
        ("b2 > :0", vec![vec![0, 127].into()], true),
        ("b < :0", vec![vec![b'h', b'e'].into()], false),
        ("n BETWEEN :0 AND :1", vec![42.into(), 42.into()], true),
        ("n BETWEEN :0 AND :1", vec![1.into(), 41.into()], false),
        ("n BETWEEN :0 AND :1", vec![43.into(), 99.into()], false),
        ("s BETWEEN :0 AND :1", vec!["a".into(), "z".into()], true),
        (":0 BETWEEN blank AND s", vec!["b".into()], true),
        (":0 BETWEEN n AND s", vec!["b".into()], false),
        ("yes < nay", vec![Value::Null], false),
        ("l < m", vec![Value::Null], false),
    ] {
        check(text, &values, expected);
    }
}

#[test]
fn comparisons_with_missing_values_are_false_except_ne() {
    for (text, expected) in [
        ("x = :0", false),
        ("x <> :0", true),
        ("x < :0", false),
        ("x >= :0", false),
        ("x = y", false),
        ("x <> y", true),
        ("NOT x = :0", true),
        ("x BETWEEN :0 AND :0", false),
        (":0 BETWEEN x AND y", false),
        ("x IN (:0, y)", false),
        (":0 IN (x, :0)", true),
        ("begins_with(x, :0)", false),
        ("begins_with(:0, x)", false),
        ("contains(x, :0)", false),
        ("contains(l, x)", false),
        ("attribute_type(x, :0)", false),
        ("size(x) = :1", false),
        ("size(x) <> :1", true),
        ("size(n) = :1", false),
        ("size(n) <> :1", true),
        ("size(yes) < :1", false),
        ("size(nul) >= :1", false),
        ("m.z = :0", false),
        ("m.x.y = :0", false),
        ("l[9] <> :0", true),
        ("s[0] <> :0", true),
    ] {
        check(text, &["S".into(), 0.into()], expected);
    }
    assert!(!Condition::eq(path("a"), 1).evaluate(&Item::new()));
    assert!(Condition::attribute_not_exists("a").evaluate(&Item::new()));
}

#[test]
fn in_contains_and_begins_with_evaluate() {
    for (text, values, expected) in [
        ("n IN (:0)", vec![42.into()], true),
        ("n IN (:0, :1)", vec!["42".into(), 43.into()], false),
        ("s IN (n, s2)", vec![Value::Null], true),
        ("nul IN (:0)", vec![Value::Null], true),
        ("ss IN (:0)", vec![strings(["", "a", "b"])], true),
        ("contains(s, :0)", vec!["ell".into()], true),
        ("contains(s, :0)", vec!["".into()], true),
        ("contains(s, :0)", vec!["elo".into()], false),
        ("contains(wide, :0)", vec!["€😀".into()], true),
        ("contains(n, :0)", vec![4.into()], false),
        ("contains(b, :0)", vec![b"llo"[..].into()], true),
        ("contains(b, :0)", vec!["llo".into()], false),
        ("contains(ss, :0)", vec!["a".into()], true),
        ("contains(ss, :0)", vec!["".into()], true),
        ("contains(ss, :0)", vec!["c".into()], false),
        ("contains(ss, :0)", vec![strings(["a"])], false),
        ("contains(ns, :0)", vec![2.into()], true),
        ("contains(ns, :0)", vec!["2".into()], false),
        ("contains(bs, :0)", vec![vec![2, 3].into()], true),
        ("contains(bs, :0)", vec![vec![2].into()], false),
        ("contains(l, :0)", vec!["x".into()], true),
        ("contains(l, :0)", vec![Value::Null], true),
        ("contains(l, :0)", vec![list([2, 3])], true),
        ("contains(l, :0)", vec![2.into()], false),
        ("contains(m, :0)", vec!["x".into()], false),
        ("contains(:0, n)", vec![list([41, 42])], true),
        ("contains(:0, s)", vec!["say hello".into()], true),
        ("contains(l, size(nul))", vec![Value::Null], false),
        ("contains(ns, size(m))", vec![Value::Null], true),
        ("begins_with(s, :0)", vec!["he".into()], true),
        ("begins_with(s, :0)", vec!["".into()], true),
        ("begins_with(s, :0)", vec!["hello!".into()], false),
        ("begins_with(b, :0)", vec![b"he"[..].into()], true),
        ("begins_with(b, :0)", vec!["he".into()], false),
        ("begins_with(n, :0)", vec!["4".into()], false),
        ("begins_with(:0, s)", vec!["hello world".into()], true),
        ("begins_with(s, s2)", vec![Value::Null], true),
    ] {
        check(text, &values, expected);
    }
}

#[test]
fn existence_type_and_size_functions_evaluate() {
    for name in ["s", "nul", "nay", "l0", "m.x", "l[2][1]"] {
        check(&format!("attribute_exists({name})"), &[Value::Null], true);
        check(
            &format!("attribute_not_exists({name})"),
            &[Value::Null],
            false,
        );
    }
    for name in ["x", "m.z", "l[4]", "s.x", "n[0]"] {
        check(&format!("attribute_exists({name})"), &[Value::Null], false);
        check(
            &format!("attribute_not_exists({name})"),
            &[Value::Null],
            true,
        );
    }
    let types = [
        ("s", "S"),
        ("n", "N"),
        ("b", "B"),
        ("yes", "BOOL"),
        ("nul", "NULL"),
        ("m", "M"),
        ("l", "L"),
        ("ss", "SS"),
        ("ns", "NS"),
        ("bs", "BS"),
    ];
    for (name, of) in types {
        for (_, other) in types {
            check(
                &format!("attribute_type({name}, :0)"),
                &[other.into()],
                of == other,
            );
        }
    }
    check("attribute_type(:0, :1)", &[list([]), "L".into()], true);
    for (name, size) in [
        ("s", 5),
        ("blank", 0),
        ("wide", 5),
        ("b", 5),
        ("b2", 5),
        ("l", 4),
        ("l0", 0),
        ("m", 2),
        ("ss", 3),
        ("ns", 2),
        ("bs", 2),
        ("l[1]", 1),
    ] {
        check(&format!("size({name}) = :0"), &[size.into()], true);
        check(&format!("size({name}) < :0"), &[(size + 1).into()], true);
        check(
            &format!("size({name}) BETWEEN :0 AND :0"),
            &[size.into()],
            true,
        );
    }
    check("size(s) = :0", &["5".into()], false);
    check("size(s) = size(b)", &[Value::Null], true);
    check("size(s) > size(m)", &[Value::Null], true);
    check("size(:0) = size(s)", &["12345".into()], true);
}

#[test]
fn logical_operators_follow_precedence() {
    let (yes, no) = ("attribute_exists(s)", "attribute_exists(x)");
    for (text, expected) in [
        (format!("{yes} AND {no}"), false),
        (format!("{yes} OR {no}"), true),
        (format!("{no} OR {no}"), false),
        (format!("{yes} OR {no} AND {no}"), true),
        (format!("({yes} OR {no}) AND {no}"), false),
        (format!("NOT {no} AND {yes}"), true),
        (format!("NOT ({no} AND {yes})"), true),
        (format!("NOT {yes} OR {no}"), false),
    ] {
        check(&text, &[Value::Null], expected);
    }
}

#[test]
fn byte_search_matches_naive_search() {
    let mut random = Random::new(3);
    let mut found = 0;
    for _ in 0..20_000 {
        let mut bytes = |most: usize| -> Vec<u8> {
            (0..random.below(most))
                .map(|_| random.below(2) as u8)
                .collect()
        };
        let (whole, part) = (bytes(24), bytes(6));
        let simple = part.is_empty() || whole.windows(part.len()).any(|window| window == part);
        found += usize::from(simple);
        assert_eq!(
            super::contains_bytes(&whole, &part),
            simple,
            "whole={whole:?} part={part:?}"
        );
    }
    assert!((5_000..15_000).contains(&found), "found={found}");
}

#[test]
fn random_conditions_obey_the_laws_of_logic() {
    let mut random = Random::new(5);
    for _ in 0..5_000 {
        let item = random.item(3);
        let (one, two) = (random.condition(2), random.condition(2));
        let (left, right) = (one.evaluate(&item), two.evaluate(&item));
        assert_eq!(one.clone().not().evaluate(&item), !left);
        assert_eq!(one.clone().and(two.clone()).evaluate(&item), left && right);
        assert_eq!(one.or(two).evaluate(&item), left || right);
    }
}
