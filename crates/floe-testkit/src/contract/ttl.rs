//! Expiry: which items go, when, and what is told about it.

use std::time::Duration;

use floe_store::expr::KeyCondition;
use floe_store::op::{ChangeKind, Query, Scan, ServiceIdentity, UpdateTimeToLive};
use floe_store::table::{FIVE_YEARS_SECS, Projection, StreamView};
use floe_store::{Item, Value};

use super::fixture::*;

fn switch(attribute: &str, enabled: bool) -> UpdateTimeToLive {
    UpdateTimeToLive {
        table_name: "Plain".to_owned(),
        attribute: attribute.into(),
        enabled,
    }
}

/// The keys of the items that are there, sorted.
async fn left(t: &Fixture) -> Vec<String> {
    texts(&t.scan_all(Scan::new("Plain")).await, "pk")
}

pub(super) async fn expired_items_are_swept(t: &mut Fixture) {
    t.create(plain().ttl("expires")).await;
    let now = t.now_secs();
    t.fill(
        "Plain",
        [
            item("past").with("expires", now - 10),
            item("soon").with("expires", now + 60),
            item("later").with("expires", now + 3600),
            item("never"),
        ],
    )
    .await;
    t.sweep().await;
    assert_eq!(left(t).await, ["later", "never", "soon"]);
    t.advance(Duration::from_secs(61));
    // Until they are swept, expired items are items like any other.
    assert!(t.get("Plain", item("soon")).await.is_some());
    t.sweep().await;
    assert_eq!(left(t).await, ["later", "never"]);
    assert_eq!(t.describe("Plain").await.item_count, 2);
}

pub(super) async fn only_numbers_of_the_last_five_years_expire(t: &mut Fixture) {
    t.create(plain().ttl("expires")).await;
    let now = t.now_secs();
    let kept = [
        item("text").with("expires", now.to_string()),
        item("null").with("expires", Value::Null),
        item("negative").with("expires", -1),
        item("zero").with("expires", 0),
        item("ancient").with("expires", now - FIVE_YEARS_SECS - 1),
        item("list").with("expires", list([now - 1])),
        item("huge").with("expires", number("1E100")),
    ];
    t.fill("Plain", kept.clone()).await;
    t.fill(
        "Plain",
        [item("old").with("expires", now - FIVE_YEARS_SECS + 60)],
    )
    .await;
    t.sweep().await;
    assert_eq!(left(t).await, texts(&kept, "pk"));
}

pub(super) async fn expiry_follows_the_item(t: &mut Fixture) {
    t.create(plain().ttl("expires")).await;
    let now = t.now_secs();
    t.fill(
        "Plain",
        ["kept", "moved", "replaced", "gone"].map(|pk| item(pk).with("expires", now + 60)),
    )
    .await;
    let change =
        |pk: &str, text: &str, v: u64| update_item("Plain", item(pk), text, &values! {"v" => v});
    t.write(change("moved", "SET expires = :v", now + 600))
        .await
        .unwrap();
    let kept = update_item("Plain", item("kept"), "REMOVE expires", &values! {});
    t.write(kept).await.unwrap();
    t.put("Plain", item("replaced")).await.unwrap();
    t.advance(Duration::from_secs(120));
    t.sweep().await;
    assert_eq!(left(t).await, ["kept", "moved", "replaced"]);
    t.advance(Duration::from_secs(600));
    t.reopen().await;
    t.sweep().await;
    assert_eq!(left(t).await, ["kept", "replaced"]);
}

pub(super) async fn swept_items_leave_the_indexes(t: &mut Fixture) {
    t.create(indexed(Projection::KeysOnly).ttl("expires")).await;
    let now = t.now_secs();
    t.fill(
        "Plain",
        [
            item("a").with("g", "x").with("expires", now - 1),
            item("b").with("g", "x"),
        ],
    )
    .await;
    t.sweep().await;
    let query = Query::new("Plain", KeyCondition::partition("g", "x")).index("by_g");
    assert_eq!(texts(&t.query_all(query).await, "pk"), ["b"]);
    assert_eq!(t.describe("Plain").await.indexes[0].item_count, 1);
}

