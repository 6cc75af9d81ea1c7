//! The return values of UpdateItem.

use floe_store::Item;
use floe_store::op::ReturnValues::{self, AllNew, AllOld, UpdatedNew, UpdatedOld};

use super::fixture::*;

/// The return value of an update.
#[track_caller]
fn returned(t: &Fixture, text: &str, values: &Values, which: ReturnValues) -> Option<Item> {
    let write = update_item("Plain", item("a"), text, values).return_values(which);
    t.write(write).unwrap().attributes
}

pub(super) fn return_values_select_the_returned_attributes(t: &mut Fixture) {
    t.create(plain());
    let before = item("a").with("x", 1).with("y", 2).with("gone", 3);
    let after = item("a").with("x", 5).with("y", 2).with("new", 6);
    let responses = [
        (ReturnValues::None, None),
        (AllOld, Some(before.clone())),
        (AllNew, Some(after)),
        (UpdatedOld, Some(Item::new().with("x", 1).with("gone", 3))),
        (UpdatedNew, Some(Item::new().with("x", 5).with("new", 6))),
    ];
    for (which, expected) in responses {
        t.fill("Plain", [before.clone()]);
        let text = "SET x = :x, #new = :new REMOVE gone";
        let returned = returned(t, text, &values! {"x" => 5, "new" => 6}, which);
        assert_eq!(returned, expected, "{which:?}");
    }
}

pub(super) fn nothing_is_returned_for_missing_attributes(t: &mut Fixture) {
    t.create(plain());
    let values = values! {"x" => 5};
    assert_eq!(returned(t, "SET x = :x", &values, AllOld), None);
    t.put("Plain", item("a")).unwrap();
    assert_eq!(returned(t, "SET x = :x", &values, UpdatedOld), None);
    assert_eq!(returned(t, "REMOVE x", &values! {}, UpdatedNew), None);
}

pub(super) fn returns_only_the_updated_parts_of_documents(t: &mut Fixture) {
    t.create(plain());
    let before = map([("x", 1.into()), ("y", 2.into()), ("l", list([1, 2, 3]))]);
    let both = map([("x", 9.into()), ("l", list([9]))]);
    let responses = [
        ("SET m.x = :v", UpdatedOld, map([("x", 1)])),
        ("SET m.x = :v", UpdatedNew, map([("x", 9)])),
        ("SET m.l[1] = :v", UpdatedNew, map([("l", list([9]))])),
        ("SET m.x = :v, m.l[1] = :v", UpdatedNew, both),
    ];
    for (text, which, expected) in responses {
        t.fill("Plain", [item("a").with("m", before.clone())]);
        let returned = returned(t, text, &values! {"v" => 9}, which);
        let expected = Some(Item::new().with("m", expected));
        assert_eq!(returned, expected, "{text} {which:?}");
    }
}
