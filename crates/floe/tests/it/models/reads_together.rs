//! Reads that are started together, of which some are not awaited to the end.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::gate::{Gate, Side};
use super::stage;
use super::support::{Player, player};
use floe::{Db, Error, Model, Tx};
use floe_testkit::record::RecordingEngine;

const HANG: Duration = Duration::from_secs(10);

async fn world() -> (Db, Arc<RecordingEngine>, Arc<Gate>) {
    let recording = Arc::new(RecordingEngine::new(stage::engine()));
    let gate = Arc::new(Gate::new(recording.clone()));
    let db = Db::with_engine(gate.clone());
    db.ensure_tables(&[Player::SCHEMA]).await.unwrap();
    for id in ["a", "b"] {
        let create = async |tx: &Tx| tx.create(player(id, 1)).map(drop);
        db.transact(create).await.unwrap();
    }
    recording.take();
    (db, recording, gate)
}

/// Polls a future once, which must not be ready.
async fn start<F: Future + Unpin>(future: &mut F) {
    poll_fn(|context| {
        assert!(Pin::new(&mut *future).poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn read_completes_while_the_one_that_sends_the_batch_is_not_polled() {
    let (db, recording, gate) = world().await;
    let body = async |tx: &Tx| {
        let mut held = gate.hold("batch_get_item", Side::Before);
        let mut first = Box::pin(tx.get::<Player>("a"));
        let mut second = Box::pin(tx.get::<Player>("b"));
        for _ in 0..2 {
            start(&mut first).await;
            start(&mut second).await;
        }
        // The first one has sent the batch of both and is not polled any more, but it is not dropped either.
        held.arrived().await;
        held.open();
        let second = second.await?.unwrap();
        let first = first.await?.unwrap();
        Ok::<_, Error>(*first.level + *second.level)
    };
    let run = tokio::time::timeout(HANG, db.transact(body)).await;
    assert_eq!(run.expect("the read hangs").unwrap(), 2);
    assert_eq!(
        recording.take(),
        [r#"BatchGetItem Player {"_id": "a"}, Player {"_id": "b"}"#]
    );
}

#[tokio::test]
async fn read_completes_while_another_of_its_batch_is_never_polled_again() {
    let (db, recording, gate) = world().await;
    let body = async |tx: &Tx| {
        let mut held = gate.hold("batch_get_item", Side::Before);
        let mut first = Box::pin(tx.get::<Player>("a"));
        let mut second = Box::pin(tx.get::<Player>("b"));
        for _ in 0..2 {
            start(&mut first).await;
            start(&mut second).await;
        }
        held.arrived().await;
        held.open();
        let level = *second.await?.unwrap().level;
        drop(first);
        // A read that was given up can be made again.
        let first = tx.get::<Player>("a").await?.unwrap();
        Ok::<_, Error>(level + *first.level)
    };
    let run = tokio::time::timeout(HANG, db.transact(body)).await;
    assert_eq!(run.expect("the read hangs").unwrap(), 2);
    assert_eq!(
        recording.take(),
        [
            r#"BatchGetItem Player {"_id": "a"}, Player {"_id": "b"}"#,
            r#"GetItem Player {"_id": "a"}"#
        ]
    );
}

#[tokio::test]
async fn cached_read_completes_while_another_of_its_item_is_not_polled() {
    let (db, recording, gate) = world().await;
    for polls in 1..4 {
        let body = async |tx: &Tx| {
            let mut held = gate.hold("get_item", Side::Before);
            let mut first = Box::pin(tx.get::<Player>("a"));
            for _ in 0..polls {
                start(&mut first).await;
            }
            let second = async {
                let mut second = tx.get::<Player>("a").await?.unwrap();
                second.level += 1;
                Ok::<_, Error>(())
            };
            let open = async {
                held.arrived().await;
                held.open();
            };
            tokio::join!(second, open).0?;
            // The other read returns the item with the changes since then.
            Ok::<_, Error>(*first.await?.unwrap().level)
        };
        let run = db.tx().cache_rows().run(body);
        let run = tokio::time::timeout(HANG, run).await;
        assert_eq!(run.expect("the read hangs").unwrap(), 1 + polls);
        let sent = recording.take();
        assert_eq!(sent[0], r#"GetItem Player {"_id": "a"}"#);
        assert_eq!(sent.len(), 2, "{sent:?}");
    }
}