pub(super) async fn sweeping_is_told_in_the_stream(t: &mut Fixture) {
    t.create(plain().ttl("expires").stream(StreamView::OldImage))
        .await;
    let expired = item("a").with("expires", t.now_secs() - 1);
    t.put("Plain", expired.clone()).await.unwrap();
    t.sweep().await;
    let records = t.changes("Plain").await;
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].identity, None);
    assert_eq!(records[1].kind, ChangeKind::Remove);
    assert_eq!(records[1].old_image, Some(expired));
    assert_eq!(records[1].identity, Some(ServiceIdentity::Expiry));
}

pub(super) async fn expiry_is_switched_on_for_items_that_are_there(t: &mut Fixture) {
    t.create(plain()).await;
    let now = t.now_secs();
    t.fill(
        "Plain",
        [
            item("a").with("expires", now - 1),
            item("b").with("expires", now + 60),
        ],
    )
    .await;
    t.sweep().await;
    assert_eq!(
        t.scan_all(Scan::new("Plain")).await.len(),
        2,
        "expiry is off"
    );
    let described = t
        .update_time_to_live(switch("expires", true))
        .await
        .unwrap();
    assert_eq!(described.definition.ttl_attribute, Some("expires".into()));
    t.sweep().await;
    assert_eq!(left(t).await, ["b"]);
}

pub(super) async fn switched_off_nothing_expires(t: &mut Fixture) {
    t.create(plain().ttl("expires")).await;
    t.fill("Plain", [item("a").with("expires", t.now_secs() - 1)])
        .await;
    t.advance(Duration::from_secs(3600));
    let described = t
        .update_time_to_live(switch("expires", false))
        .await
        .unwrap();
    assert_eq!(described.definition.ttl_attribute, None);
    t.sweep().await;
    assert_eq!(t.scan_all(Scan::new("Plain")).await.len(), 1);
}

pub(super) async fn switching_must_change_something(t: &mut Fixture) {
    t.create(plain()).await;
    refused(
        t.update_time_to_live(switch("expires", false)).await,
        "TimeToLive is already disabled",
    );
    t.update_time_to_live(switch("expires", true))
        .await
        .unwrap();
    if t.owns_time() {
        t.advance(Duration::from_secs(2 * 3600));
    }
    refused(
        t.update_time_to_live(switch("expires", true)).await,
        "TimeToLive is already enabled",
    );
    for enabled in [true, false] {
        refused(
            t.update_time_to_live(switch("other", enabled)).await,
            "TimeToLive is active on a different AttributeName: current AttributeName is expires",
        );
    }
    let elsewhere = UpdateTimeToLive {
        table_name: "Nowhere".to_owned(),
        ..switch("expires", true)
    };
    not_found(
        t.update_time_to_live(elsewhere).await,
        "Requested resource not found: Table: Nowhere not found",
    );
}

pub(super) async fn sweeping_takes_many_items(t: &mut Fixture) {
    t.create(sorted().ttl("expires")).await;
    let now = t.now_secs();
    for start in (0..200).step_by(25) {
        let batch = (start..start + 25).fold(floe_store::op::BatchWriteItem::new(), |batch, n| {
            let until = if n % 2 == 0 { now - 1 } else { now + 100 };
            batch.put("Sorted", row("a", n).with("expires", until))
        });
        t.batch_write_item(batch).await.unwrap();
    }
    t.sweep().await;
    let left: Vec<Item> = t.scan_all(Scan::new("Sorted")).await;
    assert_eq!(
        sks(&left),
        (0..200).filter(|n| n % 2 == 1).collect::<Vec<i64>>()
    );
}
