//! Sinks: lines of JSON, which are on disk before a checkpoint covers them, and entries of an event bus.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe::changes::sink::{JsonLines, ToBus};
use floe::changes::{
    Change, ConsumerNotice, Envelope, Failure, HandlerResult, Pattern, Router, Sink,
};
use floe::{Db, ErrorKind};
use floe_store::bus::{BUS_BYTES_MAX, BusEntry, EventBus};
use floe_store::env::SeededRandom;
use floe_store::{BoxFuture, Error, Item};

use super::support::{consumer, play, player, players, prepare, record, record_of};
use super::world::World;

fn three() -> Vec<Change> {
    let names = ["ada", "bob", "eve"];
    let records = (1..).zip(names);
    players(records.map(|(number, name)| record(number, None, Some(&player(name, 1)))))
}

#[tokio::test]
async fn lines_are_appended_and_a_torn_line_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("changes.jsonl");
    let sink = JsonLines::append(&path).unwrap();
    let router = Router::new().forward(Pattern::any(), sink.clone());
    assert_eq!(router.deliver(&three()).await.handled, 3);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<&str> = lines.iter().map(|l| l["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["event-1", "event-2", "event-3"]);
    assert_eq!(
        lines[1]["detail"]["record"]["dynamodb"]["NewImage"]["level"]["N"],
        "1"
    );
    assert_eq!(lines[0]["detail-type"], "INSERT");
    assert_eq!(lines[0]["time"], "2025-01-01T00:00:00.000Z");
    // A crash truncated the last line.
    fs::write(&path, format!("{text}{{\"version\":\"0\",\"id\":\"even")).unwrap();
    let sink = JsonLines::append(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let router = Router::new().forward(Pattern::any(), sink);
    assert_eq!(router.deliver(&three()[..1]).await.handled, 1);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 4);
    // A file with other contents is not changed.
    for text in ["not a line", "{}\nnot a line of JSON"] {
        fs::write(&path, text).unwrap();
        let error = JsonLines::append(&path).unwrap_err();
        assert!(error.to_string().contains("nothing is appended"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let error = JsonLines::append(directory.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert!(
        error.to_string().starts_with("cannot open the file, "),
        "{error}"
    );
}

/// The sink is flushed before a checkpoint is stored, and no checkpoint is stored if the flush fails.
#[test]
fn checkpoint_waits_for_the_flush_of_a_sink() {
    /// A sink whose first flushes fail. Fields: number of failing flushes; records sent and records flushed.
    struct FailingFlush(Arc<AtomicUsize>, Arc<Mutex<(usize, usize)>>);

    impl Sink for FailingFlush {
        fn send(&self, _: Envelope) -> BoxFuture<'_, HandlerResult> {
            self.1.lock().unwrap().0 += 1;
            Box::pin(async { Ok(()) })
        }

        fn flush(&self) -> BoxFuture<'_, HandlerResult> {
            let left = self.0.load(Ordering::SeqCst);
            self.0.store(left.saturating_sub(1), Ordering::SeqCst);
            let mut counts = self.1.lock().unwrap();
            if left == 0 {
                counts.1 = counts.0;
            }
            Box::pin(async move {
                match left {
                    0 => Ok(()),
                    _ => Err(Failure::new("the disk is full")),
                }
            })
        }
    }

    let mut world = World::new(1);
    let (db, counts) = (world.db.clone(), Arc::new(Mutex::new((0, 0))));
    let (kept, seen) = (counts.clone(), Arc::new(Mutex::new(Vec::new())));
    let noted = seen.clone();
    world.wait(async move {
        prepare(&db).await;
        for name in ["ada", "bob"] {
            play(&db, name).await;
        }
        let sink = FailingFlush(Arc::new(AtomicUsize::new(5)), counts);
        let router = Router::new().forward(Pattern::any(), sink);
        let consumer = consumer(&db, router).table("players");
        let consumer = consumer.on_notice(move |notice| match notice {
            ConsumerNotice::Failed { error, .. } => noted.lock().unwrap().push(error.to_string()),
            ConsumerNotice::Stored(progress) => {
                // Everything handled before a checkpoint was flushed.
                assert!(kept.lock().unwrap().1 as u64 >= progress.summary.handled);
                noted.lock().unwrap().push("stored".to_owned());
            }
            _ => {}
        });
        let ran = consumer.run_until_caught_up().await.unwrap();
        assert_eq!(ran.handled, 2);
    });
    let seen = seen.lock().unwrap().clone();
    assert_eq!(
        seen[..5],
        vec!["a sink failed to flush: the disk is full"; 5]
    );
    assert_eq!(seen[5], "stored");
}

/// A bus that rejects some entries, and fails some requests.
#[derive(Clone)]
struct Bus {
    taken: Arc<Mutex<Vec<BusEntry>>>,
    requests: Arc<Mutex<Vec<usize>>>,
    random: Arc<SeededRandom>,
    rejected: u64,
}

impl Bus {
    fn new(seed: u64, rejected: u64) -> Self {
        Self {
            taken: Arc::default(),
            requests: Arc::default(),
            random: Arc::new(SeededRandom::new(seed)),
            rejected,
        }
    }
}

impl EventBus for Bus {
    fn put_events(
        &self,
        entries: Vec<BusEntry>,
    ) -> BoxFuture<'_, Result<Vec<Result<(), String>>, Error>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let bytes: usize = entries.iter().map(BusEntry::bytes).sum();
            assert!((1..=10).contains(&entries.len()) && bytes <= BUS_BYTES_MAX);
            self.requests.lock().unwrap().push(entries.len());
            if self.rejected > 0 && self.random.below(10) == 0 {
                return Err(Error::Throttling("slow down".to_owned()));
            }
            let outcomes = entries.into_iter().map(|entry| {
                if self.random.below(100) < self.rejected {
                    return Err("ThrottlingException".to_owned());
                }
                self.taken.lock().unwrap().push(entry);
                Ok(())
            });
            Ok(outcomes.collect())
        })
    }
}

