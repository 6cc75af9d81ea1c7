//! DeleteItem: removes an item.

use floe_store::Item;
use floe_store::op::{DeleteItem, ReturnValues};

use super::fixture::*;

pub(super) async fn removes_the_item_and_no_other(t: &mut Fixture) {
    t.create(sorted()).await;
    t.fill("Sorted", rows("a", 1..=3)).await;
    t.delete("Sorted", row("a", 2)).await;
    t.assert_item("Sorted", row("a", 1)).await;
    assert_eq!(t.get("Sorted", row("a", 2)).await, None);
    t.assert_item("Sorted", row("a", 3)).await;
}

pub(super) async fn a_missing_item_is_no_error(t: &mut Fixture) {
    t.create(plain()).await;
    let delete = DeleteItem::new("Plain", item("a")).return_values(ReturnValues::AllOld);
    assert_eq!(t.write(delete).await.unwrap().attributes, None);
}

pub(super) async fn returns_the_old_item_when_asked(t: &mut Fixture) {
    t.create(plain()).await;
    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    let delete = DeleteItem::new("Plain", item("a")).return_values(ReturnValues::AllOld);
    let old = t.write(delete).await.unwrap().attributes;
    assert_eq!(old, Some(item("a").with("v", 1)));
    assert_eq!(t.get("Plain", item("a")).await, None);
}

pub(super) async fn returns_nothing_but_the_old_item(t: &mut Fixture) {
    t.create(plain()).await;
    t.put("Plain", item("a")).await.unwrap();
    for which in [
        ReturnValues::AllNew,
        ReturnValues::UpdatedOld,
        ReturnValues::UpdatedNew,
    ] {
        let delete = DeleteItem::new("Plain", item("a")).return_values(which);
        refused(t.write(delete).await, ONLY_OLD);
    }
    t.assert_item("Plain", item("a")).await;
}

pub(super) async fn removes_only_if_the_condition_holds(t: &mut Fixture) {
    t.create(plain()).await;
    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    let delete = |v: i32| {
        DeleteItem::new("Plain", item("a"))
            .condition(condition("v = :v", &values! {"v" => v}))
            .return_old_on_failure()
    };
    assert_eq!(
        condition_failed(t.write(delete(2)).await),
        Some(item("a").with("v", 1))
    );
    t.assert_item("Plain", item("a").with("v", 1)).await;
    t.write(delete(1)).await.unwrap();
    assert_eq!(t.get("Plain", item("a")).await, None);
}

pub(super) async fn a_condition_on_a_missing_item_sees_an_empty_one(t: &mut Fixture) {
    t.create(plain()).await;
    let delete = |text: &str| DeleteItem::new("Plain", item("a")).condition(bare_condition(text));
    t.write(delete("attribute_not_exists(pk)")).await.unwrap();
    assert_eq!(
        condition_failed(t.write(delete("attribute_exists(pk)")).await),
        None
    );
}

pub(super) async fn the_key_must_be_exactly_the_tables(t: &mut Fixture) {
    t.create(sorted()).await;
    for key in [
        Item::new(),
        item("a"),
        row("a", "text"),
        row("a", 1).with("x", 1),
    ] {
        refused(t.write(DeleteItem::new("Sorted", key)).await, WRONG_KEY);
    }
}

pub(super) async fn an_item_can_come_back(t: &mut Fixture) {
    t.create(plain()).await;
    for v in 0..3 {
        t.put("Plain", item("a").with("v", v)).await.unwrap();
        t.delete("Plain", item("a")).await;
        assert_eq!(t.get("Plain", item("a")).await, None);
    }
    t.put("Plain", item("a").with("v", 9)).await.unwrap();
    t.assert_item("Plain", item("a").with("v", 9)).await;
}
