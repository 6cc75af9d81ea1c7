//! Capacity units, as charged by DynamoDB.

use floe_store::capacity::{
    Consistency, ConsumedCapacity, ReturnConsumedCapacity, Units, WriteKind, check_cost, read_cost,
    read_units, replay_cost, write_cost, write_units,
};
use floe_store::expr::{KeyCondition, Path, Paths};
use floe_store::op::{ItemCollectionMetrics, Meter, Query, Scan};
use floe_store::size::item_size;
use floe_store::table::{KeyKind, Projection};
use floe_store::{Item, TableDef};

use crate::{id, order_key, orders, simple, text};

const DETAIL: ReturnConsumedCapacity = ReturnConsumedCapacity::Indexes;

#[test]
fn reads_are_charged_per_4_kb() {
    use Consistency::{Eventual, Strong, Transactional};
    for (bytes, eventual, strong, transactional) in [
        (0, 0.5, 1.0, 2.0),
        (1, 0.5, 1.0, 2.0),
        (4096, 0.5, 1.0, 2.0),
        (4097, 1.0, 2.0, 4.0),
        (409_600, 50.0, 100.0, 200.0),
    ] {
        let units = |consistency| read_units(bytes, consistency).as_f64();
        assert_eq!(
            (units(Eventual), units(Strong), units(Transactional)),
            (eventual, strong, transactional),
            "{bytes}"
        );
    }
}

#[test]
fn writes_are_charged_per_1_kb() {
    for (bytes, units) in [(0, 1), (1024, 1), (1025, 2), (409_600, 400)] {
        assert_eq!(write_units(bytes, WriteKind::Plain), Units::whole(units));
        assert_eq!(
            write_units(bytes, WriteKind::Transactional),
            Units::whole(units * 2)
        );
    }
}

/// An item of [`simple`] of this size.
fn of_size(bytes: usize) -> Item {
    let item = id("a").with("v", text(bytes - 4));
    assert_eq!(item_size(&item), bytes);
    item
}

#[test]
fn write_is_charged_for_the_larger_of_old_and_new() {
    let cost = |old: Option<usize>, new: Option<usize>, kind| {
        let (old, new) = (old.map(of_size), new.map(of_size));
        let cost = write_cost(&simple(), old.as_ref(), new.as_ref(), kind, DETAIL);
        assert_eq!((cost.read, cost.write), (Units::ZERO, cost.table));
        cost.write.as_f64()
    };
    for (old, new, units) in [
        (None, Some(1024), 1.0),
        (None, Some(1025), 2.0),
        (Some(3000), Some(10), 3.0),
        (Some(10), Some(3000), 3.0),
        (Some(2048), None, 2.0),
        (None, None, 1.0),
    ] {
        assert_eq!(cost(old, new, WriteKind::Plain), units, "{old:?} {new:?}");
        assert_eq!(cost(old, new, WriteKind::Transactional), units * 2.0);
    }
}

#[test]
fn condition_check_is_charged_like_a_write_of_the_item() {
    let cost = |item: Option<&Item>| check_cost(&simple(), item, DETAIL).write.as_f64();
    assert_eq!(cost(None), 2.0);
    assert_eq!(cost(Some(&of_size(1025))), 4.0);
}

/// A table with one index of each kind; both contain `copied`.
fn indexed() -> TableDef {
    let copied = || Projection::Include(vec!["copied".into()]);
    TableDef::builder("Indexed", "id", KeyKind::S)
        .sort_key("sort", KeyKind::S)
        .global_index("global", [("g", KeyKind::S)], crate::NO_SORT, copied())
        .local_index("local", "l", KeyKind::S, copied())
        .build()
        .unwrap()
}

fn row() -> Item {
    Item::new().with("id", "a").with("sort", "b")
}

#[test]
fn index_is_charged_for_the_change_of_its_entry() {
    let entry = |g: &str| row().with("g", g);
    let large = |g: &str| entry(g).with("copied", text(1024));
    for (old, new, units, why) in [
        (None, Some(row()), 0.0, "not in the index"),
        (None, Some(entry("x")), 1.0, "added"),
        (None, Some(large("x")), 2.0, "added, charged by its size"),
        (Some(large("x")), None, 2.0, "removed with its item"),
        (Some(entry("x")), Some(row()), 1.0, "removed from the index"),
        (
            Some(entry("x")),
            Some(entry("x").with("v", text(5000))),
            0.0,
            "change of an attribute that is not in the index",
        ),
        (
            Some(entry("x")),
            Some(large("x")),
            2.0,
            "changed, charged by the larger one",
        ),
        (
            Some(large("x")),
            Some(entry("x")),
            2.0,
            "changed, charged by the larger one",
        ),
        (
            Some(large("x")),
            Some(entry("y")),
            3.0,
            "moved: removed and added",
        ),
        (
            Some(large("x")),
            Some(large("y")),
            4.0,
            "removed and added, each rounded separately",
        ),
    ] {
        for (kind, factor) in [(WriteKind::Plain, 1.0), (WriteKind::Transactional, 2.0)] {
            let cost = write_cost(&indexed(), old.as_ref(), new.as_ref(), kind, DETAIL);
            let share = cost
                .global_indexes
                .get("global")
                .map(|units| units.as_f64());
            // An unchanged index is missing, and a transaction does not double the share of an index.
            assert_eq!(share, (units > 0.0).then_some(units), "{why}");
            let table = write_units(
                old.as_ref()
                    .map_or(0, item_size)
                    .max(new.as_ref().map_or(0, item_size)),
                WriteKind::Plain,
            );
            assert_eq!(cost.table.as_f64(), table.as_f64() * factor);
            assert_eq!(cost.total().as_f64(), cost.table.as_f64() + units);
        }
    }
}

