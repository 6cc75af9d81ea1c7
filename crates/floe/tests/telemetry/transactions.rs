//! The spans of transactions, what stood in their way, and what is measured of them.

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

/// Somebody else is faster in the first runs.
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
fn requests_are_inside_of_the_run_and_the_run_inside_of_the_transaction() {
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
    let told = |name: &str| take(&transaction.fields, name);
    assert_eq!(told("floe.transaction.attempts"), Some("1"));
    assert_eq!(told("floe.transaction.outcome"), Some("committed"));
    assert_eq!(told("floe.transaction.items_written"), Some("1"));
    assert_eq!(told("floe.transaction.read_only"), Some("false"));
    assert_eq!(told("floe.transaction.label"), None);
}

#[test]
fn a_lost_race_is_told_with_the_field_and_without_the_key() {
    let db = Db::with_engine(engine());
    let collector = Collector::default();
    listen(&collector, outrun(&db, 2, 3)).unwrap();
    let lost = collector.told("lost a race");
    assert_eq!(lost.len(), 2);
    for (attempt, told) in (1..).zip(&lost) {
        assert_eq!(
            (told.target, told.level),
            ("floe::transaction", Level::DEBUG)
        );
        assert_eq!(take(&told.fields, "floe.model"), Some("Player"));
        assert_eq!(take(&told.fields, "floe.fields"), Some("level"));
        let attempt: u32 = attempt;
        assert_eq!(told.fields["floe.transaction.attempt"], attempt.to_string());
        let span = &collector.state().spans[told.span.unwrap()];
        assert_eq!(take(&span.fields, "floe.transaction.label"), Some("train"));
    }
    let trained = collector.spans("transaction");
    let trained = trained
        .iter()
        .find(|span| span.fields.contains_key("floe.transaction.label"));
    let trained = &trained.unwrap().fields;
    assert_eq!(take(trained, "floe.transaction.attempts"), Some("3"));
    assert_eq!(take(trained, "floe.transaction.outcome"), Some("committed"));
    assert!(!collector.text().contains("ada-secret"), "a key was told");

    let conflicts = collector.measured("monotonic_counter.floe.conflicts");
    assert_eq!(conflicts.len(), 2);
    assert_eq!(take(&conflicts[0].1, "floe.model"), Some("Player"));
    assert_eq!(take(&conflicts[0].1, "floe.field"), Some("level"));
}

#[test]
fn a_transaction_that_gives_up_has_the_kind_of_its_error() {
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
fn an_error_of_the_body_is_no_failure() {
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
    let told = |name: &str| take(&spans[0].fields, name);
    assert_eq!(told("floe.transaction.outcome"), Some("aborted"));
    assert_eq!(told("floe.transaction.read_only"), Some("true"));
    assert_eq!(told("error.type"), None);
}

#[test]
fn a_transaction_that_is_dropped_has_no_outcome() {
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
fn throttling_and_conflicts_of_the_store_are_told() {
    let faulty = Arc::new(FaultEngine::new(engine(), Faults::seeded(3)));
    let db = Db::with_engine(faulty.clone());
    faulty
        .script(Operation::WriteItem, FaultKind::Throttle)
        .unwrap();
    let collector = Collector::default();
    listen(&collector, train(&db)).unwrap();
    let throttled = collector.told("throttled");
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

/// An engine that says it takes no tokens, as DynamoDB's plain writes do not.
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
fn a_lost_answer_is_told_once_it_is_settled() {
    for (kind, is_applied) in [
        (FaultKind::LostAfter, "true"),
        (FaultKind::LostBefore, "false"),
    ] {
        let faulty = Arc::new(FaultEngine::new(engine(), Faults::seeded(3)));
        let db = Db::with_engine(Arc::new(Tokenless(faulty.clone())));
        faulty.script(Operation::WriteItem, kind).unwrap();
        let collector = Collector::default();
        listen(&collector, train(&db)).unwrap();
        let settled = collector.told("a lost answer is settled");
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
    let settled = collector.told("a lost answer is settled");
    assert_eq!(take(&settled[0].fields, "floe.settled_by"), Some("token"));
}
