//! TransactGetItems: a consistent snapshot of several items.

use floe_store::Item;
use floe_store::error::CancellationCode::{self, ValidationError};
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{TransactGet, TransactGetItems};

use super::fixture::*;

fn gets(keys: impl IntoIterator<Item = Item>) -> TransactGetItems {
    TransactGetItems::new(keys.into_iter().map(|key| TransactGet::new("Plain", key)))
}

pub(super) fn returns_items_in_the_order_of_the_request(t: &mut Fixture) {
    t.create(plain());
    t.create(sorted());
    t.fill("Plain", [item("a").with("v", 1), item("b").with("v", 2)]);
    t.fill("Sorted", [row("a", 1)]);
    let mut request = gets([item("b"), item("missing"), item("a")]);
    request.gets.push(TransactGet::new("Sorted", row("a", 1)));
    request.gets[2].projection = Some(projection("v"));
    let output = t.transact_get_items(request).unwrap();
    assert_eq!(
        output.items,
        [
            Some(item("b").with("v", 2)),
            None,
            Some(Item::new().with("v", 1)),
            Some(row("a", 1))
        ]
    );
    assert!(output.consumed.is_empty());
}

pub(super) fn item_without_projected_attributes_is_none(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("v", 1)]);
    let mut request = gets([item("a")]);
    request.gets[0].projection = Some(projection("elsewhere"));
    let output = t.transact_get_items(request).unwrap();
    assert_eq!(output.items, [None]);
}

pub(super) fn accepts_up_to_a_hundred_items(t: &mut Fixture) {
    t.create(plain());
    let most = t.can().transact_items_max;
    let keys = |count: usize| gets((0..count).map(|n| item(&format!("k{n}"))));
    let output = t.transact_get_items(keys(most)).unwrap();
    assert_eq!(output.items.len(), most);
    rejected(
        t.transact_get_items(keys(most + 1)),
        &format!("Member must have length less than or equal to {most}"),
    );
    rejected(t.transact_get_items(keys(0)), EMPTY_LIST);
}

pub(super) fn rejects_duplicates_and_missing_tables(t: &mut Fixture) {
    t.create(plain());
    let twice = gets([item("a"), item("a")]);
    rejected(t.transact_get_items(twice), TWICE_IN_ONE);
    let elsewhere = TransactGetItems::new([TransactGet::new("Nowhere", item("a"))]);
    table_not_found(t.transact_get_items(elsewhere));
}

pub(super) fn wrong_key_cancels_the_transaction(t: &mut Fixture) {
    t.create(plain());
    let request = gets([item("a"), Item::new().with("pk", 1)]);
    let expected = [CancellationCode::None, ValidationError];
    let reasons = canceled_with(t.transact_get_items(request), &expected);
    assert_message(&reasons[1], WRONG_KEY);
}

pub(super) fn reads_up_to_four_megabytes(t: &mut Fixture) {
    t.create(plain());
    let large = "x".repeat(ITEM_BYTES_MAX - 100);
    let items = (0..11).map(|n| item(&format!("k{n}")).with("v", large.clone()));
    t.fill("Plain", items);
    let keys = |count: usize| gets((0..count).map(|n| item(&format!("k{n}"))));
    assert!(t.transact_get_items(keys(10)).is_ok());
    assert!(t.transact_get_items(keys(11)).is_err());
}
