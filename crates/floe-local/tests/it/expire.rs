//! Items that expire.

use std::time::Duration;

use floe_store::op::{ChangeKind, ServiceIdentity, UpdateTimeToLive};
use floe_store::table::{FIVE_YEARS_SECS, KeyKind, Projection, StreamView};
use floe_store::{Engine, Item, TableDef, Value};

use crate::common::{HOUR, Owned, START, memory, open, open_at};

fn sessions() -> TableDef {
    TableDef::builder("Sessions", "id", KeyKind::S)
        .global_index(
            "by_user",
            [("user", KeyKind::S)],
            [("id", KeyKind::S)],
            Projection::All,
        )
        .stream(StreamView::OldImage)
        .ttl("until")
        .build()
        .unwrap()
}

/// A session that ends so many seconds after the start.
fn session(id: &str, ends: u64) -> Item {
    let until = START.as_secs() + ends;
    Item::new()
        .with("id", id)
        .with("user", "u")
        .with("until", until)
}

async fn with_sessions(ends: &[u64]) -> Owned {
    let owned = memory();
    owned.create(sessions()).await;
    for end in ends {
        owned
            .put("Sessions", session(&format!("s{end:04}"), *end))
            .await;
    }
    owned
}

async fn ids(owned: &Owned) -> Vec<String> {
    let items = owned.items("Sessions").await;
    let mut ids: Vec<_> = items
        .iter()
        .map(|i| i.get("id").unwrap().as_s().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn an_item_leaves_when_its_second_has_come() {
    let owned = with_sessions(&[10, 11]).await;
    owned.clock.advance(Duration::from_millis(9_999));
    owned.settle();
    assert_eq!(ids(&owned).await, ["s0010", "s0011"]);
    owned.clock.advance(Duration::from_millis(1));
    // It is there until the sweeper comes by.
    assert_eq!(ids(&owned).await, ["s0010", "s0011"]);
    owned.settle();
    assert_eq!(ids(&owned).await, ["s0011"]);
    assert_eq!(
        owned.entries("Sessions", "by_user").await,
        [session("s0011", 11)]
    );
    let description = owned
        .engine
        .describe_table("Sessions".to_owned())
        .await
        .unwrap();
    assert_eq!(
        (description.item_count, description.indexes[0].item_count),
        (1, 1)
    );
}

#[tokio::test]
async fn the_record_of_an_expired_item_names_the_service() {
    let owned = with_sessions(&[10]).await;
    owned.clock.advance(HOUR);
    owned.settle();
    owned.put("Sessions", session("mine", 10)).await;
    owned
        .delete("Sessions", Item::new().with("id", "mine"))
        .await;
    let records = owned.all_records(&owned.stream_arn("Sessions").await).await;
    let removals: Vec<_> = records
        .iter()
        .filter(|r| r.kind == ChangeKind::Remove)
        .collect();
    assert_eq!(removals[0].identity, Some(ServiceIdentity::Expiry));
    assert_eq!(removals[0].old_image, Some(session("s0010", 10)));
    assert_eq!(removals[1].identity, None);
}

#[tokio::test]
async fn an_item_whose_expiry_was_moved_stays() {
    let owned = with_sessions(&[10]).await;
    owned.put("Sessions", session("s0010", 100)).await;
    owned
        .put("Sessions", session("kept", 10).with("until", "never"))
        .await;
    owned.put("Sessions", session("freed", 10)).await;
    let mut freed = session("freed", 10);
    freed.remove("until");
    owned.put("Sessions", freed).await;
    owned.clock.advance(Duration::from_secs(50));
    owned.settle();
    assert_eq!(ids(&owned).await, ["freed", "kept", "s0010"]);
    owned.clock.advance(Duration::from_secs(50));
    owned.settle();
    assert_eq!(ids(&owned).await, ["freed", "kept"]);
}

#[tokio::test]
async fn what_is_no_moment_never_expires() {
    let owned = memory();
    owned.create(sessions()).await;
    let now = START.as_secs();
    let values = [
        ("text", Value::from(now.to_string())),
        ("negative", Value::from(-5)),
        ("list", Value::L(vec![Value::from(now)])),
        ("ancient", Value::from(now - FIVE_YEARS_SECS - 1)),
        ("huge", Value::N("9E+125".parse().unwrap())),
        ("due", Value::from(now)),
        ("old", Value::from(now - FIVE_YEARS_SECS)),
    ];
    for (id, value) in values {
        owned
            .put("Sessions", Item::new().with("id", id).with("until", value))
            .await;
    }
    owned.settle();
    assert_eq!(
        ids(&owned).await,
        ["ancient", "huge", "list", "negative", "text"]
    );
}

#[tokio::test]
async fn many_items_leave_in_steps() {
    let owned = memory();
    owned.create(sessions()).await;
    for n in 0..250 {
        owned
            .put("Sessions", session(&format!("{n}"), 1 + n % 5))
            .await;
    }
    owned.clock.advance(HOUR);
    let mut left = vec![250];
    while owned.engine.run_background_once().unwrap() {
        left.push(owned.items("Sessions").await.len());
    }
    assert_eq!(left, [250, 150, 50, 0]);
}

#[tokio::test]
async fn expiry_that_is_switched_on_later_counts_for_the_items_that_are_there() {
    let owned = memory();
    owned
        .create(
            TableDef::builder("Sessions", "id", KeyKind::S)
                .build()
                .unwrap(),
        )
        .await;
    owned.put("Sessions", session("a", 10)).await;
    owned.put("Sessions", session("b", 10 * 3600)).await;
    owned.clock.advance(HOUR);
    owned.settle();
    assert_eq!(ids(&owned).await, ["a", "b"]);
    let enable = UpdateTimeToLive::enable("Sessions", "until");
    owned.engine.update_time_to_live(enable).await.unwrap();
    owned.settle();
    assert_eq!(ids(&owned).await, ["b"]);
    let disable = UpdateTimeToLive::disable("Sessions", "until");
    owned.engine.update_time_to_live(disable).await.unwrap();
    owned.clock.advance(10 * HOUR);
    owned.settle();
    assert_eq!(ids(&owned).await, ["b"]);
    let other = UpdateTimeToLive::enable("Sessions", "end");
    owned.engine.update_time_to_live(other).await.unwrap();
    owned.settle();
    assert_eq!(ids(&owned).await, ["b"]);
    owned
        .put("Sessions", session("b", 0).with("end", START.as_secs()))
        .await;
    owned.settle();
    assert_eq!(ids(&owned).await, Vec::<String>::new());
}

#[tokio::test]
async fn items_expire_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let owned = open(dir.path());
    owned.create(sessions()).await;
    owned.put("Sessions", session("a", 10)).await;
    owned.put("Sessions", session("b", 10 * 3600)).await;
    let Owned { engine, clock } = owned;
    drop(engine);
    clock.advance(HOUR);
    let owned = open_at(dir.path(), clock);
    owned.settle();
    assert_eq!(ids(&owned).await, ["b"]);
}
