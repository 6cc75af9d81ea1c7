//! Scan: a whole table in pages, or one segment of it.

use std::collections::BTreeSet;

use floe_store::expr::{Condition, Path};
use floe_store::op::{Scan, Select};
use floe_store::{Item, Value};

use super::fixture::*;

fn many() -> Vec<Item> {
    let pk = |n: i32| format!("p{}", n % 7);
    (0..40).map(|n| row(&pk(n), n).with("n", n % 3)).collect()
}

/// The items in a fixed order, for comparison.
fn in_order(mut items: Vec<Item>) -> Vec<String> {
    let mut texts: Vec<String> = items.drain(..).map(|item| format!("{item:?}")).collect();
    texts.sort();
    texts
}

pub(super) fn reads_every_item_once(t: &mut Fixture) {
    t.create_with(sorted(), many());
    let page = t.scan(Scan::new("Sorted")).unwrap();
    assert_eq!(in_order(page.items), in_order(many()));
    assert_eq!((page.count, page.scanned_count), (40, 40));
    assert_eq!(page.last_key, None);
}

pub(super) fn pages_contain_every_item_once(t: &mut Fixture) {
    t.create_with(sorted(), many());
    for limit in [1, 3, 39, 40, 41] {
        let items = t.scan_all(Scan::new("Sorted").limit(limit));
        assert_eq!(in_order(items), in_order(many()), "limit={limit}");
    }
}

pub(super) fn partitions_are_contiguous_and_sorted(t: &mut Fixture) {
    t.create_with(sorted(), many());
    let items = t.scan_all(Scan::new("Sorted").limit(4));
    let mut seen = BTreeSet::new();
    let mut last: Option<(String, i64)> = None;
    for item in &items {
        let pk = item.get("pk").and_then(Value::as_s).unwrap().to_owned();
        let sk = sks(std::slice::from_ref(item))[0];
        match &last {
            Some((same, before)) if *same == pk => assert!(*before < sk, "sorted within {pk}"),
            _ => assert!(seen.insert(pk.clone()), "{pk} is contiguous"),
        }
        last = Some((pk, sk));
    }
}

pub(super) fn empty_table_returns_an_empty_page(t: &mut Fixture) {
    t.create(sorted());
    let page = t.scan(Scan::new("Sorted")).unwrap();
    assert_eq!((page.count, page.scanned_count), (0, 0));
    assert_eq!(page.items, Vec::<Item>::new());
    assert_eq!(page.last_key, None);
}

pub(super) fn filter_may_use_key_attributes(t: &mut Fixture) {
    t.create_with(sorted(), many());
    let filter = condition("pk = :p AND n = :n", &values! {"p" => "p1", "n" => 1});
    let page = t.scan(Scan::new("Sorted").filter(filter)).unwrap();
    let expected: Vec<Item> = many()
        .into_iter()
        .filter(|item| item.get("pk") == Some(&"p1".into()) && item.get("n") == Some(&1.into()))
        .collect();
    assert_eq!(page.count, expected.len());
    assert_eq!(page.scanned_count, 40);
    assert_eq!(in_order(page.items), in_order(expected));
}

pub(super) fn segments_partition_the_table(t: &mut Fixture) {
    t.create_with(sorted(), many());
    for total in [1, 2, 3, 8] {
        let mut items = Vec::new();
        for index in 0..total {
            items.extend(t.scan_all(Scan::new("Sorted").segment(index, total).limit(3)));
        }
        assert_eq!(in_order(items), in_order(many()), "total={total}");
    }
}

pub(super) fn items_of_a_partition_are_in_one_segment(t: &mut Fixture) {
    t.create_with(sorted(), many());
    let mut owners = std::collections::BTreeMap::new();
    for index in 0..4 {
        for item in t.scan_all(Scan::new("Sorted").segment(index, 4)) {
            let pk = item.get("pk").and_then(Value::as_s).unwrap().to_owned();
            assert_eq!(*owners.entry(pk).or_insert(index), index);
        }
    }
    assert_eq!(owners.len(), 7);
}

pub(super) fn segments_must_be_in_range(t: &mut Fixture) {
    t.create(sorted());
    rejections! {
        t.scan(Scan::new("Sorted").segment(2, 2))
            => "The Segment parameter is zero-based and must be less than parameter TotalSegments";
        t.scan(Scan::new("Sorted").segment(0, 0)) => "greater than or equal to 1";
        t.scan(Scan::new("Sorted").segment(0, 1_000_001))
            => "Member must have value less than or equal to 1000000";
    }
    let last = t.scan(Scan::new("Sorted").segment(999_999, 1_000_000));
    assert!(last.is_ok());
}

pub(super) fn start_key_must_belong_to_the_segment(t: &mut Fixture) {
    t.create_with(sorted(), many());
    let mut rejections = 0;
    for index in 0..4 {
        let start = Some(row("p1", 1));
        let page = t.scan(Scan::new("Sorted").segment(index, 4).start_key(start));
        if let Err(error) = page {
            rejections += 1;
            let text = "The provided starting key is invalid: Invalid ExclusiveStartKey. \
                        Please use ExclusiveStartKey with correct Segment. TotalSegments: 4";
            assert!(error.to_string().starts_with(text), "{error}");
        }
    }
    assert_eq!(rejections, 3, "the key belongs to one segment only");
}

pub(super) fn count_returns_no_items(t: &mut Fixture) {
    t.create_with(sorted(), many());
    let scan = Scan::new("Sorted")
        .filter(Condition::eq(Path::from("n"), 0))
        .selecting(Select::Count);
    let page = t.scan(scan).unwrap();
    assert_eq!((page.count, page.scanned_count), (14, 40));
    assert_eq!(page.items, Vec::<Item>::new());
}

pub(super) fn projects(t: &mut Fixture) {
    let document = row("a", 1).with("m", map([("x", 1), ("y", 2)]));
    t.create_with(sorted(), [document, row("a", 2)]);
    let scan = Scan::new("Sorted").projecting("sk, m.y");
    let items = t.scan_all(scan);
    let expected = [
        Item::new().with("sk", 1).with("m", map([("y", 2)])),
        Item::new().with("sk", 2),
    ];
    assert_eq!(items, expected);
}

pub(super) fn deleted_items_are_not_returned(t: &mut Fixture) {
    t.create_with(sorted(), many());
    for sk in 0..40 {
        let pk = format!("p{}", sk % 7);
        if sk % 2 == 0 {
            t.delete("Sorted", row(&pk, sk));
        }
    }
    let remaining = t.all_items("Sorted");
    let mut remaining = sks(&remaining);
    remaining.sort_unstable();
    let odd: Vec<i64> = (0..40).filter(|n| n % 2 == 1).collect();
    assert_eq!(remaining, odd);
}

pub(super) fn consistent_reads_see_completed_writes(t: &mut Fixture) {
    t.create(plain());
    for n in 0..10 {
        t.put("Plain", item(&format!("k{n}"))).unwrap();
        let page = t.scan(Scan::new("Plain").consistent()).unwrap();
        assert_eq!(page.count, n + 1);
    }
}

pub(super) fn missing_table_or_index_is_reported(t: &mut Fixture) {
    table_not_found(t.scan(Scan::new("Nowhere")));
    t.create(plain());
    let scan = t.scan(Scan::new("Plain").index("nothing"));
    rejected(scan, "The table does not have the specified index: nothing");
}
