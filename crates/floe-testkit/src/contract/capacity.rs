//! What operations cost, as DynamoDB charges it.

use std::collections::BTreeMap;

use floe_store::capacity::ReturnConsumedCapacity::{self, Indexes, Total};
use floe_store::expr::KeyCondition;
use floe_store::op::{
    BatchGetItem, BatchWriteItem, ConditionCheck, DeleteItem, GetItem, PutItem, Query, Scan,
    Select, TransactGet, TransactGetItems, TransactWriteItems,
};
use floe_store::table::{KeyKind, Projection};
use floe_store::{ConsumedCapacity, Item, Units};

use super::fixture::*;

fn units(halves: u64) -> Units {
    Units::halves(halves)
}

/// The total of an answer that was asked for it.
#[track_caller]
fn total(consumed: &Option<ConsumedCapacity>) -> f64 {
    consumed
        .as_ref()
        .expect("the cost was asked for")
        .total()
        .as_f64()
}

async fn get(t: &Fixture, pk: &str, consistent: bool) -> ConsumedCapacity {
    let mut get = GetItem::new("Plain", item(pk));
    get.consistent = consistent;
    get.return_capacity = Total;
    t.get_item(get).await.unwrap().consumed.unwrap()
}

async fn put(
    t: &Fixture,
    table: &str,
    item: Item,
    detail: ReturnConsumedCapacity,
) -> ConsumedCapacity {
    let mut put = PutItem::new(table, item);
    put.return_capacity = detail;
    t.write(put).await.unwrap().consumed.unwrap()
}

pub(super) async fn get_is_charged_by_4_kilobytes(t: &mut Fixture) {
    t.create(plain()).await;
    for (pk, bytes) in [("s", 4096), ("l", 4097), ("x", 8193)] {
        t.put("Plain", weighing(item(pk), bytes)).await.unwrap();
    }
    for (pk, strong) in [("s", 1), ("l", 2), ("x", 3), ("nobody", 1)] {
        let cost = get(t, pk, true).await;
        assert_eq!(cost.total(), Units::whole(strong), "{pk}");
        assert_eq!(cost.read, Units::whole(strong), "{pk}");
        assert_eq!(cost.write, Units::ZERO, "{pk}");
        assert_eq!(cost.table_name, "Plain");
        assert_eq!(
            get(t, pk, false).await.total(),
            units(strong),
            "{pk} eventually"
        );
    }
}

pub(super) async fn a_projection_does_not_lower_the_price(t: &mut Fixture) {
    t.create(plain()).await;
    t.put("Plain", weighing(item("a"), 10_000)).await.unwrap();
    let mut get = GetItem::new("Plain", item("a")).projection(projection("pk"));
    get.return_capacity = Total;
    assert_eq!(total(&t.get_item(get).await.unwrap().consumed), 3.0);
}

pub(super) async fn writes_are_charged_by_kilobyte(t: &mut Fixture) {
    t.create(plain()).await;
    let cost = put(t, "Plain", weighing(item("a"), 1024), Total).await;
    assert_eq!(cost.total(), Units::whole(1));
    assert_eq!(cost.write, Units::whole(1));
    assert_eq!(cost.read, Units::ZERO);
    // The larger of what was there and what comes.
    assert_eq!(
        put(t, "Plain", weighing(item("a"), 1025), Total)
            .await
            .total(),
        Units::whole(2)
    );
    assert_eq!(
        put(t, "Plain", item("a"), Total).await.total(),
        Units::whole(2)
    );
    assert_eq!(
        put(t, "Plain", item("a"), Total).await.total(),
        Units::whole(1)
    );
}

pub(super) async fn updates_are_charged_for_the_whole_item(t: &mut Fixture) {
    t.create(plain()).await;
    t.put("Plain", weighing(item("a"), 3000)).await.unwrap();
    let mut set = update_item("Plain", item("a"), "SET x = :v", &values! {"v" => 1});
    set.return_capacity = Total;
    assert_eq!(total(&t.write(set).await.unwrap().consumed), 3.0);
    let mut new = update_item("Plain", item("b"), "SET x = :v", &values! {"v" => 1});
    new.return_capacity = Total;
    assert_eq!(total(&t.write(new).await.unwrap().consumed), 1.0);
}

pub(super) async fn deletes_are_charged_for_what_was_there(t: &mut Fixture) {
    t.create(plain()).await;
    t.put("Plain", weighing(item("a"), 2049)).await.unwrap();
    let delete = |pk: &str| {
        let mut delete = DeleteItem::new("Plain", item(pk));
        delete.return_capacity = Total;
        delete
    };
    assert_eq!(total(&t.write(delete("a")).await.unwrap().consumed), 3.0);
    assert_eq!(
        total(&t.write(delete("a")).await.unwrap().consumed),
        1.0,
        "a missing item costs one unit"
    );
}

