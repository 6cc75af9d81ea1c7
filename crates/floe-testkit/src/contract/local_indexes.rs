//! Local indexes: a partition in another order.

use floe_store::Item;
use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::op::{Query, Scan, Select};
use floe_store::table::{KeyKind, Projection, TableBuilder};

use super::fixture::*;

/// A table with a local index on `h` (N).
fn with_local(projection: Projection) -> TableBuilder {
    sorted().local_index("by_h", "h", KeyKind::N, projection)
}

fn by_h(pk: &str) -> Query {
    partition(pk).index("by_h")
}

pub(super) async fn orders_a_partition_anew(t: &mut Fixture) {
    t.create(with_local(Projection::All)).await;
    t.fill(
        "Sorted",
        [
            row("a", 1).with("h", 30),
            row("a", 2).with("h", 10),
            row("a", 3),
            row("a", 4).with("h", 20),
            row("b", 5).with("h", 15),
        ],
    )
    .await;
    assert_eq!(t.query_sks(by_h("a")).await, [2, 4, 1]);
    assert_eq!(t.query_sks(by_h("a").backward()).await, [1, 4, 2]);
    let ranged = KeyCondition::partition("pk", "a").and("h", KeyOp::Lt(30.into()));
    let ranged = Query::new("Sorted", ranged).index("by_h");
    assert_eq!(t.query_sks(ranged.limit(1)).await, [2, 4]);
    assert_eq!(t.scan_all(Scan::new("Sorted").index("by_h")).await.len(), 4);
}

pub(super) async fn is_read_consistently_when_asked(t: &mut Fixture) {
    t.create(with_local(Projection::KeysOnly)).await;
    for n in 0..10 {
        t.put("Sorted", row("a", n).with("h", -n)).await.unwrap();
        let page = t.query(by_h("a").consistent()).await.unwrap();
        assert_eq!(sks(&page.items).first(), Some(&i64::from(n)));
    }
}

pub(super) async fn fetches_what_it_has_not_copied(t: &mut Fixture) {
    t.create(with_local(Projection::KeysOnly)).await;
    let full = row("a", 1).with("h", 1).with("v", "fetched").with("w", 2);
    t.put("Sorted", full.clone()).await.unwrap();
    assert_eq!(t.query_all(by_h("a")).await, [row("a", 1).with("h", 1)]);
    let mut all = by_h("a");
    all.select = Some(Select::AllAttributes);
    assert_eq!(t.query_all(all).await, [full]);
    let mut specific = by_h("a");
    specific.projection = Some(projection("v"));
    assert_eq!(
        t.query_all(specific).await,
        [Item::new().with("v", "fetched")]
    );
}
