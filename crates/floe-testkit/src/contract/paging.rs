//! Pages of queries and scans: where they end and where they continue.

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::limits::{ITEM_BYTES_MAX, PAGE_BYTES_MAX};
use floe_store::op::{Page, Query, Scan};

use super::fixture::*;

/// The sort keys of each page.
fn page_sks(pages: &[Page]) -> Vec<Vec<i64>> {
    pages.iter().map(|page| sks(&page.items)).collect()
}

pub(super) fn page_ends_at_the_limit(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", 1..=5));
    let pages = t.pages(partition("a").limit(2));
    let read = page_sks(&pages);
    assert_eq!(read, [vec![1, 2], vec![3, 4], vec![5]]);
    assert_eq!(pages[0].last_key, Some(row("a", 2)));
    assert_eq!(pages[1].last_key, Some(row("a", 4)));
}

pub(super) fn page_that_ends_with_the_last_item_has_a_last_key(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", 1..=4));
    let pages = t.pages(partition("a").limit(2));
    let read = page_sks(&pages);
    assert_eq!(
        read,
        [vec![1, 2], vec![3, 4], vec![]],
        "only the next page shows the end"
    );
    let whole = t.query(partition("a").limit(5)).unwrap();
    assert_eq!(whole.last_key, None);
}

pub(super) fn backward_pages_continue_backward(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", 1..=5));
    let pages = t.pages(partition("a").backward().limit(2));
    let read = page_sks(&pages);
    assert_eq!(read, [vec![5, 4], vec![3, 2], vec![1]]);
    assert_eq!(pages[0].last_key, Some(row("a", 4)));
}

pub(super) fn pages_of_a_range_stay_in_the_range(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", 1..=9));
    let query = partition_where("a", KeyOp::Between(3.into(), 7.into())).limit(2);
    assert_eq!(t.query_sks(query.clone()), [3, 4, 5, 6, 7]);
    assert_eq!(t.query_sks(query.backward()), [7, 6, 5, 4, 3]);
}

pub(super) fn start_key_need_not_exist(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", [2, 4, 6]));
    let from = |sk: i32| partition("a").start_key(Some(row("a", sk)));
    assert_eq!(sks(&t.query(from(3)).unwrap().items), [4, 6]);
    assert_eq!(sks(&t.query(from(4)).unwrap().items), [6]);
    assert_eq!(sks(&t.query(from(0)).unwrap().items), [2, 4, 6]);
    assert_eq!(sks(&t.query(from(9)).unwrap().items), Vec::<i64>::new());
    assert_eq!(sks(&t.query(from(3).backward()).unwrap().items), [2]);
}

pub(super) fn items_may_be_deleted_between_pages(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", 1..=6));
    let first = t.query(partition("a").limit(2)).unwrap();
    for sk in [2, 3] {
        t.delete("Sorted", row("a", sk));
    }
    let rest = t.query(partition("a").start_key(first.last_key)).unwrap();
    assert_eq!(sks(&rest.items), [4, 5, 6]);

    let mut scanned = Vec::new();
    let mut scan = Scan::new("Sorted").limit(1);
    loop {
        let page = t.scan(scan.clone()).unwrap();
        for item in &page.items {
            t.delete("Sorted", item.clone());
        }
        scanned.extend(sks(&page.items));
        match page.last_key {
            Some(key) => scan.start_key = Some(key),
            None => break,
        }
    }
    assert_eq!(
        scanned,
        [1, 4, 5, 6],
        "each page is read after the previous one was deleted"
    );
}

pub(super) fn start_key_must_match_the_key_schema(t: &mut Fixture) {
    t.create(sorted());
    for key in wrong_keys() {
        let query = partition("a").start_key(Some(key.clone()));
        rejected(t.query(query), WRONG_START);
        let scan = Scan::new("Sorted").start_key(Some(key));
        rejected(t.scan(scan), WRONG_START);
    }
}

