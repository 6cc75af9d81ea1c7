//! Global indexes: what is in them, in which order, and what they copy.

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::op::{PutItem, Query, Scan, Select};
use floe_store::table::{KeyKind, Projection, TableBuilder};
use floe_store::{Item, Value};

use super::fixture::*;

/// A table with a global index on `g` (S) and `h` (N).
fn with_global(projection: Projection) -> TableBuilder {
    ranged(sorted(), KeyKind::N, projection)
}

fn by_g(g: &str) -> Query {
    Query::new("Sorted", KeyCondition::partition("g", g)).index("by_g")
}

pub(super) async fn a_global_index_has_its_own_partitions_and_order(t: &mut Fixture) {
    t.create(with_global(Projection::All)).await;
    t.fill(
        "Sorted",
        [
            row("a", 1).with("g", "x").with("h", 30),
            row("b", 2).with("g", "x").with("h", -10),
            row("c", 3).with("g", "x").with("h", 20),
            row("a", 4).with("g", "y").with("h", 1),
        ],
    )
    .await;
    let items = t.query_all(by_g("x")).await;
    assert_eq!(sks(&items), [2, 3, 1]);
    assert_eq!(items[0], row("b", 2).with("g", "x").with("h", -10));
    assert_eq!(t.query_sks(by_g("x").backward()).await, [1, 3, 2]);
    assert_eq!(t.query_sks(by_g("y")).await, [4]);
    let ranged = KeyCondition::partition("g", "x").and("h", KeyOp::Ge(20.into()));
    let ranged = Query::new("Sorted", ranged).index("by_g");
    assert_eq!(t.query_sks(ranged).await, [3, 1]);
}

pub(super) async fn an_index_is_sparse(t: &mut Fixture) {
    t.create(with_global(Projection::All)).await;
    t.fill(
        "Sorted",
        [
            row("a", 1).with("g", "x").with("h", 1),
            row("a", 2).with("g", "x"),
            row("a", 3).with("h", 1),
            row("a", 4),
        ],
    )
    .await;
    assert_eq!(t.query_sks(by_g("x")).await, [1]);
    assert_eq!(
        sks(&t.scan_all(Scan::new("Sorted").index("by_g")).await),
        [1]
    );
    assert_eq!(t.scan_all(Scan::new("Sorted")).await.len(), 4);
}

pub(super) async fn entries_follow_their_items(t: &mut Fixture) {
    t.create(with_global(Projection::All)).await;
    let change = |text: &str, values: Values| update_item("Sorted", row("a", 1), text, &values);
    t.fill("Sorted", [row("a", 1).with("g", "x").with("h", 1)])
        .await;
    // Another attribute.
    t.write(change("SET v = :v", values! {"v" => 1}))
        .await
        .unwrap();
    assert_eq!(
        t.query_all(by_g("x")).await,
        [row("a", 1).with("g", "x").with("h", 1).with("v", 1)]
    );
    // Another sort key.
    t.write(change("SET h = :h", values! {"h" => 2}))
        .await
        .unwrap();
    assert_eq!(t.query_all(by_g("x")).await.len(), 1);
    // Another partition.
    t.write(change("SET g = :g", values! {"g" => "y"}))
        .await
        .unwrap();
    assert_eq!(t.query_all(by_g("x")).await, Vec::<Item>::new());
    assert_eq!(t.query_sks(by_g("y")).await, [1]);
    // Out of the index, and in again.
    t.write(change("REMOVE h", values! {})).await.unwrap();
    assert_eq!(t.query_all(by_g("y")).await, Vec::<Item>::new());
    t.write(change("SET h = :h", values! {"h" => 5}))
        .await
        .unwrap();
    assert_eq!(t.query_sks(by_g("y")).await, [1]);
    // Replaced as a whole.
    t.fill("Sorted", [row("a", 1).with("g", "z").with("h", 5)])
        .await;
    assert_eq!(t.query_all(by_g("y")).await, Vec::<Item>::new());
    assert_eq!(t.query_sks(by_g("z")).await, [1]);
    // Removed.
    t.delete("Sorted", row("a", 1)).await;
    assert_eq!(t.query_all(by_g("z")).await, Vec::<Item>::new());
    assert_eq!(
        t.scan_all(Scan::new("Sorted").index("by_g")).await,
        Vec::<Item>::new()
    );
}