#[test]
fn local_indexes_are_charged_like_global_ones() {
    let (old, new) = (row().with("l", "x"), row().with("l", "y").with("g", "z"));
    let cost = write_cost(&indexed(), Some(&old), Some(&new), WriteKind::Plain, DETAIL);
    assert_eq!(cost.local_indexes["local"], Units::whole(2));
    assert_eq!(cost.global_indexes["global"], Units::whole(1));
    assert_eq!(cost.total(), Units::whole(4));
    assert!(cost.by_index);
}

#[test]
fn batch_items_are_rounded_individually() {
    let cost = read_cost("Simple", [10, 4097, 0], Consistency::Eventual, DETAIL);
    assert_eq!(cost.read.as_f64(), 0.5 + 1.0 + 0.5);
    assert_eq!(cost.table, cost.read);
    let cost = read_cost("Simple", [10, 4097], Consistency::Transactional, DETAIL);
    assert_eq!(cost.read.as_f64(), 2.0 + 4.0);
    // A replayed transaction is charged as reads.
    let replay = replay_cost("Simple", [10, 4097], DETAIL);
    assert_eq!(replay, cost);
    assert_eq!(replay.write, Units::ZERO);
}

#[test]
fn page_is_rounded_once() {
    let table = simple();
    let scan = Scan::new("Simple");
    let plan = scan.plan(&table).unwrap();
    let mut meter = Meter::new(&plan);
    assert_eq!(meter.cost(DETAIL).read.as_f64(), 0.5);
    for _ in 0..3 {
        meter.add(3000);
    }
    // 9000 bytes are three times 4 KB, read with eventual consistency.
    assert_eq!(meter.cost(DETAIL).read.as_f64(), 1.5);
    assert_eq!(meter.cost(DETAIL).table.as_f64(), 1.5);
    assert_eq!(meter.entries(), 3);
}

#[test]
fn index_page_is_charged_to_the_index() {
    let table = orders();
    let query = Query::new("Orders", KeyCondition::partition("product", "p")).index("by_product");
    let plan = query.plan(&table).unwrap();
    let mut meter = Meter::new(&plan);
    meter.add(5000);
    let cost = meter.cost(DETAIL);
    assert_eq!((cost.table, cost.read), (Units::ZERO, Units::whole(1)));
    assert_eq!(cost.global_indexes["by_product"], Units::whole(1));
}

#[test]
fn fetches_for_a_local_index_are_charged_per_item() {
    let table = orders();
    let query = Query::new("Orders", KeyCondition::partition("customer", "c"))
        .index("by_state")
        .projection(Paths(vec![Path::attribute("v")]))
        .consistent();
    let plan = query.plan(&table).unwrap();
    let mut meter = Meter::new(&plan);
    for item_bytes in [100, 4097] {
        meter.add(50);
        meter.add_fetched(item_bytes);
    }
    let cost = meter.cost(DETAIL);
    assert_eq!(cost.local_indexes["by_state"], Units::whole(1));
    assert_eq!(cost.table, Units::whole(1 + 2));
    assert_eq!(cost.total(), Units::whole(4));
}

#[test]
fn page_ends_with_the_item_that_reaches_1_mb() {
    let table = simple();
    let scan = Scan::new("Simple");
    let plan = scan.plan(&table).unwrap();
    let mut meter = Meter::new(&plan);
    meter.add(1_048_575);
    assert!(!meter.is_full());
    meter.add(1);
    assert!(meter.is_full());
}

#[test]
fn page_ends_at_the_item_limit() {
    let table = simple();
    let scan = Scan::new("Simple").limit(2);
    let plan = scan.plan(&table).unwrap();
    let mut meter = Meter::new(&plan);
    meter.add(1);
    assert!(!meter.is_full());
    meter.add(1);
    assert!(meter.is_full());
}

#[test]
fn merged_costs_add_up() {
    let (old, new) = (row().with("l", "x"), row().with("g", "z"));
    let mut sum = write_cost(&indexed(), None, Some(&old), WriteKind::Plain, DETAIL);
    sum.merge(&write_cost(
        &indexed(),
        Some(&old),
        Some(&new),
        WriteKind::Plain,
        DETAIL,
    ));
    assert_eq!(sum.table, Units::whole(2));
    assert_eq!(sum.local_indexes["local"], Units::whole(2));
    assert_eq!(sum.global_indexes["global"], Units::whole(1));
    assert_eq!(sum.total(), Units::whole(5));
    let none = ConsumedCapacity::new("Indexed", ReturnConsumedCapacity::Total);
    assert!(!none.by_index && none.total() == Units::ZERO);
}

#[test]
fn item_collections_are_estimated_in_whole_gigabytes() {
    const GB: u64 = 1024 * 1024 * 1024;
    let range = |bytes| {
        ItemCollectionMetrics::estimate(&orders(), &order_key().with("v", 1), bytes)
            .map(|metrics| (metrics.key, metrics.size_estimate_gb))
    };
    let key = || Item::new().with("customer", "c-1");
    assert_eq!(range(0), Some((key(), (0.0, 1.0))));
    assert_eq!(range(GB - 1), Some((key(), (0.0, 1.0))));
    assert_eq!(range(GB), Some((key(), (1.0, 2.0))));
    assert_eq!(range(10 * GB), Some((key(), (10.0, 11.0))));
    // Tables without local indexes have no item collections.
    assert_eq!(
        ItemCollectionMetrics::estimate(&simple(), &id("a"), 1),
        None
    );
}
