//! PutItem: stores a whole item.

use floe_store::op::PutItem;
use floe_store::op::ReturnValues::{AllNew, AllOld, UpdatedNew, UpdatedOld};
use floe_store::table::KeyKind;
use floe_store::{Item, TableDef};

use super::fixture::*;

pub(super) fn stores_every_type_of_value(t: &mut Fixture) {
    t.create_with(plain(), [every_type("a")]);
    t.assert_item("Plain", every_type("a"));
    t.reopen();
    t.assert_item("Plain", every_type("a"));
}

pub(super) fn replaces_the_whole_item(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("x", 1).with("y", 2)]);
    t.put("Plain", item("a").with("z", 3)).unwrap();
    t.assert_item("Plain", item("a").with("z", 3));
}

pub(super) fn stores_items_with_similar_keys_separately(t: &mut Fixture) {
    t.create(sorted());
    let items = [
        row("a", 1).with("v", "a1"),
        row("a", 2).with("v", "a2"),
        row("b", 1).with("v", "b1"),
        // Keys that are prefixes of other keys must not be confused.
        row("a\0", 1).with("v", "a0"),
        row("ab", 1).with("v", "ab"),
    ];
    t.fill("Sorted", items.clone());
    for expected in items {
        t.assert_item("Sorted", expected);
    }
}

pub(super) fn number_keys_are_compared_by_value(t: &mut Fixture) {
    t.create(TableDef::builder("Numbers", "pk", KeyKind::N));
    let key = |text: &str| Item::new().with("pk", number(text));
    t.put("Numbers", key("1.0").with("v", 1)).unwrap();
    t.put("Numbers", key("1e0").with("v", 2)).unwrap();
    t.put("Numbers", key("-0").with("v", 3)).unwrap();
    assert_eq!(t.get("Numbers", key("1")), Some(key("1").with("v", 2)));
    assert_eq!(t.get("Numbers", key("0.00")), Some(key("0").with("v", 3)));
}

pub(super) fn binary_keys_are_supported(t: &mut Fixture) {
    t.create(TableDef::builder("Binary", "pk", KeyKind::B).sort_key("sk", KeyKind::B));
    let key = |pk: &[u8], sk: &[u8]| Item::new().with("pk", pk).with("sk", sk);
    let keys = [
        key(&[0], &[0]),
        key(&[0, 0], &[0]),
        key(&[0], &[0, 0]),
        key(&[255], &[255, 255]),
        key(&[0, 255], &[1]),
    ];
    for (n, key) in (0..).zip(&keys) {
        t.put("Binary", key.clone().with("n", n)).unwrap();
    }
    for (n, key) in (0..).zip(&keys) {
        assert_eq!(t.get("Binary", key.clone()), Some(key.clone().with("n", n)));
    }
}

pub(super) fn returns_the_old_item_on_request(t: &mut Fixture) {
    t.create(plain());
    let put = |v: i32| PutItem::new("Plain", item("a").with("v", v)).return_values(AllOld);
    assert_eq!(t.write(put(1)).unwrap().attributes, None);
    let old = t.write(put(2)).unwrap().attributes;
    assert_eq!(old, Some(item("a").with("v", 1)));
    let unrequested = t.put("Plain", item("a").with("v", 3)).unwrap();
    assert_eq!(unrequested.attributes, None);
    assert_eq!(unrequested.consumed, None);
    assert_eq!(unrequested.collection, None);
}

pub(super) fn only_old_return_values_are_allowed(t: &mut Fixture) {
    t.create(plain());
    for which in [AllNew, UpdatedOld, UpdatedNew] {
        let put = PutItem::new("Plain", item("a")).return_values(which);
        rejected(t.write(put), ONLY_OLD);
    }
    assert_eq!(t.get("Plain", item("a")), None);
}

pub(super) fn writes_only_if_the_condition_is_met(t: &mut Fixture) {
    t.create(plain());
    let create = |v: i32| {
        PutItem::new("Plain", item("a").with("v", v))
            .condition(bare_condition("attribute_not_exists(pk)"))
    };
    t.write(create(1)).unwrap();
    assert_eq!(condition_failed(t.write(create(2))), None);
    t.assert_item("Plain", item("a").with("v", 1));

    let replace = PutItem::new("Plain", item("a").with("v", 3))
        .condition(condition("v = :old", &values! {"old" => 1}));
    t.write(replace.clone()).unwrap();
    assert_eq!(condition_failed(t.write(replace)), None);
    t.assert_item("Plain", item("a").with("v", 3));
}

pub(super) fn failed_condition_returns_the_item_on_request(t: &mut Fixture) {
    t.create(plain());
    let put = PutItem::new("Plain", item("a").with("v", 2))
        .condition(bare_condition("attribute_exists(absent)"))
        .return_old_on_failure();
    let found = condition_failed(t.write(put.clone()));
    assert_eq!(found, None, "the item does not exist");
    t.put("Plain", item("a").with("v", 1)).unwrap();
    assert_eq!(condition_failed(t.write(put)), Some(item("a").with("v", 1)));
}

pub(super) fn missing_table_is_not_found(t: &mut Fixture) {
    table_not_found(t.put("Nowhere", item("a")));
}

pub(super) fn request_is_validated_before_the_table_is_looked_up(t: &mut Fixture) {
    let put = PutItem::new("Nowhere", item("a")).return_values(AllNew);
    rejected(t.write(put), ONLY_OLD);
    // The key can only be validated against an existing table.
    table_not_found(t.put("Nowhere", Item::new()));
}

pub(super) fn item_must_contain_its_key(t: &mut Fixture) {
    t.create(sorted());
    rejections! {
        t.put("Sorted", item("a")) => "Missing the key sk in the item";
        t.put("Sorted", Item::new().with("sk", 1)) => "Missing the key pk in the item";
        t.put("Sorted", row("a", "text")) => "Type mismatch for key sk expected: N actual: S";
        t.put("Sorted", Item::new().with("pk", true).with("sk", 1))
            => "Type mismatch for key pk expected: S actual: BOOL";
    }
}