pub(super) async fn a_failed_write_leaves_the_index_alone(t: &mut Fixture) {
    t.create(with_global(Projection::All)).await;
    t.fill("Sorted", [row("a", 1).with("g", "x").with("h", 1)])
        .await;
    let put = PutItem::new("Sorted", row("a", 1).with("g", "y").with("h", 1))
        .condition(bare_condition("attribute_not_exists(pk)"));
    condition_failed(t.write(put).await);
    assert_eq!(t.query_all(by_g("x")).await.len(), 1);
    assert_eq!(t.query_all(by_g("y")).await.len(), 0);
}

pub(super) async fn projections_copy_what_they_say(t: &mut Fixture) {
    let full = row("a", 1)
        .with("g", "x")
        .with("h", 1)
        .with("v", 1)
        .with("w", map([("k", 2)]));
    let keys = row("a", 1).with("g", "x").with("h", 1);
    let cases = [
        (Projection::All, full.clone()),
        (Projection::KeysOnly, keys.clone()),
        (
            Projection::Include(vec!["w".into()]),
            keys.with("w", map([("k", 2)])),
        ),
    ];
    for (projection, expected) in cases {
        t.create(with_global(projection.clone())).await;
        t.put("Sorted", full.clone()).await.unwrap();
        let expected = [expected];
        assert_eq!(t.query_all(by_g("x")).await, expected, "{projection:?}");
        let scanned = t.scan_all(Scan::new("Sorted").index("by_g")).await;
        assert_eq!(scanned, expected, "{projection:?}");
        t.delete_table("Sorted").await.unwrap();
    }
}

pub(super) async fn a_copied_attribute_follows_its_item(t: &mut Fixture) {
    t.create(with_global(Projection::Include(vec!["v".into()])))
        .await;
    let keys = row("a", 1).with("g", "x").with("h", 1);
    t.fill("Sorted", [keys.clone().with("v", 1).with("w", 1)])
        .await;
    let set = |text: &str| update_item("Sorted", row("a", 1), text, &values! {"n" => 2});
    t.write(set("SET v = :n")).await.unwrap();
    assert_eq!(t.query_all(by_g("x")).await, [keys.clone().with("v", 2)]);
    t.write(set("SET w = :n")).await.unwrap();
    assert_eq!(t.query_all(by_g("x")).await, [keys.clone().with("v", 2)]);
    let remove = update_item("Sorted", row("a", 1), "REMOVE v", &values! {});
    t.write(remove).await.unwrap();
    assert_eq!(t.query_all(by_g("x")).await, [keys]);
}

pub(super) async fn a_global_index_gives_only_what_it_copies(t: &mut Fixture) {
    t.create(with_global(Projection::KeysOnly)).await;
    let mut all = by_g("x");
    all.select = Some(Select::AllAttributes);
    refused(
        t.query(all).await,
        "Select type ALL_ATTRIBUTES is not supported for global secondary index by_g \
         because its projection type is not ALL",
    );
    let mut specific = by_g("x");
    specific.projection = Some(projection("g, v"));
    refused(
        t.query(specific).await,
        "Global secondary index by_g does not project [v]",
    );
    let mut projected = by_g("x");
    projected.select = Some(Select::AllProjectedAttributes);
    assert!(t.query(projected).await.is_ok());
}