pub(super) async fn index_entries_are_charged_as_they_change(t: &mut Fixture) {
    t.create(
        sorted()
            .global_index("all", [("g", KeyKind::S)], NO_SORT, Projection::All)
            .global_index("keys", [("g", KeyKind::S)], NO_SORT, Projection::KeysOnly)
            .local_index("local", "l", KeyKind::N, Projection::KeysOnly),
    )
    .await;
    let cost = |name: &str, whole: u64| (name.to_owned(), Units::whole(whole));
    let put =
        async |item: Item, bytes: usize| put(t, "Sorted", weighing(item, bytes), Indexes).await;
    let with = |g: &str| row("a", 1).with("g", g);
    // Not in any index: nothing.
    let outside = put(row("a", 1), 1500).await;
    assert_eq!(outside.total(), Units::whole(2));
    assert_eq!(outside.table, Units::whole(2));
    assert_eq!(outside.global_indexes, BTreeMap::new());
    assert!(outside.by_index);
    // Into the indexes.
    let entered = put(with("x"), 1500).await;
    assert_eq!(entered.table, Units::whole(2));
    assert_eq!(
        entered.global_indexes,
        [cost("all", 2), cost("keys", 1)].into()
    );
    assert_eq!(entered.local_indexes, BTreeMap::new());
    assert_eq!(entered.total(), Units::whole(5));
    // To another key: out and in.
    let moved = put(with("y"), 1500).await;
    assert_eq!(
        moved.global_indexes,
        [cost("all", 4), cost("keys", 2)].into()
    );
    // Another attribute: only where it is copied.
    let changed = put(with("y"), 2500).await;
    assert_eq!(changed.table, Units::whole(3));
    assert_eq!(changed.global_indexes, [cost("all", 3)].into());
    // Nothing changes: only the table is charged.
    let same = put(with("y"), 2500).await;
    assert_eq!(same.global_indexes, BTreeMap::new());
    // Into the local index.
    let local = put(row("a", 1).with("l", 5), 500).await;
    assert_eq!(local.local_indexes, [cost("local", 1)].into());
    assert_eq!(
        local.global_indexes,
        [cost("all", 3), cost("keys", 1)].into(),
        "out of the others"
    );
}

pub(super) async fn the_total_alone_hides_the_shares(t: &mut Fixture) {
    t.create(indexed(Projection::All)).await;
    let cost = put(t, "Plain", item("a").with("g", "x"), Total).await;
    assert_eq!(cost.total(), Units::whole(2));
    assert!(!cost.by_index);
}

pub(super) async fn queries_are_charged_for_all_they_read(t: &mut Fixture) {
    t.create(sorted()).await;
    t.fill("Sorted", (0..6).map(|sk| weighing(row("a", sk), 1500)))
        .await;
    let query = |consistent| {
        let mut query = partition("a");
        query.return_capacity = Total;
        query.consistent = consistent;
        query
    };
    // 9000 bytes, rounded up once.
    assert_eq!(total(&t.query(query(true)).await.unwrap().consumed), 3.0);
    assert_eq!(total(&t.query(query(false)).await.unwrap().consumed), 1.5);
    assert_eq!(
        total(&t.query(query(true).limit(2)).await.unwrap().consumed),
        1.0
    );
    // Filters, projections and counts do not lower it.
    let mut narrow = query(true).filter(bare_condition("attribute_exists(nothing)"));
    narrow.projection = Some(projection("sk"));
    assert_eq!(total(&t.query(narrow).await.unwrap().consumed), 3.0);
    let mut count = query(true);
    count.select = Some(Select::Count);
    assert_eq!(total(&t.query(count).await.unwrap().consumed), 3.0);
    let mut scan = Scan::new("Sorted");
    scan.return_capacity = Total;
    assert_eq!(total(&t.scan(scan).await.unwrap().consumed), 1.5);
}

pub(super) async fn index_reads_are_charged_to_the_index(t: &mut Fixture) {
    t.create(
        sorted()
            .global_index("keys", [("g", KeyKind::S)], NO_SORT, Projection::KeysOnly)
            .local_index("local", "l", KeyKind::N, Projection::KeysOnly),
    )
    .await;
    let item = |sk| weighing(row("a", sk).with("g", "x").with("l", sk), 5000);
    t.fill("Sorted", (0..4).map(item)).await;
    let mut query = Query::new("Sorted", KeyCondition::partition("g", "x")).index("keys");
    query.return_capacity = Indexes;
    let cost = t.query(query).await.unwrap().consumed.unwrap();
    assert_eq!(cost.total(), units(1), "entries are small");
    assert_eq!(cost.table, Units::ZERO);
    assert_eq!(cost.global_indexes, [("keys".to_owned(), units(1))].into());

    // What a local index has not copied is read from the table, item by item.
    let mut fetching = partition("a").index("local").consistent();
    fetching.return_capacity = Indexes;
    fetching.select = Some(Select::AllAttributes);
    let cost = t.query(fetching).await.unwrap().consumed.unwrap();
    assert_eq!(
        cost.local_indexes,
        [("local".to_owned(), Units::whole(1))].into()
    );
    assert_eq!(cost.table, Units::whole(8));
    assert_eq!(cost.total(), Units::whole(9));
}

