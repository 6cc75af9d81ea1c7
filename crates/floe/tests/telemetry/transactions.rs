//! Spans, conflicts and measurements of transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_local::LocalEngine;
use floe_store::{Capabilities, Engine};
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};
use tracing::Level;

use crate::collect::{Collector, Fields, block_on, listen};
use crate::support::{Player, player};

fn engine() -> Arc<dyn Engine> {
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory().unwrap());
    let db = Db::with_engine(engine.clone());
    block_on(async {
        db.ensure_tables(&[Player::SCHEMA]).await.unwrap();
        let create = async |tx: &Tx| tx.create(player("ada-secret", 1)).map(drop);
        db.transact(create).await.unwrap();
    });
    engine
}

async fn train(db: &Db) -> Result<(), Error> {
    let body = async |tx: &Tx| {
        let mut ada = tx.get::<Player>("ada-secret").await?.unwrap();
        ada.level += 1;
        Ok::<_, Error>(())
    };
    db.transact(body).await
}

/// Runs a transaction that conflicts in its first attempts.
async fn outrun(db: &Db, times: u32, retries: u32) -> Result<(), Error> {
    let runs = AtomicU32::new(0);
    let body = async |tx: &Tx| {
        let mut ada = tx.get::<Player>("ada-secret").await?.unwrap();
        ada.level += 1;
        if runs.fetch_add(1, Ordering::Relaxed) < times {
            let other = async |tx: &Tx| {
                let mut ada = tx.get::<Player>("ada-secret").await?.unwrap();
                ada.level += 10;
                Ok::<_, Error>(())
            };
            db.tx().detached().run(other).await?;
        }
        Ok::<_, Error>(())
    };
    db.tx().label("train").retries(retries).run(body).await
}

fn take<'f>(fields: &'f Fields, name: &str) -> Option<&'f str> {
    fields.get(name).map(String::as_str)
}

#[test]
fn request_spans_are_children_of_attempt_and_transaction() {
    let db = Db::with_engine(engine());
    let collector = Collector::default();
    listen(&collector, train(&db)).unwrap();
    let state = collector.state();
    let names: Vec<_> = state
        .spans
        .iter()
        .map(|span| (span.name, span.parent))
        .collect();
    let expected = [
        ("transaction", None),
        ("attempt", Some(0)),
        ("request", Some(1)),
        ("request", Some(1)),
    ];
    assert_eq!(names, expected);
    let transaction = &state.spans[0];
    assert!(state.spans.iter().all(|span| span.is_closed));
    assert_eq!(
        (transaction.target, transaction.level),
        ("floe::transaction", Level::DEBUG)
    );
    let field = |name: &str| take(&transaction.fields, name);
    assert_eq!(field("floe.transaction.attempts"), Some("1"));
    assert_eq!(field("floe.transaction.outcome"), Some("committed"));
    assert_eq!(field("floe.transaction.items_written"), Some("1"));
    assert_eq!(field("floe.transaction.read_only"), Some("false"));
    assert_eq!(field("floe.transaction.label"), None);
}

#[test]
fn conflict_is_recorded_with_the_field_and_without_the_key() {
    let db = Db::with_engine(engine());
    let collector = Collector::default();
    listen(&collector, outrun(&db, 2, 3)).unwrap();
    let lost = collector.events("lost a race");
    assert_eq!(lost.len(), 2);
    for (attempt, event) in (1..).zip(&lost) {
        assert_eq!(
            (event.target, event.level),
            ("floe::transaction", Level::DEBUG)
        );
        assert_eq!(take(&event.fields, "floe.model"), Some("Player"));
        assert_eq!(take(&event.fields, "floe.fields"), Some("level"));
        let attempt: u32 = attempt;
        assert_eq!(
            event.fields["floe.transaction.attempt"],
            attempt.to_string()
        );
        let span = &collector.state().spans[event.span.unwrap()];
        assert_eq!(take(&span.fields, "floe.transaction.label"), Some("train"));
    }
    let trained = collector.spans("transaction");
    let trained = trained
        .iter()
        .find(|span| span.fields.contains_key("floe.transaction.label"));
    let trained = &trained.unwrap().fields;
    assert_eq!(take(trained, "floe.transaction.attempts"), Some("3"));
    assert_eq!(take(trained, "floe.transaction.outcome"), Some("committed"));
    assert!(
        !collector.text().contains("ada-secret"),
        "a key is in the telemetry"
    );

    let conflicts = collector.measured("monotonic_counter.floe.conflicts");
    assert_eq!(conflicts.len(), 2);
    assert_eq!(take(&conflicts[0].1, "floe.model"), Some("Player"));
    assert_eq!(take(&conflicts[0].1, "floe.field"), Some("level"));
}