pub(super) async fn a_global_index_is_read_eventually(t: &mut Fixture) {
    t.create(with_global(Projection::All)).await;
    let detail = "Consistent reads are not supported on global secondary indexes";
    refused(t.query(by_g("x").consistent()).await, detail);
    refused(
        t.scan(Scan::new("Sorted").index("by_g").consistent()).await,
        detail,
    );
}

pub(super) async fn many_items_may_share_an_index_key(t: &mut Fixture) {
    t.create(with_global(Projection::All)).await;
    t.fill(
        "Sorted",
        (0..10).map(|n| row(&format!("p{n}"), n).with("g", "x").with("h", 1)),
    )
    .await;
    t.fill("Sorted", [row("late", 99).with("g", "x").with("h", 2)])
        .await;
    let whole = t.query_all(by_g("x")).await;
    assert_eq!(whole.len(), 11);
    assert_eq!(sks(&whole).last(), Some(&99));
    for limit in [1, 3, 10] {
        assert_eq!(
            t.query_all(by_g("x").limit(limit)).await,
            whole,
            "limit={limit}"
        );
        let mut backward = t.query_all(by_g("x").backward().limit(limit)).await;
        backward.reverse();
        assert_eq!(backward, whole, "limit={limit} backward");
    }
}

pub(super) async fn the_last_key_of_an_index_page_holds_both_keys(t: &mut Fixture) {
    t.create(with_global(Projection::KeysOnly).local_index(
        "by_v",
        "v",
        KeyKind::S,
        Projection::All,
    ))
    .await;
    t.fill(
        "Sorted",
        (1..=3).map(|n| row("a", n).with("g", "x").with("h", n).with("v", "same")),
    )
    .await;
    let page = t.query(by_g("x").limit(2)).await.unwrap();
    assert_eq!(page.last_key, Some(row("a", 2).with("g", "x").with("h", 2)));
    let rest = t.query(by_g("x").start_key(page.last_key)).await.unwrap();
    assert_eq!(sks(&rest.items), [3]);
    let local = partition("a").index("by_v").limit(1);
    let page = t.query(local).await.unwrap();
    assert_eq!(page.last_key, Some(row("a", 1).with("v", "same")));
    let scan = t
        .scan(Scan::new("Sorted").index("by_g").limit(1))
        .await
        .unwrap();
    let key = scan.last_key.unwrap();
    let names: Vec<&str> = key.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["g", "h", "pk", "sk"]);
}

pub(super) async fn the_start_key_of_an_index_page_holds_both_keys(t: &mut Fixture) {
    t.create(with_global(Projection::All)).await;
    let keys = [
        row("a", 1),
        Item::new().with("g", "x").with("h", 1),
        row("a", 1).with("g", "x"),
        row("a", 1).with("g", "x").with("h", "text"),
        row("a", 1).with("g", "x").with("h", 1).with("v", 1),
    ];
    for key in keys {
        let query = by_g("x").start_key(Some(key));
        refused(t.query(query).await, WRONG_START);
    }
    let other = by_g("x").start_key(Some(row("a", 1).with("g", "y").with("h", 1)));
    refused(
        t.query(other).await,
        "The provided starting key is outside query boundaries based on provided conditions",
    );
}

pub(super) async fn a_global_index_need_not_have_a_sort_key(t: &mut Fixture) {
    t.create(plain().global_index("by_g", [("g", KeyKind::N)], NO_SORT, Projection::All))
        .await;
    let items = ["a", "b", "c"].map(|pk| item(pk).with("g", 1));
    t.fill("Plain", items).await;
    t.fill("Plain", [item("d").with("g", 2)]).await;
    let query = Query::new("Plain", KeyCondition::partition("g", 1)).index("by_g");
    let found = t.query_all(query.clone()).await;
    assert_eq!(texts(&found, "pk"), ["a", "b", "c"]);
    assert_eq!(t.query_all(query.limit(1)).await, found);
}

