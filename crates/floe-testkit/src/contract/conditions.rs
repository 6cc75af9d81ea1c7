//! Conditions and filters: every function and operator, with every type.

use floe_store::expr::{Condition, Operand, Path, Update};
use floe_store::op::{Scan, UpdateItem};
use floe_store::{Error, Item, Value, ValueType};

use super::fixture::*;

/// The item that the conditions of this file are evaluated on.
fn subject() -> Item {
    item("a")
        .with("s", "banana")
        .with("s2", "apple")
        .with("n", 5)
        .with("n2", number("5.0"))
        .with("n7", 7)
        .with("b", vec![1u8, 2, 3])
        .with("yes", true)
        .with("nil", Value::Null)
        .with("ss", strings(["x", "y"]))
        .with("ns", numbers([1, 2, 3]))
        .with("bs", binaries([b"p", b"qr"]))
        .with("l", Value::L(vec![1.into(), "one".into(), list([1])]))
        .with(
            "m",
            map([("k", 1.into()), ("inside", map([("deep", "d")]))]),
        )
        .with("uni", "é\u{1F9CA}")
        .with("blank", "")
}

/// The values used by the conditions.
fn all_values() -> Values {
    values! {
        "banana" => "banana", "ban" => "ban", "nan" => "nan", "apple" => "apple", "c" => "c",
        "none" => "", "five" => 5, "four" => 4, "six" => 6, "seven" => 7, "text5" => "5",
        "b" => vec![1u8, 2, 3], "b12" => vec![1u8, 2], "b23" => vec![2u8, 3], "true" => true,
        "false" => false, "null" => Value::Null, "ss" => strings(["y", "x"]), "x" => "x",
        "ns" => numbers([3, 2, 1]), "one" => 1, "two" => 2, "three" => 3, "p" => vec![b'p'],
        "l" => Value::L(vec![1.into(), "one".into(), list([1])]), "l1" => list([1]),
        "m" => map([("inside", map([("deep", "d")])), ("k", 1.into())]), "word" => "one",
        "S" => "S", "N" => "N", "B" => "B", "BOOL" => "BOOL", "NULL" => "NULL", "SS" => "SS",
        "NS" => "NS", "BS" => "BS", "L" => "L", "M" => "M",
    }
}

/// An update that changes nothing, with a condition.
fn touch(pk: &str, tree: Condition) -> UpdateItem {
    UpdateItem::new("Plain", item(pk), Update::new()).condition(tree)
}

/// Evaluates a condition on the subject, as a condition and as a filter.
fn holds(t: &Fixture, tree: &Condition) -> bool {
    let as_condition = match t.write(touch("a", tree.clone())) {
        Ok(_) => true,
        Err(Error::ConditionalCheckFailed { .. }) => false,
        Err(error) => panic!("{tree:?}: {error}"),
    };
    let page = t.scan(Scan::new("Plain").filter(tree.clone())).unwrap();
    assert_eq!(page.scanned_count, 1, "{tree:?}");
    assert_eq!(
        page.count,
        usize::from(as_condition),
        "filter and condition agree on {tree:?}"
    );
    as_condition
}

/// Checks conditions, separated by semicolons: the first list is true for the subject, the second is false.
fn check(t: &Fixture, holding: &str, failing: &str) {
    for (texts, expected) in [(holding, true), (failing, false)] {
        for text in texts.split(';').map(str::trim) {
            let tree = condition(text, &all_values());
            assert_eq!(holds(t, &tree), expected, "{text}");
            assert_eq!(holds(t, &tree.not()), !expected, "NOT ({text})");
        }
    }
}

fn create_subject(t: &Fixture) {
    t.create_with(plain(), [subject()]);
}

pub(super) fn equality_compares_type_and_value(t: &mut Fixture) {
    create_subject(t);
    let holding = "
        s = :banana; n = :five; n = n2; b = :b; yes = :true; nil = :null; ss = :ss; ns = :ns;
        l = :l; m = :m; m.inside.deep <> :c; l[0] = :one; l[2] = :l1; l[2][0] = :one; m.k = l[0];
        blank = :none; :five = :five; :five = n
    ";
    let failing = "
        s = :apple; n = :four; n = :text5; s = n; b = :b12; yes = :false; nil = :false; ss = :x;
        l = :l1; m = :l; ns = :one; l[1] = :one
    ";
    check(t, holding, failing);
}

