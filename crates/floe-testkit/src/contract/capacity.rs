//! The capacity that operations consume, as charged by DynamoDB.

use std::collections::BTreeMap;

use floe_store::capacity::ReturnConsumedCapacity::{Indexes, Total};
use floe_store::expr::KeyCondition;
use floe_store::op::{
    BatchGetItem, BatchWriteItem, ConditionCheck, DeleteItem, GetItem, PutItem, Query, Scan,
    Select, TransactGet, TransactGetItems, TransactWriteItems, WriteItem,
};
use floe_store::table::{KeyKind, Projection};
use floe_store::{ConsumedCapacity, Item, Units};

use super::fixture::*;

fn units(halves: u64) -> Units {
    Units::halves(halves)
}

fn whole(whole: u64) -> Units {
    Units::whole(whole)
}

/// The cost of reading an item.
#[track_caller]
fn get(t: &Fixture, get: GetItem) -> ConsumedCapacity {
    let output = t.get_item(get.costing(Total)).unwrap();
    output.consumed.expect("the capacity was requested")
}

/// The cost of a write.
#[track_caller]
fn write(t: &Fixture, write: impl Into<WriteItem>) -> ConsumedCapacity {
    let output = t.write(write).unwrap();
    output.consumed.expect("the capacity was requested")
}

/// The cost of putting an item into `Plain`.
#[track_caller]
fn put(t: &Fixture, item: Item) -> Units {
    write(t, PutItem::new("Plain", item).costing(Total)).total()
}

/// The cost of a query.
#[track_caller]
fn query(t: &Fixture, query: Query) -> ConsumedCapacity {
    let page = t.query(query).unwrap();
    page.consumed.expect("the capacity was requested")
}

/// The costs by index or table.
fn shares<const LEN: usize>(shares: [(&str, Units); LEN]) -> BTreeMap<String, Units> {
    shares.map(|(name, units)| (name.to_owned(), units)).into()
}

pub(super) fn get_is_charged_per_4_kilobytes(t: &mut Fixture) {
    t.create(plain());
    for (pk, bytes) in [("s", 4096), ("l", 4097), ("x", 8193)] {
        t.put("Plain", item_of_size(item(pk), bytes)).unwrap();
    }
    for (pk, strong) in [("s", 1), ("l", 2), ("x", 3), ("missing", 1)] {
        let key = || GetItem::new("Plain", item(pk));
        let cost = get(t, key());
        assert_eq!(cost.total(), whole(strong), "{pk}");
        assert_eq!(cost.read, whole(strong), "{pk}");
        assert_eq!(cost.write, Units::ZERO, "{pk}");
        assert_eq!(cost.table_name, "Plain");
        let eventual = get(t, key().eventual()).total();
        assert_eq!(eventual, units(strong), "{pk} eventually");
    }
}

pub(super) fn projection_does_not_reduce_the_cost(t: &mut Fixture) {
    t.create_with(plain(), [item_of_size(item("a"), 10_000)]);
    let narrow = GetItem::new("Plain", item("a")).projection(projection("pk"));
    assert_eq!(get(t, narrow).total(), whole(3));
}

pub(super) fn writes_are_charged_per_kilobyte(t: &mut Fixture) {
    t.create(plain());
    let first = PutItem::new("Plain", item_of_size(item("a"), 1024));
    let cost = write(t, first.costing(Total));
    assert_eq!(cost.total(), whole(1));
    assert_eq!(cost.write, whole(1));
    assert_eq!(cost.read, Units::ZERO);
    // The larger size of the item before and after.
    assert_eq!(put(t, item_of_size(item("a"), 1025)), whole(2));
    assert_eq!(put(t, item("a")), whole(2));
    assert_eq!(put(t, item("a")), whole(1));
}

pub(super) fn updates_are_charged_for_the_whole_item(t: &mut Fixture) {
    t.create_with(plain(), [item_of_size(item("a"), 3000)]);
    let set = |pk: &str| {
        let set = update_item("Plain", item(pk), "SET x = :v", &values! {"v" => 1});
        write(t, set.costing(Total)).total()
    };
    assert_eq!(set("a"), whole(3));
    assert_eq!(set("b"), whole(1));
}

pub(super) fn deletes_are_charged_for_the_old_item(t: &mut Fixture) {
    t.create_with(plain(), [item_of_size(item("a"), 2049)]);
    let delete = || write(t, DeleteItem::new("Plain", item("a")).costing(Total)).total();
    assert_eq!(delete(), whole(3));
    assert_eq!(delete(), whole(1), "a missing item costs one unit");
}