pub(super) async fn an_index_may_use_attributes_of_the_tables_key(t: &mut Fixture) {
    t.create(sorted().global_index(
        "turned",
        [("sk", KeyKind::N)],
        [("pk", KeyKind::S)],
        Projection::KeysOnly,
    ))
    .await;
    t.fill("Sorted", [row("b", 1), row("a", 1), row("a", 2)])
        .await;
    let query = Query::new("Sorted", KeyCondition::partition("sk", 1)).index("turned");
    assert_eq!(t.query_all(query).await, [row("a", 1), row("b", 1)]);
}

pub(super) async fn index_keys_must_have_their_type(t: &mut Fixture) {
    t.create(with_global(Projection::All)).await;
    refused(
        t.put("Sorted", row("a", 1).with("g", 5)).await,
        "Type mismatch for Index Key g Expected: S Actual: N IndexName: by_g",
    );
    refused(
        t.put("Sorted", row("a", 1).with("g", "x").with("h", Value::Null))
            .await,
        "Type mismatch for Index Key h Expected: N Actual: NULL IndexName: by_g",
    );
    let set = |v: Value| update_item("Sorted", row("a", 1), "SET g = :v", &values! {"v" => v});
    refused(
        t.write(set(true.into())).await,
        "Type mismatch for Index Key g Expected: S Actual: BOOL IndexName: by_g",
    );
    assert_eq!(t.get("Sorted", row("a", 1)).await, None);
}

pub(super) async fn index_keys_must_not_be_empty(t: &mut Fixture) {
    t.create(with_global(Projection::All)).await;
    refused(
        t.put("Sorted", row("a", 1).with("g", "")).await,
        "A value specified for a secondary index key is not supported. The AttributeValue for a key \
         attribute cannot contain an empty string value. IndexName: by_g, IndexKey: g",
    );
    let set = update_item("Sorted", row("a", 1), "SET g = :v", &values! {"v" => ""});
    refused(
        t.write(set).await,
        "The update expression attempted to update a secondary index key to a value that is not \
         supported. The AttributeValue for a key attribute cannot contain an empty string value.",
    );
}

pub(super) async fn filters_and_projections_work_on_indexes(t: &mut Fixture) {
    t.create(with_global(Projection::All)).await;
    t.fill(
        "Sorted",
        (1..=4).map(|n| row("a", n).with("g", "x").with("h", n).with("v", n % 2)),
    )
    .await;
    let odd = condition("v = :one", &values! {"one" => 1});
    let mut query = by_g("x").filter(odd);
    query.projection = Some(projection("sk"));
    let page = t.query(query).await.unwrap();
    assert_eq!(
        page.items,
        [Item::new().with("sk", 1), Item::new().with("sk", 3)]
    );
    assert_eq!((page.count, page.scanned_count), (2, 4));
}

pub(super) async fn indexes_survive_reopening(t: &mut Fixture) {
    t.create(with_global(Projection::All).local_index(
        "by_h",
        "h",
        KeyKind::N,
        Projection::KeysOnly,
    ))
    .await;
    t.fill(
        "Sorted",
        (1..=3).map(|n| row("a", n).with("g", "x").with("h", -n)),
    )
    .await;
    t.delete("Sorted", row("a", 2)).await;
    t.reopen().await;
    assert_eq!(t.query_sks(by_g("x")).await, [3, 1]);
    assert_eq!(t.query_sks(partition("a").index("by_h")).await, [3, 1]);
}

pub(super) async fn segments_part_an_index_too(t: &mut Fixture) {
    t.create(with_global(Projection::KeysOnly)).await;
    t.fill(
        "Sorted",
        (0..30).map(|n| row("a", n).with("g", format!("g{}", n % 9)).with("h", n)),
    )
    .await;
    let mut found = Vec::new();
    for index in 0..4 {
        let scan = Scan::new("Sorted").index("by_g").segment(index, 4).limit(3);
        found.extend(sks(&t.scan_all(scan).await));
    }
    found.sort_unstable();
    assert_eq!(found, (0..30).collect::<Vec<i64>>());
}
