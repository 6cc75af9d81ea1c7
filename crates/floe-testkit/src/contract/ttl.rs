//! Expiry: which items are removed, when, and how it is recorded.

use std::time::Duration;

use floe_store::Value;
use floe_store::expr::KeyCondition;
use floe_store::op::{ChangeKind, Query, ServiceIdentity, UpdateTimeToLive};
use floe_store::table::{FIVE_YEARS_SECS, Projection, StreamView};

use super::fixture::*;

fn switch(attribute: &str, enabled: bool) -> UpdateTimeToLive {
    UpdateTimeToLive {
        table_name: "Plain".to_owned(),
        attribute: attribute.into(),
        enabled,
    }
}

/// The sorted keys of the remaining items.
fn remaining(t: &Fixture) -> Vec<String> {
    texts(&t.all_items("Plain"), "pk")
}

pub(super) fn expired_items_are_removed(t: &mut Fixture) {
    let now = t.now_secs();
    let items = [
        item("past").with("expires", now - 10),
        item("soon").with("expires", now + 60),
        item("later").with("expires", now + 3600),
        item("never"),
    ];
    t.create_with(plain().ttl("expires"), items);
    t.sweep();
    assert_eq!(remaining(t), ["later", "never", "soon"]);
    t.advance(Duration::from_secs(61));
    // Expired items are ordinary items until they are removed.
    assert!(t.get("Plain", item("soon")).is_some());
    t.sweep();
    assert_eq!(remaining(t), ["later", "never"]);
    assert_eq!(t.describe("Plain").item_count, 2);
}

pub(super) fn only_timestamps_of_the_last_five_years_expire(t: &mut Fixture) {
    t.create(plain().ttl("expires"));
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
    t.fill("Plain", kept.clone());
    let old = item("old").with("expires", now - FIVE_YEARS_SECS + 60);
    t.fill("Plain", [old]);
    t.sweep();
    assert_eq!(remaining(t), texts(&kept, "pk"));
}

pub(super) fn expiry_follows_changes_of_the_item(t: &mut Fixture) {
    t.create(plain().ttl("expires"));
    let now = t.now_secs();
    let items = ["kept", "moved", "replaced", "gone"].map(|pk| item(pk).with("expires", now + 60));
    t.fill("Plain", items);
    let change =
        |pk: &str, text: &str, v: u64| update_item("Plain", item(pk), text, &values! {"v" => v});
    t.write(change("moved", "SET expires = :v", now + 600))
        .unwrap();
    let kept = update_item("Plain", item("kept"), "REMOVE expires", &values! {});
    t.write(kept).unwrap();
    t.put("Plain", item("replaced")).unwrap();
    t.advance(Duration::from_secs(120));
    t.sweep();
    assert_eq!(remaining(t), ["kept", "moved", "replaced"]);
    t.advance(Duration::from_secs(600));
    t.reopen();
    t.sweep();
    assert_eq!(remaining(t), ["kept", "replaced"]);
}

pub(super) fn expired_items_are_removed_from_indexes(t: &mut Fixture) {
    let expired = item("a").with("g", "x").with("expires", t.now_secs() - 1);
    let items = [expired, item("b").with("g", "x")];
    t.create_with(indexed(Projection::KeysOnly).ttl("expires"), items);
    t.sweep();
    let query = Query::new("Plain", KeyCondition::partition("g", "x")).index("by_g");
    assert_eq!(texts(&t.query_all(query), "pk"), ["b"]);
    assert_eq!(t.describe("Plain").indexes[0].item_count, 1);
}

pub(super) fn expiry_is_recorded_in_the_stream(t: &mut Fixture) {
    t.create(plain().ttl("expires").stream(StreamView::OldImage));
    let expired = item("a").with("expires", t.now_secs() - 1);
    t.put("Plain", expired.clone()).unwrap();
    t.sweep();
    let records = t.changes("Plain");
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].identity, None);
    assert_eq!(records[1].kind, ChangeKind::Remove);
    assert_eq!(records[1].old_image, Some(expired));
    assert_eq!(records[1].identity, Some(ServiceIdentity::Expiry));
}

pub(super) fn enabling_expiry_applies_to_existing_items(t: &mut Fixture) {
    let now = t.now_secs();
    let items = [("a", now - 1), ("b", now + 60)];
    t.create_with(
        plain(),
        items.map(|(pk, until)| item(pk).with("expires", until)),
    );
    t.sweep();
    assert_eq!(t.all_items("Plain").len(), 2, "expiry is disabled");
    let described = t.update_time_to_live(switch("expires", true)).unwrap();
    assert_eq!(described.definition.ttl_attribute, Some("expires".into()));
    t.sweep();
    assert_eq!(remaining(t), ["b"]);
}

pub(super) fn disabled_expiry_removes_nothing(t: &mut Fixture) {
    let expired = item("a").with("expires", t.now_secs() - 1);
    t.create_with(plain().ttl("expires"), [expired]);
    t.advance(Duration::from_secs(3600));
    let described = t.update_time_to_live(switch("expires", false)).unwrap();
    assert_eq!(described.definition.ttl_attribute, None);
    t.sweep();
    assert_eq!(t.all_items("Plain").len(), 1);
}

pub(super) fn expiry_cannot_be_enabled_or_disabled_twice(t: &mut Fixture) {
    t.create(plain());
    let off = t.update_time_to_live(switch("expires", false));
    rejected(off, "TimeToLive is already disabled");
    t.update_time_to_live(switch("expires", true)).unwrap();
    if t.has_manual_clock() {
        t.advance(Duration::from_secs(2 * 3600));
    }
    let on = t.update_time_to_live(switch("expires", true));
    rejected(on, "TimeToLive is already enabled");
    for enabled in [true, false] {
        rejected(
            t.update_time_to_live(switch("other", enabled)),
            "TimeToLive is active on a different AttributeName: current AttributeName is expires",
        );
    }
    let elsewhere = UpdateTimeToLive {
        table_name: "Nowhere".to_owned(),
        ..switch("expires", true)
    };
    let detail = "Requested resource not found: Table: Nowhere not found";
    not_found(t.update_time_to_live(elsewhere), detail);
}

pub(super) fn expiry_removes_many_items(t: &mut Fixture) {
    t.create(sorted().ttl("expires"));
    let now = t.now_secs();
    for start in (0..200).step_by(25) {
        t.fill_batch(
            "Sorted",
            (start..start + 25).map(|n| {
                let until = if n % 2 == 0 { now - 1 } else { now + 100 };
                row("a", n).with("expires", until)
            }),
        );
    }
    t.sweep();
    let odd: Vec<i64> = (0..200).filter(|n| n % 2 == 1).collect();
    assert_eq!(sks(&t.all_items("Sorted")), odd);
}