#[test]
fn exhausted_transaction_records_the_error_kind() {
    let db = Db::with_engine(engine());
    let collector = Collector::default();
    let error = listen(&collector, outrun(&db, 9, 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransactionFailed);
    let attempts = collector.measured("histogram.floe.transaction.attempts");
    let durations = collector.measured("histogram.floe.transaction.duration");
    assert_eq!((attempts.len(), durations.len()), (3, 3));
    let failed = attempts
        .iter()
        .find(|(_, of)| of["floe.transaction.outcome"] == "failed");
    let (attempts, of) = failed.unwrap();
    assert_eq!(*attempts, 2.0);
    assert_eq!(take(of, "error.type"), Some("TransactionFailed"));
    assert_eq!(take(of, "floe.transaction.label"), Some("train"));
    let spans = collector.spans("transaction");
    let span = spans
        .iter()
        .find(|span| span.fields["floe.transaction.outcome"] == "failed");
    assert_eq!(
        take(&span.unwrap().fields, "otel.status_code"),
        Some("ERROR")
    );
}

#[test]
fn error_of_the_body_is_not_a_failure() {
    #[derive(Debug)]
    struct NotToday;
    impl From<Error> for NotToday {
        fn from(_: Error) -> Self {
            Self
        }
    }
    let db = Db::with_engine(engine());
    let collector = Collector::default();
    let body = async |_: &Tx| Err::<(), _>(NotToday);
    listen(&collector, async { db.tx().read_only().run(body).await }).unwrap_err();
    let spans = collector.spans("transaction");
    let field = |name: &str| take(&spans[0].fields, name);
    assert_eq!(field("floe.transaction.outcome"), Some("aborted"));
    assert_eq!(field("floe.transaction.read_only"), Some("true"));
    assert_eq!(field("error.type"), None);
}

#[test]
fn dropped_transaction_has_no_outcome() {
    let db = Db::with_engine(engine());
    let collector = Collector::default();
    listen(&collector, async {
        let body = async |_: &Tx| {
            std::future::pending::<()>().await;
            Ok::<_, Error>(())
        };
        let dropped = tokio::time::timeout(std::time::Duration::from_secs(1), db.transact(body));
        dropped.await.unwrap_err();
    });
    let spans = collector.spans("transaction");
    assert!(spans[0].is_closed);
    assert_eq!(take(&spans[0].fields, "floe.transaction.outcome"), None);
    assert!(
        collector
            .measured("histogram.floe.transaction.duration")
            .is_empty()
    );
}

#[test]
fn throttling_and_store_conflicts_are_recorded() {
    let faulty = Arc::new(FaultEngine::new(engine(), Faults::seeded(3)));
    let db = Db::with_engine(faulty.clone());
    faulty
        .script(Operation::WriteItem, FaultKind::Throttle)
        .unwrap();
    let collector = Collector::default();
    listen(&collector, train(&db)).unwrap();
    let throttled = collector.events("throttled");
    assert_eq!(throttled.len(), 1);
    assert_eq!(
        take(&throttled[0].fields, "floe.transaction.attempt"),
        Some("1")
    );
    assert_eq!(
        collector
            .measured("monotonic_counter.floe.throttled_requests")
            .len(),
        1
    );
    assert!(
        collector
            .measured("monotonic_counter.floe.conflicts")
            .is_empty()
    );
}

/// An engine without idempotency tokens for single writes, like DynamoDB.
pub(crate) struct Tokenless(pub(crate) Arc<dyn Engine>);

impl Engine for Tokenless {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.0.capabilities();
        capabilities.write_tokens = false;
        capabilities
    }

    floe_store::forward_to!(self.0; now, table_arn, items, tables, streams);
}

#[test]
fn reconciled_commit_is_recorded() {
    for (kind, is_applied) in [
        (FaultKind::LostAfter, "true"),
        (FaultKind::LostBefore, "false"),
    ] {
        let faulty = Arc::new(FaultEngine::new(engine(), Faults::seeded(3)));
        let db = Db::with_engine(Arc::new(Tokenless(faulty.clone())));
        faulty.script(Operation::WriteItem, kind).unwrap();
        let collector = Collector::default();
        listen(&collector, train(&db)).unwrap();
        let settled = collector.events("a lost answer is settled");
        let first = &settled[0].fields;
        assert_eq!(take(first, "floe.settled_by"), Some("stamp"));
        assert_eq!(take(first, "floe.applied"), Some(is_applied));
    }
    let faulty = Arc::new(FaultEngine::new(engine(), Faults::seeded(3)));
    let db = Db::with_engine(faulty.clone());
    faulty
        .script(Operation::WriteItem, FaultKind::LostAfter)
        .unwrap();
    let collector = Collector::default();
    listen(&collector, train(&db)).unwrap();
    let settled = collector.events("a lost answer is settled");
    assert_eq!(take(&settled[0].fields, "floe.settled_by"), Some("token"));
}