pub(super) fn inequality_is_true_for_other_types_and_missing_values(t: &mut Fixture) {
    create_subject(t);
    let holding = "
        s <> :apple; n <> :text5; s <> n; absent <> :one; :one <> absent; q <> z;
        m.absent <> :one; l[9] <> :one; s[0] <> :one
    ";
    let failing = "
        s <> :banana; n <> n2; ss <> :ss; nil <> :null
    ";
    check(t, holding, failing);
}

pub(super) fn ordering_compares_only_values_of_one_type(t: &mut Fixture) {
    create_subject(t);
    let holding = "
        s < :c; s <= :banana; s > :apple; s >= :banana; s2 < s; n < :six; n <= :five; n > :four;
        n >= :five; n < n7; b > :b12; b < :b23; blank < s; :four < n
    ";
    let failing = "
        s < :apple; s < :banana; s > :banana; n < :five; n > :five; n < :text5; n > :text5;
        n < :c; s > n; b < :b12; absent < :one; absent > :one; absent >= :one; yes < :one;
        l > :one; n <= absent
    ";
    check(t, holding, failing);
}

pub(super) fn between_includes_both_bounds(t: &mut Fixture) {
    create_subject(t);
    let holding = "
        n BETWEEN :four AND :six; n BETWEEN :five AND :six; n BETWEEN :four AND :five;
        s BETWEEN :apple AND :c; :five BETWEEN :four AND n7; b BETWEEN :b12 AND :b23;
        n BETWEEN n2 AND n7
    ";
    let failing = "
        n BETWEEN :six AND :seven; s BETWEEN :c AND :x; absent BETWEEN :four AND :six;
        yes BETWEEN :four AND :six; n BETWEEN s AND n7; n BETWEEN n7 AND n2;
        n BETWEEN :four AND absent; s BETWEEN :four AND :six
    ";
    check(t, holding, failing);
}

pub(super) fn in_matches_any_listed_value(t: &mut Fixture) {
    create_subject(t);
    let holding = "
        n IN (:four, :five); n IN (:five); s IN (:banana, :five, :null); nil IN (:null);
        ss IN (:one, :ss); n IN (:four, n2); l IN (:l); :one IN (l[0], l[1])
    ";
    let failing = "
        n IN (:four, :six); n IN (:text5); absent IN (:one, :two); s IN (:x, n)
    ";
    check(t, holding, failing);
}

pub(super) fn logical_operators_nest(t: &mut Fixture) {
    create_subject(t);
    let holding = "
        n = :five AND s = :banana; n = :four OR s = :banana; NOT n = :four AND s = :banana;
        n = :four AND s = :banana OR yes = :true; yes = :true OR n = :four AND s = :apple;
        NOT (n = :four OR s = :apple); (n = :five OR n = :four) AND (s = :banana);
        NOT NOT n = :five
    ";
    let failing = "
        n = :five AND s = :apple; n = :four OR s = :apple;
        (yes = :true OR n = :four) AND s = :apple; NOT n = :five
    ";
    check(t, holding, failing);
}

pub(super) fn attribute_exists_checks_the_path(t: &mut Fixture) {
    create_subject(t);
    let holding = "
        attribute_exists(pk); attribute_exists(nil); attribute_exists(m.inside.deep);
        attribute_exists(l[2][0]); attribute_exists(blank); attribute_not_exists(absent);
        attribute_not_exists(m.absent); attribute_not_exists(l[3]); attribute_not_exists(s.x);
        attribute_not_exists(m[0]); attribute_not_exists(l.k)
    ";
    let failing = "
        attribute_exists(absent); attribute_not_exists(nil); attribute_exists(l[3])
    ";
    check(t, holding, failing);
}

pub(super) fn attribute_type_matches_exactly(t: &mut Fixture) {
    create_subject(t);
    let types = [
        ("s", "S"),
        ("n", "N"),
        ("b", "B"),
        ("yes", "BOOL"),
        ("nil", "NULL"),
        ("ss", "SS"),
        ("ns", "NS"),
        ("bs", "BS"),
        ("l", "L"),
        ("m", "M"),
    ];
    for (attribute, own) in types {
        for (_, other) in types {
            let text = format!("attribute_type({attribute}, :{other})");
            let tree = condition(&text, &all_values());
            assert_eq!(holds(t, &tree), own == other, "{attribute} is {other}");
        }
    }
    let absent = Condition::attribute_type("absent", ValueType::S);
    assert!(!holds(t, &absent));
    let nested = Condition::attribute_type(Path::attribute("m").field("inside"), ValueType::M);
    assert!(holds(t, &nested));
}