pub(super) fn start_key_must_be_within_the_query(t: &mut Fixture) {
    t.create(sorted());
    t.create(plain());
    let other = partition("a").start_key(Some(row("b", 1)));
    let outside = partition_where("a", KeyOp::Gt(5.into())).start_key(Some(row("a", 3)));
    let plain = Query::new("Plain", KeyCondition::partition("pk", "a")).start_key(Some(item("b")));
    rejections! {
        t.query(other)
            => "The provided starting key is outside query boundaries based on provided conditions";
        t.query(outside) => "The provided starting key does not match the range key predicate";
        t.query(plain) => "The provided exclusive start key is invalid";
    }
}

pub(super) fn limit_is_at_least_one(t: &mut Fixture) {
    t.create(sorted());
    let detail = "failed to satisfy constraint: Member must have value greater than or equal to 1";
    rejected(t.query(partition("a").limit(0)), detail);
    rejected(t.scan(Scan::new("Sorted").limit(0)), detail);
}

pub(super) fn page_ends_after_the_item_that_reaches_a_megabyte(t: &mut Fixture) {
    t.create(sorted());
    let quarter = PAGE_BYTES_MAX / 4;
    for sk in 1..=6 {
        t.fill("Sorted", [item_of_size(row("a", sk), quarter)]);
    }
    let pages = t.pages(partition("a"));
    let read = page_sks(&pages);
    assert_eq!(
        read,
        [vec![1, 2, 3, 4], vec![5, 6]],
        "a megabyte is reached"
    );
    assert_eq!(pages[0].last_key, Some(row("a", 4)));
    t.fill("Sorted", [item_of_size(row("a", 2), quarter - 1)]);
    let page = t.query(partition("a")).unwrap();
    assert_eq!(sks(&page.items), [1, 2, 3, 4, 5], "one byte is missing");
    assert_eq!(page.last_key, Some(row("a", 5)));
    let page = t.query(partition("a").limit(4)).unwrap();
    assert_eq!(sks(&page.items), [1, 2, 3, 4]);
}

pub(super) fn page_size_is_counted_before_filter_and_projection(t: &mut Fixture) {
    t.create(sorted());
    for sk in 1..=3 {
        t.fill("Sorted", [item_of_size(row("a", sk), ITEM_BYTES_MAX)]);
    }
    let query = partition("a")
        .filter(bare_condition("attribute_exists(nothing)"))
        .projecting("sk");
    let page = t.query(query).unwrap();
    assert_eq!((page.count, page.scanned_count), (0, 3));
    // Even if no item follows.
    assert_eq!(page.last_key, Some(row("a", 3)));
}

pub(super) fn large_tables_are_scanned_in_pages_of_a_megabyte(t: &mut Fixture) {
    t.create(sorted());
    for sk in 1..=5 {
        t.fill("Sorted", [item_of_size(row("a", sk), ITEM_BYTES_MAX)]);
    }
    let page = t.scan(Scan::new("Sorted")).unwrap();
    assert_eq!(page.scanned_count, 3);
    let items = t.all_items("Sorted");
    assert_eq!(sks(&items), [1, 2, 3, 4, 5]);
    let pages = t.pages(partition("a").backward());
    let read = page_sks(&pages);
    assert_eq!(read, [vec![5, 4, 3], vec![2, 1]]);
}

pub(super) fn query_for_one_row_cannot_be_continued_elsewhere(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", [1]));
    let query = partition_where("a", KeyOp::Eq(1.into()));
    let page = t.query(query.clone().limit(1)).unwrap();
    assert_eq!(sks(&page.items), [1]);
    let rest = t.query(query.clone().start_key(page.last_key)).unwrap();
    assert_eq!((rest.count, rest.last_key), (0, None));
    let other = t.query(query.start_key(Some(row("b", 1))));
    let detail = "The query can return at most one row and cannot be restarted";
    rejected(other, detail);
}

pub(super) fn paging_continues_after_reopening(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", 1..=4));
    let first = t.query(partition("a").limit(3)).unwrap();
    t.reopen();
    let rest = t.query(partition("a").start_key(first.last_key)).unwrap();
    assert_eq!(sks(&rest.items), [4]);
}