pub(super) fn changed_index_entries_are_charged(t: &mut Fixture) {
    t.create(
        sorted()
            .global_index("all", [("g", KeyKind::S)], NO_SORT, Projection::All)
            .global_index("keys", [("g", KeyKind::S)], NO_SORT, Projection::KeysOnly)
            .local_index("local", "l", KeyKind::N, Projection::KeysOnly),
    );
    let put = |item: Item, bytes: usize| {
        let put = PutItem::new("Sorted", item_of_size(item, bytes));
        write(t, put.costing(Indexes))
    };
    let with = |g: &str| row("a", 1).with("g", g);
    // Not in any index.
    let outside = put(row("a", 1), 1500);
    assert_eq!(outside.total(), whole(2));
    assert_eq!(outside.table, whole(2));
    assert_eq!(outside.global_indexes, BTreeMap::new());
    assert!(outside.by_index);
    // Added to the indexes.
    let entered = put(with("x"), 1500);
    assert_eq!(entered.table, whole(2));
    assert_eq!(
        entered.global_indexes,
        shares([("all", whole(2)), ("keys", whole(1))])
    );
    assert_eq!(entered.local_indexes, BTreeMap::new());
    assert_eq!(entered.total(), whole(5));
    // The key changes: one entry is removed and one added.
    let moved = put(with("y"), 1500);
    assert_eq!(
        moved.global_indexes,
        shares([("all", whole(4)), ("keys", whole(2))])
    );
    // Another attribute changes: only indexes that project it are charged.
    let changed = put(with("y"), 2500);
    assert_eq!(changed.table, whole(3));
    assert_eq!(changed.global_indexes, shares([("all", whole(3))]));
    // Nothing changes: only the table is charged.
    let same = put(with("y"), 2500);
    assert_eq!(same.global_indexes, BTreeMap::new());
    // Added to the local index.
    let local = put(row("a", 1).with("l", 5), 500);
    assert_eq!(local.local_indexes, shares([("local", whole(1))]));
    assert_eq!(
        local.global_indexes,
        shares([("all", whole(3)), ("keys", whole(1))]),
        "removed from the global indexes"
    );
}

pub(super) fn total_omits_the_costs_of_indexes(t: &mut Fixture) {
    t.create(indexed(Projection::All));
    let put = PutItem::new("Plain", item("a").with("g", "x"));
    let cost = write(t, put.costing(Total));
    assert_eq!(cost.total(), whole(2));
    assert!(!cost.by_index);
}

pub(super) fn queries_are_charged_for_everything_read(t: &mut Fixture) {
    t.create_with(sorted(), (0..6).map(|sk| item_of_size(row("a", sk), 1500)));
    let eventual = || partition("a").costing(Total);
    let strong = || eventual().consistent();
    // 9000 bytes, rounded up once.
    assert_eq!(query(t, strong()).total(), whole(3));
    assert_eq!(query(t, eventual()).total(), units(3));
    assert_eq!(query(t, strong().limit(2)).total(), whole(1));
    // Filters, projections and counts do not reduce the cost.
    let narrow = strong().filter(bare_condition("attribute_exists(nothing)"));
    assert_eq!(query(t, narrow.projecting("sk")).total(), whole(3));
    assert_eq!(
        query(t, strong().selecting(Select::Count)).total(),
        whole(3)
    );
    let scanned = t.scan(Scan::new("Sorted").costing(Total)).unwrap();
    assert_eq!(scanned.consumed.unwrap().total(), units(3));
}

pub(super) fn index_reads_are_charged_to_the_index(t: &mut Fixture) {
    t.create(
        sorted()
            .global_index("keys", [("g", KeyKind::S)], NO_SORT, Projection::KeysOnly)
            .local_index("local", "l", KeyKind::N, Projection::KeysOnly),
    );
    let item = |sk| item_of_size(row("a", sk).with("g", "x").with("l", sk), 5000);
    t.fill("Sorted", (0..4).map(item));
    let by_g = Query::new("Sorted", KeyCondition::partition("g", "x"));
    let cost = query(t, by_g.index("keys").costing(Indexes));
    assert_eq!(cost.total(), units(1), "entries are small");
    assert_eq!(cost.table, Units::ZERO);
    assert_eq!(cost.global_indexes, shares([("keys", units(1))]));

    // Attributes that a local index does not project are read from the table, item by item.
    let fetching = partition("a")
        .index("local")
        .consistent()
        .costing(Indexes)
        .selecting(Select::AllAttributes);
    let cost = query(t, fetching);
    assert_eq!(cost.local_indexes, shares([("local", whole(1))]));
    assert_eq!(cost.table, whole(8));
    assert_eq!(cost.total(), whole(9));
}

