//! GetItem: reads one item by its key.

use floe_store::op::{GetItem, PutItem};
use floe_store::{Item, Value};

use super::fixture::*;

async fn projected(t: &Fixture, paths: &str) -> Item {
    let get = GetItem::new("Plain", item("a")).projection(projection(paths));
    let output = t.get_item(get).await.unwrap();
    output.item.expect("the item is there")
}

pub(super) async fn a_missing_item_is_no_error(t: &mut Fixture) {
    t.create(plain()).await;
    let output = t.get_item(GetItem::new("Plain", item("a"))).await.unwrap();
    assert_eq!(output.item, None);
    assert_eq!(output.consumed, None);
}

pub(super) async fn reads_consistently_and_eventually(t: &mut Fixture) {
    t.create(plain()).await;
    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    let strong = t.get_item(GetItem::new("Plain", item("a"))).await.unwrap();
    assert_eq!(strong.item, Some(item("a").with("v", 1)));
    let eventual = GetItem::new("Plain", item("a")).eventual();
    assert!(t.get_item(eventual).await.is_ok());
}

pub(super) async fn sees_every_write_answered_before(t: &mut Fixture) {
    t.create(plain()).await;
    for v in 0..20 {
        t.put("Plain", item("a").with("v", v)).await.unwrap();
        t.assert_item("Plain", item("a").with("v", v)).await;
    }
}

pub(super) async fn returns_only_the_projected_attributes(t: &mut Fixture) {
    t.create(plain()).await;
    t.fill("Plain", [item("a").with("x", 1).with("y", 2).with("z", 3)])
        .await;
    assert_eq!(
        projected(t, "x, z").await,
        Item::new().with("x", 1).with("z", 3)
    );
    assert_eq!(projected(t, "pk, absent").await, item("a"));
    assert_eq!(
        projected(t, "absent").await,
        Item::new(),
        "the item is there, without hits"
    );
}

pub(super) async fn projects_into_documents(t: &mut Fixture) {
    t.create(plain()).await;
    let document = item("a")
        .with(
            "m",
            map([("x", map([("deep", 1), ("other", 2)])), ("y", 3.into())]),
        )
        .with("l", list([10, 11, 12, 13]))
        .with("s", "scalar")
        .with(
            "mixed",
            list([map([("k", 1), ("j", 2)]), map([("k", 3), ("j", 4)])]),
        );
    t.put("Plain", document).await.unwrap();

    let deep = Item::new().with("m", map([("x", map([("deep", 1)]))]));
    assert_eq!(projected(t, "m.x.deep").await, deep);
    // Elements close up, in the order of the list, whatever the order asked.
    assert_eq!(
        projected(t, "l[3], l[1]").await,
        Item::new().with("l", list([11, 13]))
    );
    let keyed = Item::new().with("mixed", list([map([("k", 1)]), map([("j", 4)])]));
    assert_eq!(projected(t, "mixed[0].k, mixed[1].j").await, keyed);
    // A path that does not fit the document is skipped.
    assert_eq!(projected(t, "m[0], l[9], s.x").await, Item::new());
}

pub(super) async fn names_with_dots_are_one_attribute(t: &mut Fixture) {
    t.create(plain()).await;
    let dotted = item("a").with("x.y", 1).with("x", map([("y", 2)]));
    t.put("Plain", dotted).await.unwrap();
    let get = |path: floe_store::expr::Path| {
        GetItem::new("Plain", item("a")).projection(floe_store::expr::Paths(vec![path]))
    };
    let whole = t.get_item(get("x.y".into())).await.unwrap();
    assert_eq!(whole.item, Some(Item::new().with("x.y", 1)));
    let nested = floe_store::expr::Path::attribute("x").field("y");
    let nested = t.get_item(get(nested)).await.unwrap();
    assert_eq!(nested.item, Some(Item::new().with("x", map([("y", 2)]))));
}

pub(super) async fn the_key_must_be_exactly_the_tables(t: &mut Fixture) {
    t.create(sorted()).await;
    let keys = [
        Item::new(),
        item("a"),
        Item::new().with("sk", 1),
        row("a", "text"),
        row("a", Value::Null),
        row("a", 1).with("extra", 1),
        item("a").with("other", 1),
    ];
    for key in keys {
        let output = t.get_item(GetItem::new("Sorted", key)).await;
        refused(output, WRONG_KEY);
    }
}

pub(super) async fn projected_paths_must_not_overlap(t: &mut Fixture) {
    t.create(plain()).await;
    for (one, two) in [("x", "x"), ("x", "x.y"), ("x[0].y", "x[0]")] {
        let path = |text: &str| projection(text).0.remove(0);
        let paths = floe_store::expr::Paths(vec![path(one), path(two)]);
        let get = GetItem::new("Plain", item("a")).projection(paths);
        refused(t.get_item(get).await, OVERLAP);
    }
    let path = |text: &str| projection(text).0.remove(0);
    let paths = floe_store::expr::Paths(vec![path("x.y"), path("x[0]")]);
    let get = GetItem::new("Plain", item("a")).projection(paths);
    refused(t.get_item(get).await, CONFLICT);
}

pub(super) async fn a_missing_table_is_not_found(t: &mut Fixture) {
    let output = t.get_item(GetItem::new("Nowhere", item("a"))).await;
    no_table(output);
}

pub(super) async fn reserved_words_are_names_like_any_other_in_trees(t: &mut Fixture) {
    t.create(plain()).await;
    let words = item("a").with("name", 1).with("status", 2).with("size", 3);
    t.write(PutItem::new("Plain", words)).await.unwrap();
    assert_eq!(
        projected(t, "#name, #size").await,
        Item::new().with("name", 1).with("size", 3)
    );
}