pub(super) async fn batches_are_the_sum_of_their_items(t: &mut Fixture) {
    t.create(plain()).await;
    t.create(sorted()).await;
    let mut write = BatchWriteItem::new()
        .put("Plain", weighing(item("a"), 1500))
        .put("Plain", item("b"))
        .delete("Sorted", row("a", 1));
    write.return_capacity = Total;
    let consumed = t.batch_write_item(write).await.unwrap().consumed;
    let by_table: BTreeMap<_, _> = consumed
        .iter()
        .map(|c| (c.table_name.as_str(), c.total()))
        .collect();
    assert_eq!(
        by_table,
        [("Plain", Units::whole(3)), ("Sorted", Units::whole(1))].into()
    );

    let mut get = BatchGetItem::new().keys("Plain", [item("a"), item("b"), item("c")]);
    get.return_capacity = Total;
    let consumed = t.batch_get_item(get.clone()).await.unwrap().consumed;
    assert_eq!(consumed.len(), 1);
    assert_eq!(consumed[0].total(), Units::whole(3), "each item on its own");
    get.requests.get_mut("Plain").unwrap().consistent = false;
    let consumed = t.batch_get_item(get).await.unwrap().consumed;
    assert_eq!(consumed[0].total(), units(3));
}

pub(super) async fn transactions_cost_twice(t: &mut Fixture) {
    t.create(plain()).await;
    t.put("Plain", weighing(item("c"), 1500)).await.unwrap();
    let check = ConditionCheck::new("Plain", item("c"), bare_condition("attribute_exists(pk)"));
    let mut write = TransactWriteItems::new([
        PutItem::new("Plain", weighing(item("a"), 1500)).into(),
        DeleteItem::new("Plain", item("nobody")).into(),
        check.into(),
    ]);
    write.return_capacity = Total;
    let consumed = t.transact_write_items(write).await.unwrap().consumed;
    assert_eq!(consumed.len(), 1);
    assert_eq!(consumed[0].write, Units::whole(2 * (2 + 1 + 2)));
    assert_eq!(consumed[0].total(), consumed[0].write);

    let mut get =
        TransactGetItems::new(["a", "nobody"].map(|pk| TransactGet::new("Plain", item(pk))));
    get.return_capacity = Total;
    let consumed = t.transact_get_items(get).await.unwrap().consumed;
    assert_eq!(consumed[0].read, Units::whole(2 * (1 + 1)));
}

pub(super) async fn indexes_cost_the_same_in_a_transaction(t: &mut Fixture) {
    t.create(indexed(Projection::All)).await;
    let mut write =
        TransactWriteItems::new([PutItem::new("Plain", item("a").with("g", "x")).into()]);
    write.return_capacity = Indexes;
    let consumed = t.transact_write_items(write).await.unwrap().consumed;
    assert_eq!(consumed[0].table, Units::whole(2));
    assert_eq!(
        consumed[0].global_indexes,
        [("by_g".to_owned(), Units::whole(1))].into()
    );
}

pub(super) async fn a_replayed_transaction_is_charged_as_a_read(t: &mut Fixture) {
    t.create(plain()).await;
    let mut write =
        TransactWriteItems::new([PutItem::new("Plain", item("a")).into()]).token("token-1");
    write.return_capacity = Total;
    let first = t
        .transact_write_items(write.clone())
        .await
        .unwrap()
        .consumed;
    assert_eq!(
        (first[0].write, first[0].read),
        (Units::whole(2), Units::ZERO)
    );
    let again = t.transact_write_items(write).await.unwrap().consumed;
    assert_eq!(
        (again[0].write, again[0].read),
        (Units::ZERO, Units::whole(2))
    );
}

pub(super) async fn collections_are_measured_with_local_indexes(t: &mut Fixture) {
    t.create(sorted().local_index("local", "l", KeyKind::N, Projection::All))
        .await;
    t.create(plain()).await;
    let mut put = PutItem::new("Sorted", row("a", 1));
    put.return_collection = true;
    let metrics = t
        .write(put)
        .await
        .unwrap()
        .collection
        .expect("the table has a local index");
    assert_eq!(metrics.key, item("a"));
    assert_eq!(metrics.size_estimate_gb, (0.0, 1.0));
    let mut put = PutItem::new("Plain", item("a"));
    put.return_collection = true;
    assert_eq!(t.write(put).await.unwrap().collection, None);
}