pub(super) fn batches_cost_the_sum_of_their_items(t: &mut Fixture) {
    t.create(plain());
    t.create(sorted());
    let write = BatchWriteItem::new()
        .put("Plain", item_of_size(item("a"), 1500))
        .put("Plain", item("b"))
        .delete("Sorted", row("a", 1))
        .costing(Total);
    let consumed = t.batch_write_item(write).unwrap().consumed;
    let by_table = consumed.iter().map(|c| (c.table_name.clone(), c.total()));
    let expected = shares([("Plain", whole(3)), ("Sorted", whole(1))]);
    assert_eq!(by_table.collect::<BTreeMap<_, _>>(), expected);

    let mut get = BatchGetItem::new()
        .keys("Plain", [item("a"), item("b"), item("c")])
        .costing(Total);
    let consumed = t.batch_get_item(get.clone()).unwrap().consumed;
    assert_eq!(consumed.len(), 1);
    assert_eq!(
        consumed[0].total(),
        whole(3),
        "each item is charged separately"
    );
    get.requests.get_mut("Plain").unwrap().consistent = false;
    let consumed = t.batch_get_item(get).unwrap().consumed;
    assert_eq!(consumed[0].total(), units(3));
}

pub(super) fn transactions_cost_double(t: &mut Fixture) {
    t.create_with(plain(), [item_of_size(item("c"), 1500)]);
    let check = ConditionCheck::new("Plain", item("c"), bare_condition("attribute_exists(pk)"));
    let write = TransactWriteItems::new([
        PutItem::new("Plain", item_of_size(item("a"), 1500)).into(),
        DeleteItem::new("Plain", item("missing")).into(),
        check.into(),
    ])
    .costing(Total);
    let consumed = t.transact_write_items(write).unwrap().consumed;
    assert_eq!(consumed.len(), 1);
    assert_eq!(consumed[0].write, whole(2 * (2 + 1 + 2)));
    assert_eq!(consumed[0].total(), consumed[0].write);

    let gets = ["a", "missing"].map(|pk| TransactGet::new("Plain", item(pk)));
    let get = TransactGetItems::new(gets).costing(Total);
    let consumed = t.transact_get_items(get).unwrap().consumed;
    assert_eq!(consumed[0].read, whole(2 * (1 + 1)));
}

pub(super) fn indexes_cost_the_same_in_a_transaction(t: &mut Fixture) {
    t.create(indexed(Projection::All));
    let put = PutItem::new("Plain", item("a").with("g", "x"));
    let write = TransactWriteItems::new([put.into()]).costing(Indexes);
    let consumed = t.transact_write_items(write).unwrap().consumed;
    assert_eq!(consumed[0].table, whole(2));
    assert_eq!(consumed[0].global_indexes, shares([("by_g", whole(1))]));
}

pub(super) fn repeated_transaction_is_charged_as_a_read(t: &mut Fixture) {
    t.create(plain());
    let put = PutItem::new("Plain", item("a"));
    let write = TransactWriteItems::new([put.into()]).token("token-1");
    for (written, read) in [(whole(2), Units::ZERO), (Units::ZERO, whole(2))] {
        let write = write.clone().costing(Total);
        let consumed = t.transact_write_items(write).unwrap().consumed;
        assert_eq!((consumed[0].write, consumed[0].read), (written, read));
    }
}

pub(super) fn collections_are_measured_with_local_indexes(t: &mut Fixture) {
    t.create(sorted().local_index("local", "l", KeyKind::N, Projection::All));
    t.create(plain());
    let measured = |table: &str, item: Item| {
        let mut put = PutItem::new(table, item);
        put.return_collection = true;
        t.write(put).unwrap().collection
    };
    let metrics = measured("Sorted", row("a", 1)).expect("the table has a local index");
    assert_eq!(metrics.key, item("a"));
    assert_eq!(metrics.size_estimate_gb, (0.0, 1.0));
    assert_eq!(measured("Plain", item("a")), None);
}
