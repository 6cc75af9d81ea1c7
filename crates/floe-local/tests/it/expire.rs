//! Expiry of items.

use std::time::Duration;

use floe_store::op::{ChangeKind, ServiceIdentity, UpdateTimeToLive};
use floe_store::table::{FIVE_YEARS_SECS, KeyKind, Projection, StreamView};
use floe_store::{Engine, Item, TableDef, Value};

use crate::common::{HOUR, START, TestStore, memory, open, open_at};

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

/// A session that expires `ends` seconds after the start.
fn session(id: &str, ends: u64) -> Item {
    let until = START.as_secs() + ends;
    Item::new()
        .with("id", id)
        .with("user", "u")
        .with("until", until)
}

async fn with_sessions(ends: &[u64]) -> TestStore {
    let store = memory();
    store.create(sessions()).await;
    for end in ends {
        store
            .put("Sessions", session(&format!("s{end:04}"), *end))
            .await;
    }
    store
}

async fn ids(store: &TestStore) -> Vec<String> {
    let items = store.items("Sessions").await;
    let mut ids: Vec<_> = items
        .iter()
        .map(|i| i.get("id").unwrap().as_s().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn expired_item_is_removed_by_the_sweeper() {
    let store = with_sessions(&[10, 11]).await;
    store.clock.advance(Duration::from_millis(9_999));
    store.run_background();
    assert_eq!(ids(&store).await, ["s0010", "s0011"]);
    store.clock.advance(Duration::from_millis(1));
    // The item exists until the sweeper runs.
    assert_eq!(ids(&store).await, ["s0010", "s0011"]);
    store.run_background();
    assert_eq!(ids(&store).await, ["s0011"]);
    assert_eq!(
        store.entries("Sessions", "by_user").await,
        [session("s0011", 11)]
    );
    let description = store
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
async fn record_of_an_expired_item_names_the_service() {
    let store = with_sessions(&[10]).await;
    store.clock.advance(HOUR);
    store.run_background();
    store.put("Sessions", session("mine", 10)).await;
    store
        .delete("Sessions", Item::new().with("id", "mine"))
        .await;
    let records = store.all_records(&store.stream_arn("Sessions").await).await;
    let removals: Vec<_> = records
        .iter()
        .filter(|r| r.kind == ChangeKind::Remove)
        .collect();
    assert_eq!(removals[0].identity, Some(ServiceIdentity::Expiry));
    assert_eq!(removals[0].old_image, Some(session("s0010", 10)));
    assert_eq!(removals[1].identity, None);
}

#[tokio::test]
async fn item_with_changed_expiry_is_kept() {
    let store = with_sessions(&[10]).await;
    store.put("Sessions", session("s0010", 100)).await;
    store
        .put("Sessions", session("kept", 10).with("until", "never"))
        .await;
    store.put("Sessions", session("freed", 10)).await;
    let mut freed = session("freed", 10);
    freed.remove("until");
    store.put("Sessions", freed).await;
    store.clock.advance(Duration::from_secs(50));
    store.run_background();
    assert_eq!(ids(&store).await, ["freed", "kept", "s0010"]);
    store.clock.advance(Duration::from_secs(50));
    store.run_background();
    assert_eq!(ids(&store).await, ["freed", "kept"]);
}

#[tokio::test]
async fn invalid_expiry_values_never_expire() {
    let store = memory();
    store.create(sessions()).await;
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
        store
            .put("Sessions", Item::new().with("id", id).with("until", value))
            .await;
    }
    store.run_background();
    assert_eq!(
        ids(&store).await,
        ["ancient", "huge", "list", "negative", "text"]
    );
}

#[tokio::test]
async fn expired_items_are_removed_in_steps() {
    let store = memory();
    store.create(sessions()).await;
    for n in 0..250 {
        store
            .put("Sessions", session(&format!("{n}"), 1 + n % 5))
            .await;
    }
    store.clock.advance(HOUR);
    let mut left = vec![250];
    while store.engine.run_background_once().unwrap() {
        left.push(store.items("Sessions").await.len());
    }
    assert_eq!(left, [250, 150, 50, 0]);
}

#[tokio::test]
async fn expiry_enabled_later_applies_to_existing_items() {
    let store = memory();
    store
        .create(
            TableDef::builder("Sessions", "id", KeyKind::S)
                .build()
                .unwrap(),
        )
        .await;
    store.put("Sessions", session("a", 10)).await;
    store.put("Sessions", session("b", 10 * 3600)).await;
    store.clock.advance(HOUR);
    store.run_background();
    assert_eq!(ids(&store).await, ["a", "b"]);
    let enable = UpdateTimeToLive::enable("Sessions", "until");
    store.engine.update_time_to_live(enable).await.unwrap();
    store.run_background();
    assert_eq!(ids(&store).await, ["b"]);
    let disable = UpdateTimeToLive::disable("Sessions", "until");
    store.engine.update_time_to_live(disable).await.unwrap();
    store.clock.advance(10 * HOUR);
    store.run_background();
    assert_eq!(ids(&store).await, ["b"]);
    let other = UpdateTimeToLive::enable("Sessions", "end");
    store.engine.update_time_to_live(other).await.unwrap();
    store.run_background();
    assert_eq!(ids(&store).await, ["b"]);
    store
        .put("Sessions", session("b", 0).with("end", START.as_secs()))
        .await;
    store.run_background();
    assert_eq!(ids(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn items_expire_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create(sessions()).await;
    store.put("Sessions", session("a", 10)).await;
    store.put("Sessions", session("b", 10 * 3600)).await;
    let TestStore { engine, clock } = store;
    drop(engine);
    clock.advance(HOUR);
    let store = open_at(dir.path(), clock);
    store.run_background();
    assert_eq!(ids(&store).await, ["b"]);
}
