//! DeleteItem: removes an item.

use floe_store::op::DeleteItem;
use floe_store::op::ReturnValues::{AllNew, AllOld, UpdatedNew, UpdatedOld};

use super::fixture::*;

pub(super) fn removes_the_item_and_no_other(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", 1..=3));
    t.delete("Sorted", row("a", 2));
    t.assert_item("Sorted", row("a", 1));
    assert_eq!(t.get("Sorted", row("a", 2)), None);
    t.assert_item("Sorted", row("a", 3));
}

pub(super) fn a_missing_item_is_no_error(t: &mut Fixture) {
    t.create(plain());
    let delete = DeleteItem::new("Plain", item("a")).return_values(AllOld);
    assert_eq!(t.write(delete).unwrap().attributes, None);
}

pub(super) fn returns_the_old_item_when_asked(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("v", 1)]);
    let delete = DeleteItem::new("Plain", item("a")).return_values(AllOld);
    let old = t.write(delete).unwrap().attributes;
    assert_eq!(old, Some(item("a").with("v", 1)));
    assert_eq!(t.get("Plain", item("a")), None);
}

pub(super) fn returns_nothing_but_the_old_item(t: &mut Fixture) {
    t.create_with(plain(), [item("a")]);
    for which in [AllNew, UpdatedOld, UpdatedNew] {
        let delete = DeleteItem::new("Plain", item("a")).return_values(which);
        refused(t.write(delete), ONLY_OLD);
    }
    t.assert_item("Plain", item("a"));
}

pub(super) fn removes_only_if_the_condition_holds(t: &mut Fixture) {
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

pub(super) fn a_condition_on_a_missing_item_sees_an_empty_one(t: &mut Fixture) {
    t.create(plain());
    let delete = |text: &str| DeleteItem::new("Plain", item("a")).condition(bare_condition(text));
    t.write(delete("attribute_not_exists(pk)")).unwrap();
    let found = condition_failed(t.write(delete("attribute_exists(pk)")));
    assert_eq!(found, None);
}

pub(super) fn the_key_must_be_exactly_the_tables(t: &mut Fixture) {
    t.create(sorted());
    for key in wrong_keys() {
        refused(t.write(DeleteItem::new("Sorted", key)), WRONG_KEY);
    }
}

pub(super) fn an_item_can_come_back(t: &mut Fixture) {
    t.create(plain());
    for v in 0..3 {
        t.put("Plain", item("a").with("v", v)).unwrap();
        t.delete("Plain", item("a"));
        assert_eq!(t.get("Plain", item("a")), None);
    }
    t.put("Plain", item("a").with("v", 9)).unwrap();
    t.assert_item("Plain", item("a").with("v", 9));
}
