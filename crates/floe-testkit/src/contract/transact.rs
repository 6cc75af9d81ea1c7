//! TransactWriteItems: several items, all or nothing.

use floe_store::Item;
use floe_store::error::CancellationCode::{ConditionalCheckFailed, None, ValidationError};
use floe_store::expr::Update;
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{ConditionCheck, DeleteItem, PutItem, UpdateItem};
use floe_store::table::Projection;

use super::fixture::*;

pub(super) fn applies_every_action(t: &mut Fixture) {
    t.create(sorted());
    let items = [
        item("old").with("v", 1),
        item("n").with("n", 1),
        item("check"),
    ];
    t.create_with(plain(), items);
    t.transact([
        put(item("new").with("v", 2)),
        add("n", 5),
        DeleteItem::new("Plain", item("old")).into(),
        check("check", "attribute_exists(pk)"),
        PutItem::new("Sorted", row("a", 1)).into(),
    ])
    .unwrap();
    t.assert_item("Plain", item("new").with("v", 2));
    t.assert_item("Plain", item("n").with("n", 6));
    assert_eq!(t.get("Plain", item("old")), Option::None);
    t.assert_item("Plain", item("check"));
    t.assert_item("Sorted", row("a", 1));
}

pub(super) fn applies_nothing_if_one_condition_fails(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("n", 1), item("b")]);
    let unmet =
        DeleteItem::new("Plain", item("b")).condition(bare_condition("attribute_exists(x)"));
    let expected = [None, None, ConditionalCheckFailed];
    let reasons = canceled_with(
        t.transact([add("a", 1), put(item("c")), unmet.into()]),
        &expected,
    );
    assert_message(&reasons[2], "The conditional request failed");
    assert_eq!(reasons[2].item, Option::None);
    assert_eq!(reasons[0].message, Option::None);
    t.assert_item("Plain", item("a").with("n", 1));
    t.assert_item("Plain", item("b"));
    assert_eq!(t.get("Plain", item("c")), Option::None);
}

pub(super) fn reports_every_failed_condition(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("v", 1)]);
    let returning = |pk: &str| {
        let unmet = bare_condition("attribute_exists(x)");
        let mut check = ConditionCheck::new("Plain", item(pk), unmet);
        check.return_old_on_failure = true;
        check.into()
    };
    let expected = [ConditionalCheckFailed, None, ConditionalCheckFailed];
    let reasons = canceled_with(
        t.transact([returning("a"), put(item("ok")), returning("none")]),
        &expected,
    );
    assert_eq!(reasons[0].item, Some(item("a").with("v", 1)));
    assert_eq!(reasons[2].item, Option::None);
}

pub(super) fn update_errors_are_cancellation_reasons(t: &mut Fixture) {
    t.create_with(plain(), [item("text").with("n", "x")]);
    let path = update_item("Plain", item("path"), "SET a.b = :v", &values! {"v" => 1});
    let operand = update_item("Plain", item("text"), "SET n = n + :v", &values! {"v" => 1});
    let unmet = check("missing", "attribute_exists(pk)");
    let expected = [
        None,
        ValidationError,
        ValidationError,
        ConditionalCheckFailed,
    ];
    let reasons = canceled_with(
        t.transact([put(item("ok")), path.into(), operand.into(), unmet]),
        &expected,
    );
    let path = "The document path provided in the update expression is invalid for update";
    assert_message(&reasons[1], path);
    let operand = "An operand in the update expression has an incorrect data type";
    assert_message(&reasons[2], operand);
    assert_eq!(t.get("Plain", item("ok")), Option::None);
}

pub(super) fn exceeded_item_size_is_a_cancellation_reason(t: &mut Fixture) {
    let large = item("a").with("v", "x".repeat(ITEM_BYTES_MAX - 1000));
    t.create_with(plain(), [large]);
    let values = values! {"w" => "y".repeat(2000)};
    let grow = update_item("Plain", item("a"), "SET w = :w", &values);
    let reasons = canceled(t.transact([grow.into(), put(item("b"))]));
    assert_eq!(reasons[0].code, ValidationError);
    let detail = "Item size to update has exceeded the maximum allowed size";
    assert_message(&reasons[0], detail);
}

pub(super) fn wrong_index_key_type_is_a_cancellation_reason(t: &mut Fixture) {
    t.create(indexed(Projection::All));
    let set = update_item("Plain", item("a"), "SET g = :v", &values! {"v" => 1});
    let expected = [None, ValidationError];
    let reasons = canceled_with(t.transact([put(item("b")), set.into()]), &expected);
    assert_message(
        &reasons[1],
        "One or more parameter values were invalid: Type mismatch for Index Key g Expected: S Actual: N IndexName: by_g",
    );
}

