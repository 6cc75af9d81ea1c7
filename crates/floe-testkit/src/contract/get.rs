//! GetItem: reads one item by its key.

use floe_store::expr::{Path, Paths};
use floe_store::op::{GetItem, PutItem};
use floe_store::{Item, Value};

use super::fixture::*;

fn projected(t: &Fixture, paths: &str) -> Item {
    let get = GetItem::new("Plain", item("a")).projection(projection(paths));
    let output = t.get_item(get).unwrap();
    output.item.expect("the item exists")
}

pub(super) fn missing_item_is_not_an_error(t: &mut Fixture) {
    t.create(plain());
    let output = t.get_item(GetItem::new("Plain", item("a"))).unwrap();
    assert_eq!(output.item, None);
    assert_eq!(output.consumed, None);
}

pub(super) fn consistent_and_eventual_reads_are_supported(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("v", 1)]);
    let strong = t.get_item(GetItem::new("Plain", item("a"))).unwrap();
    assert_eq!(strong.item, Some(item("a").with("v", 1)));
    let eventual = GetItem::new("Plain", item("a")).eventual();
    assert!(t.get_item(eventual).is_ok());
}

pub(super) fn consistent_reads_see_completed_writes(t: &mut Fixture) {
    t.create(plain());
    for v in 0..20 {
        t.put("Plain", item("a").with("v", v)).unwrap();
        t.assert_item("Plain", item("a").with("v", v));
    }
}

pub(super) fn returns_only_the_projected_attributes(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("x", 1).with("y", 2).with("z", 3)]);
    assert_eq!(projected(t, "x, z"), Item::new().with("x", 1).with("z", 3));
    assert_eq!(projected(t, "pk, absent"), item("a"));
    let nothing = projected(t, "absent");
    assert_eq!(
        nothing,
        Item::new(),
        "the item exists without these attributes"
    );
}

pub(super) fn projects_into_documents(t: &mut Fixture) {
    let x = map([("deep", 1), ("other", 2)]);
    let mixed = list([map([("k", 1), ("j", 2)]), map([("k", 3), ("j", 4)])]);
    let document = item("a")
        .with("m", map([("x", x), ("y", 3.into())]))
        .with("l", list([10, 11, 12, 13]))
        .with("s", "scalar")
        .with("mixed", mixed);
    t.create_with(plain(), [document]);

    let deep = Item::new().with("m", map([("x", map([("deep", 1)]))]));
    assert_eq!(projected(t, "m.x.deep"), deep);
    // List elements move up. They keep the order of the list, not of the projection.
    let closed_up = Item::new().with("l", list([11, 13]));
    assert_eq!(projected(t, "l[3], l[1]"), closed_up);
    let keyed = Item::new().with("mixed", list([map([("k", 1)]), map([("j", 4)])]));
    assert_eq!(projected(t, "mixed[0].k, mixed[1].j"), keyed);
    // A path that does not match the document is ignored.
    assert_eq!(projected(t, "m[0], l[9], s.x"), Item::new());
}

pub(super) fn attribute_names_may_contain_dots(t: &mut Fixture) {
    t.create(plain());
    let dotted = item("a").with("x.y", 1).with("x", map([("y", 2)]));
    t.put("Plain", dotted).unwrap();
    let get = |path: Path| {
        let get = GetItem::new("Plain", item("a")).projection(Paths(vec![path]));
        t.get_item(get).unwrap().item
    };
    assert_eq!(get("x.y".into()), Some(Item::new().with("x.y", 1)));
    let nested = get(Path::attribute("x").field("y"));
    assert_eq!(nested, Some(Item::new().with("x", map([("y", 2)]))));
}

pub(super) fn key_must_match_the_key_schema(t: &mut Fixture) {
    t.create(sorted());
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
        let output = t.get_item(GetItem::new("Sorted", key));
        rejected(output, WRONG_KEY);
    }
}

pub(super) fn projected_paths_must_not_overlap(t: &mut Fixture) {
    t.create(plain());
    let pairs = [
        ("x", "x", OVERLAP),
        ("x", "x.y", OVERLAP),
        ("x[0].y", "x[0]", OVERLAP),
        ("x.y", "x[0]", CONFLICT),
    ];
    for (one, two, detail) in pairs {
        let paths = [one, two].map(|text| projection(text).0.remove(0));
        let get = GetItem::new("Plain", item("a")).projection(Paths(paths.into()));
        rejected(t.get_item(get), detail);
    }
}

pub(super) fn missing_table_is_not_found(t: &mut Fixture) {
    let output = t.get_item(GetItem::new("Nowhere", item("a")));
    table_not_found(output);
}

pub(super) fn reserved_words_are_allowed_in_parsed_expressions(t: &mut Fixture) {
    t.create(plain());
    let words = item("a").with("name", 1).with("status", 2).with("size", 3);
    t.write(PutItem::new("Plain", words)).unwrap();
    let expected = Item::new().with("name", 1).with("size", 3);
    assert_eq!(projected(t, "#name, #size"), expected);
}
