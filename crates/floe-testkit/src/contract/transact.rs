//! TransactWriteItems: many items, all or nothing.

use floe_store::Item;
use floe_store::error::CancellationCode;
use floe_store::expr::Update;
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{ConditionCheck, DeleteItem, PutItem, Scan, UpdateItem};
use floe_store::table::Projection;

use super::fixture::*;

pub(super) async fn applies_every_action(t: &mut Fixture) {
    t.create(plain()).await;
    t.create(sorted()).await;
    t.fill(
        "Plain",
        [
            item("old").with("v", 1),
            item("n").with("n", 1),
            item("check"),
        ],
    )
    .await;
    t.transact([
        put(item("new").with("v", 2)),
        add("n", 5),
        DeleteItem::new("Plain", item("old")).into(),
        check("check", "attribute_exists(pk)"),
        PutItem::new("Sorted", row("a", 1)).into(),
    ])
    .await
    .unwrap();
    t.assert_item("Plain", item("new").with("v", 2)).await;
    t.assert_item("Plain", item("n").with("n", 6)).await;
    assert_eq!(t.get("Plain", item("old")).await, None);
    t.assert_item("Plain", item("check")).await;
    t.assert_item("Sorted", row("a", 1)).await;
}

pub(super) async fn applies_nothing_if_one_condition_fails(t: &mut Fixture) {
    t.create(plain()).await;
    t.fill("Plain", [item("a").with("n", 1), item("b")]).await;
    let unmet =
        DeleteItem::new("Plain", item("b")).condition(bare_condition("attribute_exists(x)"));
    let answer = t
        .transact([add("a", 1), put(item("c")), unmet.into()])
        .await;
    let reasons = canceled(answer);
    use CancellationCode::{ConditionalCheckFailed, None};
    assert_eq!(codes(&reasons), [None, None, ConditionalCheckFailed]);
    assert_message(&reasons[2], "The conditional request failed");
    assert_eq!(reasons[2].item, Option::None);
    assert_eq!(reasons[0].message, Option::None);
    t.assert_item("Plain", item("a").with("n", 1)).await;
    t.assert_item("Plain", item("b")).await;
    assert_eq!(t.get("Plain", item("c")).await, Option::None);
}

pub(super) async fn names_every_failed_condition(t: &mut Fixture) {
    t.create(plain()).await;
    t.fill("Plain", [item("a").with("v", 1)]).await;
    let mut with_item =
        ConditionCheck::new("Plain", item("a"), bare_condition("attribute_exists(x)"));
    with_item.return_old_on_failure = true;
    let mut without_item =
        ConditionCheck::new("Plain", item("none"), bare_condition("attribute_exists(x)"));
    without_item.return_old_on_failure = true;
    let reasons = canceled(
        t.transact([with_item.into(), put(item("ok")), without_item.into()])
            .await,
    );
    use CancellationCode::{ConditionalCheckFailed, None};
    assert_eq!(
        codes(&reasons),
        [ConditionalCheckFailed, None, ConditionalCheckFailed]
    );
    assert_eq!(reasons[0].item, Some(item("a").with("v", 1)));
    assert_eq!(reasons[2].item, Option::None);
}

pub(super) async fn faults_of_an_action_are_reasons_too(t: &mut Fixture) {
    t.create(plain()).await;
    t.fill("Plain", [item("text").with("n", "x")]).await;
    let path = update_item("Plain", item("path"), "SET a.b = :v", &values! {"v" => 1});
    let operand = update_item("Plain", item("text"), "SET n = n + :v", &values! {"v" => 1});
    let unmet = check("nobody", "attribute_exists(pk)");
    let reasons = canceled(
        t.transact([put(item("ok")), path.into(), operand.into(), unmet])
            .await,
    );
    use CancellationCode::{ConditionalCheckFailed, None, ValidationError};
    assert_eq!(
        codes(&reasons),
        [
            None,
            ValidationError,
            ValidationError,
            ConditionalCheckFailed
        ]
    );
    assert_message(
        &reasons[1],
        "The document path provided in the update expression is invalid for update",
    );
    assert_message(
        &reasons[2],
        "An operand in the update expression has an incorrect data type",
    );
    assert_eq!(t.get("Plain", item("ok")).await, Option::None);
}

pub(super) async fn an_item_grown_too_large_is_a_reason(t: &mut Fixture) {
    t.create(plain()).await;
    t.fill(
        "Plain",
        [item("a").with("v", "x".repeat(ITEM_BYTES_MAX - 1000))],
    )
    .await;
    let values = values! {"w" => "y".repeat(2000)};
    let grow = update_item("Plain", item("a"), "SET w = :w", &values);
    let reasons = canceled(t.transact([grow.into(), put(item("b"))]).await);
    assert_eq!(reasons[0].code, CancellationCode::ValidationError);
    assert_message(
        &reasons[0],
        "Item size to update has exceeded the maximum allowed size",
    );
}

pub(super) async fn index_keys_of_a_wrong_type_are_reasons(t: &mut Fixture) {
    t.create(indexed(Projection::All)).await;
    let set = update_item("Plain", item("a"), "SET g = :v", &values! {"v" => 1});
    let reasons = canceled(t.transact([put(item("b")), set.into()]).await);
    assert_eq!(
        codes(&reasons),
        [CancellationCode::None, CancellationCode::ValidationError]
    );
    assert_message(
        &reasons[1],
        "One or more parameter values were invalid: Type mismatch for Index Key g Expected: S Actual: N IndexName: by_g",
    );
}