#[tokio::test]
async fn entries_share_requests_and_rejected_ones_are_retried() {
    let db = Db::memory().unwrap();
    prepare(&db).await;
    for number in 0..100 {
        play(&db, &format!("p{number}")).await;
    }
    let run = async |name: &'static str, bus: &Bus| {
        let router = Router::new()
            .source("game")
            .forward(Pattern::any(), ToBus::new(bus.clone()));
        let consumer = floe::changes::ChangeConsumer::new(&db, name, router).table("players");
        let consumer = consumer
            .backoff(Duration::ZERO, Duration::ZERO)
            .attempts_max(100);
        consumer.run_until_caught_up().await.unwrap()
    };
    let calm = Bus::new(1, 0);
    assert_eq!(run("calm", &calm).await.handled, 100);
    let requests = calm.requests.lock().unwrap().clone();
    assert!(requests.len() <= 20, "{requests:?}");
    let rough = Bus::new(2, 30);
    assert_eq!(run("rough", &rough).await.handled, 100);
    let taken = rough.taken.lock().unwrap().clone();
    assert_eq!(taken.len(), 100);
    assert!(rough.requests.lock().unwrap().iter().sum::<usize>() > 120);
    let entry = &taken[0];
    assert_eq!(
        (entry.source.as_str(), entry.detail_type.as_str()),
        ("game", "INSERT")
    );
    assert_eq!(entry.resources, ["players"]);
    let detail: serde_json::Value = serde_json::from_str(&entry.detail).unwrap();
    assert_eq!(detail["record"]["eventName"], "INSERT");
    let pk_type = detail["pk_type"].as_str().unwrap();
    assert_eq!(detail["record"]["dynamodb"]["Keys"]["_id"]["S"], pk_type);
}

#[tokio::test]
async fn large_entries_are_sent_separately_and_oversized_ones_fail() {
    let big = |number: u64, bytes: usize| {
        let keys = Item::new().with("pk", number);
        let image = keys.clone().with("text", "x".repeat(bytes).as_str());
        Change::new("t", record_of(number, keys, None, Some(image)))
    };
    let bus = Bus::new(1, 0);
    let router = Router::new().forward(Pattern::any(), ToBus::new(bus.clone()));
    let changes: Vec<Change> = (1..=5).map(|number| big(number, 100_000)).collect();
    assert_eq!(router.deliver(&changes).await.handled, 5);
    assert_eq!(bus.requests.lock().unwrap().iter().max(), Some(&2));
    let delivery = router.deliver(&[big(9, 300_000)]).await;
    let failure = &delivery.failures[0].failure;
    assert!(failure.is_permanent());
    assert!(
        failure
            .to_string()
            .starts_with("the change is too large for the bus: bytes=")
    );
}
