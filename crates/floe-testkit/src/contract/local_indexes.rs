//! Local indexes: a partition sorted by another attribute.

use floe_store::Item;
use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::op::{Query, Select};
use floe_store::table::{KeyKind, Projection, TableBuilder};

use super::fixture::*;

/// A table with a local index on `h` (N).
fn with_local(projection: Projection) -> TableBuilder {
    sorted().local_index("by_h", "h", KeyKind::N, projection)
}

fn by_h(pk: &str) -> Query {
    partition(pk).index("by_h")
}

pub(super) fn sorts_a_partition_by_another_attribute(t: &mut Fixture) {
    t.create_with(
        with_local(Projection::All),
        [
            row("a", 1).with("h", 30),
            row("a", 2).with("h", 10),
            row("a", 3),
            row("a", 4).with("h", 20),
            row("b", 5).with("h", 15),
        ],
    );
    assert_eq!(t.query_sks(by_h("a")), [2, 4, 1]);
    assert_eq!(t.query_sks(by_h("a").backward()), [1, 4, 2]);
    let ranged = KeyCondition::partition("pk", "a").and("h", KeyOp::Lt(30.into()));
    let ranged = Query::new("Sorted", ranged).index("by_h");
    assert_eq!(t.query_sks(ranged.limit(1)), [2, 4]);
    assert_eq!(t.all_entries("Sorted", "by_h").len(), 4);
}

pub(super) fn supports_consistent_reads(t: &mut Fixture) {
    t.create(with_local(Projection::KeysOnly));
    for n in 0..10 {
        t.put("Sorted", row("a", n).with("h", -n)).unwrap();
        let page = t.query(by_h("a").consistent()).unwrap();
        assert_eq!(sks(&page.items).first(), Some(&i64::from(n)));
    }
}

pub(super) fn fetches_unprojected_attributes_from_the_table(t: &mut Fixture) {
    t.create(with_local(Projection::KeysOnly));
    let full = row("a", 1).with("h", 1).with("v", "fetched").with("w", 2);
    t.put("Sorted", full.clone()).unwrap();
    assert_eq!(t.query_all(by_h("a")), [row("a", 1).with("h", 1)]);
    let all = by_h("a").selecting(Select::AllAttributes);
    assert_eq!(t.query_all(all), [full]);
    let specific = by_h("a").projecting("v");
    assert_eq!(t.query_all(specific), [Item::new().with("v", "fetched")]);
}
