//! PutItem: sets the whole item.

use floe_store::op::{PutItem, ReturnValues};
use floe_store::table::KeyKind;
use floe_store::{Item, TableDef};

use super::fixture::*;

pub(super) async fn stores_every_type_of_value(t: &mut Fixture) {
    t.create(plain()).await;
    t.put("Plain", every_type("a")).await.unwrap();
    t.assert_item("Plain", every_type("a")).await;
    t.reopen().await;
    t.assert_item("Plain", every_type("a")).await;
}

pub(super) async fn replaces_the_whole_item(t: &mut Fixture) {
    t.create(plain()).await;
    t.fill("Plain", [item("a").with("x", 1).with("y", 2)]).await;
    t.put("Plain", item("a").with("z", 3)).await.unwrap();
    t.assert_item("Plain", item("a").with("z", 3)).await;
}

pub(super) async fn keeps_items_of_different_keys_apart(t: &mut Fixture) {
    t.create(sorted()).await;
    let items = [
        row("a", 1).with("v", "a1"),
        row("a", 2).with("v", "a2"),
        row("b", 1).with("v", "b1"),
        // Keys of which one is a prefix of the other must not run into each other.
        row("a\0", 1).with("v", "a0"),
        row("ab", 1).with("v", "ab"),
    ];
    t.fill("Sorted", items.clone()).await;
    for expected in items {
        let key: Item = expected
            .clone()
            .into_iter()
            .filter(|(name, _)| name != "v")
            .collect();
        assert_eq!(t.get("Sorted", key).await, Some(expected));
    }
}

pub(super) async fn number_keys_are_equal_by_value(t: &mut Fixture) {
    t.create(TableDef::builder("Numbers", "pk", KeyKind::N))
        .await;
    let key = |text: &str| Item::new().with("pk", number(text));
    t.put("Numbers", key("1.0").with("v", 1)).await.unwrap();
    t.put("Numbers", key("1e0").with("v", 2)).await.unwrap();
    t.put("Numbers", key("-0").with("v", 3)).await.unwrap();
    assert_eq!(
        t.get("Numbers", key("1")).await,
        Some(key("1").with("v", 2))
    );
    assert_eq!(
        t.get("Numbers", key("0.00")).await,
        Some(key("0").with("v", 3))
    );
}

pub(super) async fn keys_may_be_binary(t: &mut Fixture) {
    t.create(TableDef::builder("Binary", "pk", KeyKind::B).sort_key("sk", KeyKind::B))
        .await;
    let key = |pk: &[u8], sk: &[u8]| Item::new().with("pk", pk).with("sk", sk);
    let keys = [
        key(&[0], &[0]),
        key(&[0, 0], &[0]),
        key(&[0], &[0, 0]),
        key(&[255], &[255, 255]),
        key(&[0, 255], &[1]),
    ];
    for (n, key) in (0..).zip(&keys) {
        t.put("Binary", key.clone().with("n", n)).await.unwrap();
    }
    for (n, key) in (0..).zip(&keys) {
        assert_eq!(
            t.get("Binary", key.clone()).await,
            Some(key.clone().with("n", n))
        );
    }
}

pub(super) async fn returns_the_old_item_when_asked(t: &mut Fixture) {
    t.create(plain()).await;
    let put =
        |v: i32| PutItem::new("Plain", item("a").with("v", v)).return_values(ReturnValues::AllOld);
    assert_eq!(t.write(put(1)).await.unwrap().attributes, None);
    assert_eq!(
        t.write(put(2)).await.unwrap().attributes,
        Some(item("a").with("v", 1))
    );
    let silent = t.put("Plain", item("a").with("v", 3)).await.unwrap();
    assert_eq!(silent.attributes, None);
    assert_eq!(silent.consumed, None);
    assert_eq!(silent.collection, None);
}

pub(super) async fn returns_nothing_but_the_old_item(t: &mut Fixture) {
    t.create(plain()).await;
    for which in [
        ReturnValues::AllNew,
        ReturnValues::UpdatedOld,
        ReturnValues::UpdatedNew,
    ] {
        let put = PutItem::new("Plain", item("a")).return_values(which);
        refused(t.write(put).await, ONLY_OLD);
    }
    assert_eq!(t.get("Plain", item("a")).await, None);
}

pub(super) async fn writes_only_if_the_condition_holds(t: &mut Fixture) {
    t.create(plain()).await;
    let create = |v: i32| {
        PutItem::new("Plain", item("a").with("v", v))
            .condition(bare_condition("attribute_not_exists(pk)"))
    };
    t.write(create(1)).await.unwrap();
    assert_eq!(condition_failed(t.write(create(2)).await), None);
    t.assert_item("Plain", item("a").with("v", 1)).await;

    let replace = PutItem::new("Plain", item("a").with("v", 3))
        .condition(condition("v = :old", &values! {"old" => 1}));
    t.write(replace.clone()).await.unwrap();
    assert_eq!(condition_failed(t.write(replace).await), None);
    t.assert_item("Plain", item("a").with("v", 3)).await;
}

pub(super) async fn a_failed_condition_returns_the_item_when_asked(t: &mut Fixture) {
    t.create(plain()).await;
    let put = PutItem::new("Plain", item("a").with("v", 2))
        .condition(bare_condition("attribute_exists(absent)"))
        .return_old_on_failure();
    assert_eq!(
        condition_failed(t.write(put.clone()).await),
        None,
        "there is no item yet"
    );
    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    assert_eq!(
        condition_failed(t.write(put).await),
        Some(item("a").with("v", 1))
    );
}

pub(super) async fn a_missing_table_is_not_found(t: &mut Fixture) {
    no_table(t.put("Nowhere", item("a")).await);
}

pub(super) async fn the_request_is_checked_before_the_table_is_looked_up(t: &mut Fixture) {
    let put = PutItem::new("Nowhere", item("a")).return_values(ReturnValues::AllNew);
    refused(t.write(put).await, ONLY_OLD);
    // The key is checked against the table, which has to be there first.
    no_table(t.put("Nowhere", Item::new()).await);
}

pub(super) async fn the_item_carries_its_key(t: &mut Fixture) {
    t.create(sorted()).await;
    refused(
        t.put("Sorted", item("a")).await,
        "Missing the key sk in the item",
    );
    refused(
        t.put("Sorted", Item::new().with("sk", 1)).await,
        "Missing the key pk in the item",
    );
    refused(
        t.put("Sorted", row("a", "text")).await,
        "Type mismatch for key sk expected: N actual: S",
    );
    refused(
        t.put("Sorted", Item::new().with("pk", true).with("sk", 1))
            .await,
        "Type mismatch for key pk expected: S actual: BOOL",
    );
}
