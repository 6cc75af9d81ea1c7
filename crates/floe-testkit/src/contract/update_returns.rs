//! What UpdateItem returns.

use floe_store::Item;
use floe_store::op::{ReturnValues, UpdateItem};

use super::fixture::*;

pub(super) async fn returns_what_was_asked_for(t: &mut Fixture) {
    t.create(plain()).await;
    let before = item("a").with("x", 1).with("y", 2).with("gone", 3);
    let after = item("a").with("x", 5).with("y", 2).with("new", 6);
    let answers = [
        (ReturnValues::None, None),
        (ReturnValues::AllOld, Some(before.clone())),
        (ReturnValues::AllNew, Some(after)),
        (
            ReturnValues::UpdatedOld,
            Some(Item::new().with("x", 1).with("gone", 3)),
        ),
        (
            ReturnValues::UpdatedNew,
            Some(Item::new().with("x", 5).with("new", 6)),
        ),
    ];
    for (which, expected) in answers {
        t.put("Plain", before.clone()).await.unwrap();
        let values = values! {"x" => 5, "new" => 6};
        let tree = update("SET x = :x, #new = :new REMOVE gone", &values);
        let write = UpdateItem::new("Plain", item("a"), tree).return_values(which);
        assert_eq!(
            t.write(write).await.unwrap().attributes,
            expected,
            "{which:?}"
        );
    }
}

pub(super) async fn returns_nothing_where_there_is_nothing(t: &mut Fixture) {
    t.create(plain()).await;
    let returned = |which| {
        let tree = update("SET x = :x", &values! {"x" => 5});
        UpdateItem::new("Plain", item("a"), tree).return_values(which)
    };
    assert_eq!(
        t.write(returned(ReturnValues::AllOld))
            .await
            .unwrap()
            .attributes,
        None
    );
    t.put("Plain", item("a")).await.unwrap();
    assert_eq!(
        t.write(returned(ReturnValues::UpdatedOld))
            .await
            .unwrap()
            .attributes,
        None
    );
    let remove = update_item("Plain", item("a"), "REMOVE x", &values! {})
        .return_values(ReturnValues::UpdatedNew);
    assert_eq!(t.write(remove).await.unwrap().attributes, None);
}

pub(super) async fn returns_only_the_updated_parts_of_documents(t: &mut Fixture) {
    t.create(plain()).await;
    let document = item("a").with(
        "m",
        map([("x", 1.into()), ("y", 2.into()), ("l", list([1, 2, 3]))]),
    );
    let check = [
        ("SET m.x = :v", ReturnValues::UpdatedOld, map([("x", 1)])),
        ("SET m.x = :v", ReturnValues::UpdatedNew, map([("x", 9)])),
        (
            "SET m.l[1] = :v",
            ReturnValues::UpdatedNew,
            map([("l", list([9]))]),
        ),
        (
            "SET m.x = :v, m.l[1] = :v",
            ReturnValues::UpdatedNew,
            map([("x", 9.into()), ("l", list([9]))]),
        ),
    ];
    for (text, which, expected) in check {
        t.put("Plain", document.clone()).await.unwrap();
        let tree = update(text, &values! {"v" => 9});
        let write = UpdateItem::new("Plain", item("a"), tree).return_values(which);
        let attributes = t.write(write).await.unwrap().attributes;
        assert_eq!(
            attributes,
            Some(Item::new().with("m", expected)),
            "{text} {which:?}"
        );
    }
}