pub(super) fn begins_with_supports_strings_and_binary(t: &mut Fixture) {
    create_subject(t);
    let holding = "
        begins_with(s, :ban); begins_with(s, :banana); begins_with(s, :none);
        begins_with(b, :b12); begins_with(:banana, blank); begins_with(m.inside.deep, :none)
    ";
    let failing = "
        begins_with(s, :nan); begins_with(s, :b12); begins_with(b, :ban); begins_with(n, :text5);
        begins_with(absent, :ban); begins_with(b, :b23); begins_with(s, absent);
        begins_with(ss, :x); begins_with(s, n)
    ";
    check(t, holding, failing);
}

pub(super) fn contains_supports_strings_binary_sets_and_lists(t: &mut Fixture) {
    create_subject(t);
    let holding = "
        contains(s, :nan); contains(s, :none); contains(b, :b23); contains(ss, :x);
        contains(ns, :two); contains(bs, :p); contains(l, :one); contains(l, :word);
        contains(l, :l1); contains(:banana, s); contains(:l, n) OR contains(:l, m.k)
    ";
    let failing = "
        contains(s, :c); contains(s, :five); contains(ss, :c); contains(ns, :word);
        contains(l, :two); contains(m, :one); contains(n, :five); contains(absent, :one);
        contains(b, :nan); contains(s, absent)
    ";
    check(t, holding, failing);
}

pub(super) fn size_counts_characters_bytes_and_elements(t: &mut Fixture) {
    create_subject(t);
    // Strings are counted in UTF-16 units, as in DynamoDB: `uni` has 1 for é and 2 for the ice cube.
    let holding = "
        size(s) = :six; size(b) = :three; size(ss) = :two; size(ns) = :three; size(bs) = :two;
        size(l) = :three; size(m) = :two; size(s) > size(s2); size(m.inside) = :one;
        size(blank) < :one; size(s) BETWEEN :five AND :seven; size(l) IN (:two, :three);
        size(s) <> :five; size(uni) = :three
    ";
    let failing = "
        size(n) = :one; size(yes) = :one; size(absent) = :one; size(s) = :banana; size(s) < :six;
        size(n) > :one
    ";
    check(t, holding, failing);
}

pub(super) fn missing_item_is_evaluated_as_an_empty_item(t: &mut Fixture) {
    t.create(plain());
    let failing = [
        "attribute_exists(pk)",
        "n = :five",
        "size(s) > :one",
        "contains(s, :x)",
    ];
    for text in failing {
        condition_failed(t.write(touch("new", condition(text, &all_values()))));
    }
    t.write(touch(
        "new",
        condition("attribute_not_exists(pk) AND n <> :five", &all_values()),
    ))
    .unwrap();
}

pub(super) fn operand_types_are_validated(t: &mut Fixture) {
    t.create(plain());
    let n = || Path::from("n");
    let write = |tree| t.write(touch("a", tree));
    rejections! {
        write(Condition::lt(n(), true)) => "operator or function: <, operand type: BOOL";
        write(Condition::ge(n(), list([1]))) => "operator or function: >=, operand type: L";
        write(Condition::between(n(), Value::Null, Value::Null))
            => "operator or function: BETWEEN, operand type: NULL";
        write(Condition::begins_with(n(), 1)) => "operator or function: begins_with, operand type: N";
    }
}

pub(super) fn between_bounds_must_have_one_type_and_be_in_order(t: &mut Fixture) {
    t.create(plain());
    let between =
        |low: Value, high: Value| touch("a", Condition::between(Path::from("n"), low, high));
    rejections! {
        t.write(between("a".into(), 1.into()))
            => "The BETWEEN operator requires same data type for lower and upper bounds; \
         lower bound operand: AttributeValue: {S:a}, upper bound operand: AttributeValue: {N:1}";
        t.write(between(2.into(), 1.into()))
            => "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; \
         lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}";
    }
    let path = |name: &str| Operand::Path(Path::from(name));
    let open = Condition::between(path("n"), path("low"), Operand::from(1));
    condition_failed(t.write(touch("a", open)));
}

pub(super) fn operands_must_be_distinct(t: &mut Fixture) {
    t.create(plain());
    let path = |name: &str| Operand::Path(Path::from(name));
    for tree in [
        Condition::eq(path("a"), path("a")),
        Condition::is_in(path("a"), [path("b"), path("a")]),
        Condition::contains(path("a"), path("a")),
    ] {
        rejected(
            t.write(touch("a", tree)),
            "The first operand must be distinct from the remaining operands for this operator or function",
        );
    }
}