pub(super) async fn each_item_comes_once(t: &mut Fixture) {
    t.create(plain()).await;
    let detail = "Transaction request cannot include multiple operations on one item";
    let pairs = [
        [put(item("a")), put(item("a").with("v", 1))],
        [put(item("a")), check("a", "attribute_exists(pk)")],
        [add("a", 1), DeleteItem::new("Plain", item("a")).into()],
    ];
    for pair in pairs {
        refused(t.transact(pair).await, detail);
    }
    assert_eq!(t.scan_all(Scan::new("Plain")).await, Vec::<Item>::new());
}

pub(super) async fn takes_up_to_a_hundred_actions(t: &mut Fixture) {
    t.create(plain()).await;
    let most = t.can().transact_items_max;
    let puts = |count: usize| (0..count).map(|n| put(item(&format!("k{n}"))));
    t.transact(puts(most)).await.unwrap();
    assert_eq!(t.scan_all(Scan::new("Plain")).await.len(), most);
    refused(
        t.transact(puts(most + 1)).await,
        &format!(
            "failed to satisfy constraint: Member must have length less than or equal to {most}"
        ),
    );
    refused(
        t.transact([]).await,
        "failed to satisfy constraint: Member must have length greater than or equal to 1",
    );
}

pub(super) async fn takes_up_to_four_megabytes(t: &mut Fixture) {
    t.create(plain()).await;
    let large = |n: usize| put(item(&format!("k{n}")).with("v", "x".repeat(ITEM_BYTES_MAX - 100)));
    t.transact((0..10).map(large)).await.unwrap();
    refused(t.transact((0..11).map(large)).await, "4MB");
    // What counts is what the request carries, not the items that it is about.
    t.transact(
        (0..10).map(|n| put(item(&format!("m{n}")).with("v", "x".repeat(ITEM_BYTES_MAX - 100)))),
    )
    .await
    .unwrap();
    let keys = (0..10).flat_map(|n| [format!("k{n}"), format!("m{n}")]);
    let deletes = keys.map(|key| DeleteItem::new("Plain", item(&key)).into());
    t.transact(deletes).await.unwrap();
    assert_eq!(t.scan_all(Scan::new("Plain")).await, Vec::<Item>::new());
}

pub(super) async fn faults_of_the_request_are_found_before_anything(t: &mut Fixture) {
    t.create(plain()).await;
    let overlapping = Update::new().set("x", 1).set("x", 2);
    let bad = UpdateItem::new("Plain", item("b"), overlapping);
    refused(t.transact([put(item("a")), bad.into()]).await, OVERLAP);
    let elsewhere = PutItem::new("Nowhere", item("a"));
    no_table(t.transact([put(item("a")), elsewhere.into()]).await);
    let large = put(item("b").with("v", "x".repeat(ITEM_BYTES_MAX)));
    refused(t.transact([put(item("a")), large]).await, ITEM_TOO_LARGE);
    assert_eq!(t.scan_all(Scan::new("Plain")).await, Vec::<Item>::new());
}

pub(super) async fn keys_that_do_not_fit_cancel_it(t: &mut Fixture) {
    t.create(sorted()).await;
    let bad = DeleteItem::new("Sorted", item("a"));
    let good = PutItem::new("Sorted", row("a", 1));
    let reasons = canceled(t.transact([good.into(), bad.into()]).await);
    assert_eq!(
        codes(&reasons),
        [CancellationCode::None, CancellationCode::ValidationError]
    );
    assert_message(
        &reasons[1],
        "The provided key element does not match the schema",
    );
}

pub(super) async fn the_first_action_that_is_wrong_for_its_table_is_the_only_reason(
    t: &mut Fixture,
) {
    t.create(plain()).await;
    let wrong = |n: i32| put(Item::new().with("pk", n));
    let unmet = check("nobody", "attribute_exists(pk)");
    let reasons = canceled(
        t.transact([put(item("a")), wrong(7), wrong(8), unmet])
            .await,
    );
    use CancellationCode::{None, ValidationError};
    assert_eq!(codes(&reasons), [None, ValidationError, None, None]);
    assert_message(
        &reasons[1],
        "One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N",
    );
}

pub(super) async fn an_update_that_empties_an_index_key_refuses_it(t: &mut Fixture) {
    t.create(indexed(Projection::All)).await;
    let set = update_item("Plain", item("a"), "SET g = :v", &values! {"v" => ""});
    refused(
        t.transact([put(item("b")), set.into()]).await,
        "The update expression attempted to update a secondary index key to a value that is not supported",
    );
}

pub(super) async fn indexes_change_with_the_transaction(t: &mut Fixture) {
    t.create(indexed(Projection::All)).await;
    t.fill(
        "Plain",
        [item("a").with("g", "x"), item("b").with("g", "x")],
    )
    .await;
    let set = update_item("Plain", item("a"), "SET g = :v", &values! {"v" => "y"});
    t.transact([
        set.into(),
        DeleteItem::new("Plain", item("b")).into(),
        put(item("c").with("g", "y")),
    ])
    .await
    .unwrap();
    let index = t.scan_all(Scan::new("Plain").index("by_g")).await;
    assert_eq!(texts(&index, "pk"), ["a", "c"]);
    assert_eq!(texts(&index, "g"), ["y", "y"]);
}