pub(super) fn duplicate_items_are_rejected(t: &mut Fixture) {
    t.create(plain());
    let pairs = [
        [put(item("a")), put(item("a").with("v", 1))],
        [put(item("a")), check("a", "attribute_exists(pk)")],
        [add("a", 1), DeleteItem::new("Plain", item("a")).into()],
    ];
    for pair in pairs {
        rejected(t.transact(pair), TWICE_IN_ONE);
    }
    assert_eq!(t.all_items("Plain"), Vec::<Item>::new());
}

pub(super) fn accepts_up_to_a_hundred_actions(t: &mut Fixture) {
    t.create(plain());
    let most = t.can().transact_items_max;
    let puts = |count: usize| (0..count).map(|n| put(item(&format!("k{n}"))));
    t.transact(puts(most)).unwrap();
    assert_eq!(t.all_items("Plain").len(), most);
    rejections! {
        t.transact(puts(most + 1))
            => &format!(
            "failed to satisfy constraint: Member must have length less than or equal to {most}"
        );
        t.transact([])
            => "failed to satisfy constraint: Member must have length greater than or equal to 1";
    }
}

pub(super) fn accepts_up_to_four_megabytes(t: &mut Fixture) {
    t.create(plain());
    let large = |n: usize| put(item(&format!("k{n}")).with("v", "x".repeat(ITEM_BYTES_MAX - 100)));
    t.transact((0..10).map(large)).unwrap();
    rejected(t.transact((0..11).map(large)), "4MB");
    // The bytes of the request count, not those of the stored items.
    t.transact(
        (0..10).map(|n| put(item(&format!("m{n}")).with("v", "x".repeat(ITEM_BYTES_MAX - 100)))),
    )
    .unwrap();
    let keys = (0..10).flat_map(|n| [format!("k{n}"), format!("m{n}")]);
    let deletes = keys.map(|key| DeleteItem::new("Plain", item(&key)).into());
    t.transact(deletes).unwrap();
    assert_eq!(t.all_items("Plain"), Vec::<Item>::new());
}

pub(super) fn invalid_request_is_rejected_before_anything_is_applied(t: &mut Fixture) {
    t.create(plain());
    let overlapping = Update::new().set("x", 1).set("x", 2);
    let bad = UpdateItem::new("Plain", item("b"), overlapping);
    rejected(t.transact([put(item("a")), bad.into()]), OVERLAP);
    let elsewhere = PutItem::new("Nowhere", item("a"));
    table_not_found(t.transact([put(item("a")), elsewhere.into()]));
    let large = put(item("b").with("v", "x".repeat(ITEM_BYTES_MAX)));
    rejected(t.transact([put(item("a")), large]), ITEM_TOO_LARGE);
    assert_eq!(t.all_items("Plain"), Vec::<Item>::new());
}

pub(super) fn wrong_key_cancels_the_transaction(t: &mut Fixture) {
    t.create(sorted());
    let bad = DeleteItem::new("Sorted", item("a"));
    let good = PutItem::new("Sorted", row("a", 1));
    let expected = [None, ValidationError];
    let reasons = canceled_with(t.transact([good.into(), bad.into()]), &expected);
    assert_message(&reasons[1], WRONG_KEY);
}

pub(super) fn first_invalid_action_is_the_only_reason(t: &mut Fixture) {
    t.create(plain());
    let wrong = |n: i32| put(Item::new().with("pk", n));
    let unmet = check("missing", "attribute_exists(pk)");
    let expected = [None, ValidationError, None, None];
    let reasons = canceled_with(
        t.transact([put(item("a")), wrong(7), wrong(8), unmet]),
        &expected,
    );
    assert_message(
        &reasons[1],
        "One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N",
    );
}

pub(super) fn empty_index_key_in_an_update_is_rejected(t: &mut Fixture) {
    t.create(indexed(Projection::All));
    let set = update_item("Plain", item("a"), "SET g = :v", &values! {"v" => ""});
    rejected(
        t.transact([put(item("b")), set.into()]),
        "The update expression attempted to update a secondary index key to a value that is not supported",
    );
}

pub(super) fn indexes_change_with_the_transaction(t: &mut Fixture) {
    let items = ["a", "b"].map(|pk| item(pk).with("g", "x"));
    t.create_with(indexed(Projection::All), items);
    let set = update_item("Plain", item("a"), "SET g = :v", &values! {"v" => "y"});
    t.transact([
        set.into(),
        DeleteItem::new("Plain", item("b")).into(),
        put(item("c").with("g", "y")),
    ])
    .unwrap();
    let index = t.all_entries("Plain", "by_g");
    assert_eq!(texts(&index, "pk"), ["a", "c"]);
    assert_eq!(texts(&index, "g"), ["y", "y"]);
}
