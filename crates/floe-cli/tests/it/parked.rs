//! `floe changes parked`, `replay` and `discard`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use floe::changes::{Change, Consumer, Failure, Pattern, Router, consumer};
use floe::{Db, Model};

use crate::world::{run, with_db};

#[derive(Model)]
#[model(table = "orders", stream)]
struct Order {
    #[model(key)]
    id: String,
    n: u32,
}

/// A consumer whose handler counts what it is given, and fails for good where it is told to.
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
    let consumer = Consumer::new(db, "mailer", router).table("orders");
    consumer.run_until_caught_up().await.unwrap();
    counted.load(Ordering::Relaxed)
}

#[test]
fn what_is_parked_is_told_replayed_and_discarded() {
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

    let told = floe(&["parked", "mailer"]).succeeded().stdout;
    assert_eq!(told.lines().count(), 3, "{told}");
    assert!(
        told.contains("  INSERT      1         matching  no such customer"),
        "{told}"
    );
    let json = floe(&["parked", "mailer", "--json"]).succeeded().stdout;
    let parked: Vec<serde_json::Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<&str> = parked
        .iter()
        .map(|parked| parked["id"].as_str().unwrap())
        .collect();
    assert_eq!(parked[0]["error"], "no such customer");
    assert_eq!(floe(&["parked", "nobody"]).succeeded().stdout, "");

    let discarded = floe(&["discard", "mailer", ids[0]]).succeeded().stdout;
    assert_eq!(discarded, format!("discarded: id={}\n", ids[0]));
    floe(&["discard", "mailer", ids[0]]).failed(3, &["no such change is parked"]);
    floe(&["replay", "mailer", "orders"]).failed(2, &["not the id of a parked change"]);
    floe(&["replay", "mailer"]).failed(2, &["ID"]);
    let asked = floe(&["replay", "mailer", "--all"]).succeeded().stdout;
    assert_eq!(asked, "asked: items=1\n");
    assert_eq!(with_db(&path, async |db| consume(&db, false).await), 1);
    assert_eq!(floe(&["parked", "mailer"]).succeeded().stdout, "");
}
