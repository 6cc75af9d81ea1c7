//! `floe changes parked`, `replay` and `discard`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use floe::changes::{Change, ChangeConsumer, Failure, Pattern, Router, consumer};
use floe::{Db, Model};

use crate::support::{run, with_db};

#[derive(Model)]
#[model(table = "orders", stream)]
struct Order {
    #[model(key)]
    id: String,
    n: u32,
}

/// Runs a consumer whose handler counts its calls, or fails permanently. Returns the count.
async fn consume(db: &Db, fails: bool) -> u32 {
    let (handled, fails) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicBool::new(fails)),
    );
    let counted = handled.clone();
    let router = Router::new().matching(Pattern::any(), move |_: Change| {
        let (handled, fails) = (handled.clone(), fails.clone());
        async move {
            if fails.load(Ordering::Relaxed) {
                return Err(Failure::permanent("no such customer"));
            }
            handled.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    });
    let consumer = ChangeConsumer::new(db, "mailer", router).table("orders");
    consumer.run_until_caught_up().await.unwrap();
    counted.load(Ordering::Relaxed)
}

#[test]
fn dead_letters_are_listed_replayed_and_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop");
    let handled = with_db(&path, async |db| {
        db.ensure_tables(&[Order::SCHEMA]).await.unwrap();
        db.ensure_tables(&consumer::SCHEMAS).await.unwrap();
        for (id, n) in [("a", 1), ("b", 2)] {
            let create = async |tx: &floe::Tx| {
                let id = id.to_owned();
                tx.create(Order { id, n }).map(drop)
            };
            db.transact(create).await.unwrap();
        }
        consume(&db, true).await
    });
    assert_eq!(handled, 0);
    let data = path.to_str().unwrap();
    let floe = |words: &[&str]| run(&[&["changes"], words, &["--data", data]].concat());

    let printed = floe(&["parked", "mailer"]).assert_success().stdout;
    assert_eq!(printed.lines().count(), 3, "{printed}");
    assert!(
        printed.contains("  INSERT         1          matching  no such customer"),
        "{printed}"
    );
    let json = floe(&["parked", "mailer", "--json"])
        .assert_success()
        .stdout;
    let parked: Vec<serde_json::Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<&str> = parked
        .iter()
        .map(|parked| parked["id"].as_str().unwrap())
        .collect();
    assert_eq!(parked[0]["error"], "no such customer");
    assert_eq!(floe(&["parked", "other"]).assert_success().stdout, "");

    let discarded = floe(&["discard", "mailer", ids[0]]).assert_success().stdout;
    assert_eq!(discarded, format!("discarded: id={}\n", ids[0]));
    floe(&["discard", "mailer", ids[0]]).assert_failure(3, &["there is no such dead letter"]);
    floe(&["replay", "mailer", "orders"]).assert_failure(2, &["invalid dead letter id: id=orders"]);
    floe(&["replay", "mailer"]).assert_failure(2, &["ID"]);
    let requested = floe(&["replay", "mailer", "--all"]).assert_success().stdout;
    assert_eq!(requested, "replay requested: items=1\n");
    assert_eq!(with_db(&path, async |db| consume(&db, false).await), 1);
    assert_eq!(floe(&["parked", "mailer"]).assert_success().stdout, "");
}
