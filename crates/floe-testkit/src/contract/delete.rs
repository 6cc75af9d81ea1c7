//! DeleteItem: deletes an item.

use floe_store::op::DeleteItem;
use floe_store::op::ReturnValues::{AllNew, AllOld, UpdatedNew, UpdatedOld};

use super::fixture::*;

pub(super) fn removes_only_the_given_item(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", 1..=3));
    t.delete("Sorted", row("a", 2));
    t.assert_item("Sorted", row("a", 1));
    assert_eq!(t.get("Sorted", row("a", 2)), None);
    t.assert_item("Sorted", row("a", 3));
}

pub(super) fn missing_item_is_not_an_error(t: &mut Fixture) {
    t.create(plain());
    let delete = DeleteItem::new("Plain", item("a")).return_values(AllOld);
    assert_eq!(t.write(delete).unwrap().attributes, None);
}

pub(super) fn returns_the_old_item_on_request(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("v", 1)]);
    let delete = DeleteItem::new("Plain", item("a")).return_values(AllOld);
    let old = t.write(delete).unwrap().attributes;
    assert_eq!(old, Some(item("a").with("v", 1)));
    assert_eq!(t.get("Plain", item("a")), None);
}

pub(super) fn only_old_return_values_are_allowed(t: &mut Fixture) {
    t.create_with(plain(), [item("a")]);
    for which in [AllNew, UpdatedOld, UpdatedNew] {
        let delete = DeleteItem::new("Plain", item("a")).return_values(which);
        rejected(t.write(delete), ONLY_OLD);
    }
    t.assert_item("Plain", item("a"));
}

pub(super) fn removes_only_if_the_condition_is_met(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("v", 1)]);
    let delete = |v: i32| {
        DeleteItem::new("Plain", item("a"))
            .condition(condition("v = :v", &values! {"v" => v}))
            .return_old_on_failure()
    };
    let found = condition_failed(t.write(delete(2)));
    assert_eq!(found, Some(item("a").with("v", 1)));
    t.assert_item("Plain", item("a").with("v", 1));
    t.write(delete(1)).unwrap();
    assert_eq!(t.get("Plain", item("a")), None);
}

pub(super) fn missing_item_is_evaluated_as_an_empty_item(t: &mut Fixture) {
    t.create(plain());
    let delete = |text: &str| DeleteItem::new("Plain", item("a")).condition(bare_condition(text));
    t.write(delete("attribute_not_exists(pk)")).unwrap();
    let found = condition_failed(t.write(delete("attribute_exists(pk)")));
    assert_eq!(found, None);
}

pub(super) fn key_must_match_the_key_schema(t: &mut Fixture) {
    t.create(sorted());
    for key in wrong_keys() {
        rejected(t.write(DeleteItem::new("Sorted", key)), WRONG_KEY);
    }
}

pub(super) fn deleted_item_can_be_put_again(t: &mut Fixture) {
    t.create(plain());
    for v in 0..3 {
        t.put("Plain", item("a").with("v", v)).unwrap();
        t.delete("Plain", item("a"));
        assert_eq!(t.get("Plain", item("a")), None);
    }
    t.put("Plain", item("a").with("v", 9)).unwrap();
    t.assert_item("Plain", item("a").with("v", 9));
}
