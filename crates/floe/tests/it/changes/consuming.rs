//! A consumer on an engine: every change is delivered once and in order, despite faults of the streams, the store and
//! the process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use floe::changes::outbox::OutboxRecord;
use floe::changes::{ChangeConsumer, ConsumerNotice, ConsumerProgress, Message, Pattern, Router};
use floe::{Db, ErrorKind, Model, Tx};
use floe_local::LocalEngine;
use floe_store::env::SeededRandom;
use floe_store::op::Scan;
use floe_store::{Engine, Env};
use floe_testkit::fault::Faults;
use floe_testkit::record::RecordingEngine;

use super::support::{Levels, Notes, Player, consumer, noting, play, player, prepare};
use super::world::{Pause, World};

/// Makes `changes` changes of seven players. Returns their final levels.
async fn write(db: &Db, seed: u64, changes: u64) -> BTreeMap<String, i64> {
    let random = SeededRandom::new(seed);
    let mut levels = BTreeMap::new();
    for _ in 0..changes {
        let name = format!("p{}", random.below(7));
        play(db, &name).await;
        *levels.entry(name).or_default() += 1;
    }
    levels
}

#[tokio::test]
async fn every_change_is_delivered_once_and_in_order() {
    let db = Db::memory().unwrap();
    prepare(&db).await;
    let written = write(&db, 1, 300).await;
    let levels = Levels::default();
    let consumer = consumer(&db, noting(&levels, |_, _| async { Ok(()) }));
    let ran = consumer.run_until_caught_up().await.unwrap();
    assert_eq!((ran.records, ran.handled, ran.dead_letters), (300, 300, 0));
    assert_eq!((levels.all(), levels.repeated()), (written, 0));
    let ran = consumer.run_until_caught_up().await.unwrap();
    assert_eq!(ran.records, 0);
    play(&db, "p1").await;
    let ran = consumer.run_until_caught_up().await.unwrap();
    assert_eq!((ran.records, ran.handled, levels.repeated()), (1, 1, 0));
}

/// Shards split, records arrive late and repeatedly, requests are throttled, and responses are lost.
#[test]
fn changes_are_delivered_in_order_despite_faults() {
    let mut repeated = 0;
    for seed in 0..30 {
        let faults = Faults::seeded(seed)
            .shard_splits(0.2)
            .repeated_records(0.25)
            .late_records(0.3)
            .throttle(0.08)
            .lost_before(0.02)
            .lost_after(0.02);
        let mut world = World::with_faults(seed, faults);
        let db = world.db.clone();
        let (levels, faulty) = (Levels::default(), world.faults.clone());
        let ran = world.wait({
            let levels = levels.clone();
            async move {
                prepare(&db).await;
                let mut written = write(&db, seed, 40).await;
                faulty.resume();
                let router = noting(&levels, |_, _| async { Ok(()) });
                let consumer = consumer(&db, router).concurrency_max(3);
                let first = consumer.run_until_caught_up().await.unwrap();
                faulty.pause();
                for (name, level) in write(&db, seed + 100, 40).await {
                    *written.entry(name).or_default() += level;
                }
                faulty.resume();
                let second = consumer.run_until_caught_up().await.unwrap();
                faulty.pause();
                // Before a late record, the stream may look finished.
                let last = consumer.run_until_caught_up().await.unwrap();
                assert_eq!(levels.all(), written, "seed={seed}");
                [first, second, last]
            }
        });
        assert!(ran.iter().all(|ran| ran.dead_letters == 0));
        // Duplicates within a run are detected. Between runs, a record may be delivered again although it was
        // processed.
        let handled: u64 = ran.iter().map(|ran| ran.handled).sum();
        assert_eq!(handled, 80 + levels.repeated());
        repeated += ran.iter().map(|ran| ran.duplicates).sum::<u64>();
    }
    assert!(repeated > 100, "{repeated}");
}

/// Each item's changes stay in order whatever the delay of its handlers, and several items are handled concurrently.
#[test]
fn items_are_handled_concurrently_and_each_in_order() {
    for seed in 0..20 {
        let mut world = World::new(seed);
        let db = world.db.clone();
        let (levels, most) = (Levels::default(), Arc::new(AtomicUsize::new(0)));
        world.wait({
            let (levels, most) = (levels.clone(), most.clone());
            async move {
                prepare(&db).await;
                let written = write(&db, seed, 100).await;
                let random = Arc::new(SeededRandom::new(seed));
                let running = Arc::new(AtomicUsize::new(0));
                let router = noting(&levels, move |_, _| {
                    let (random, running, most) = (random.clone(), running.clone(), most.clone());
                    async move {
                        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        for _ in 0..random.below(5) {
                            Pause::default().await;
                        }
                        running.fetch_sub(1, Ordering::SeqCst);
                        Ok(())
                    }
                });
                let consumer = consumer(&db, router).concurrency_max(4);
                consumer.run_until_caught_up().await.unwrap();
                assert_eq!(levels.all(), written);
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 4);
        assert_eq!(levels.repeated(), 0);
    }
}

/// The process is killed after a growing number of turns. Its successor misses nothing.
#[test]
fn killed_consumer_loses_no_changes() {
    let mut has_ended = 0;
    for turns in 0..400 {
        let mut world = World::new(turns);
        let db = world.db.clone();
        let (levels, written) = (Levels::default(), Arc::new(std::sync::Mutex::new(None)));
        world.wait({
            let (db, written) = (db.clone(), written.clone());
            async move {
                prepare(&db).await;
                *written.lock().unwrap() = Some(write(&db, 7, 12).await);
            }
        });
        let run = |levels: &Levels| {
            let router = noting(levels, |_, _| async {
                Pause::default().await;
                Ok(())
            });
            let consumer = consumer(&db, router).concurrency_max(2);
            async move { consumer.run_until_caught_up().await.unwrap() }
        };
        let victim = world.spawn({
            let run = run(&levels);
            async move {
                run.await;
            }
        });
        for _ in 0..turns {
            world.turn();
        }
        has_ended += u32::from(!world.kill(victim));
        let ran = world.wait(run(&levels));
        assert_eq!(
            Some(levels.all()),
            *written.lock().unwrap(),
            "turns={turns}"
        );
        assert_eq!(ran.dead_letters, 0);
    }
    assert!(has_ended > 10, "{has_ended}");
}

#[test]
fn outbox_messages_are_delivered_and_their_records_removed() {
    let mut world = World::new(3);
    let db = world.db.clone();
    world.wait(async move {
        prepare(&db).await;
        db.ensure_tables(&[OutboxRecord::SCHEMA]).await.unwrap();
        for number in 0..5_i64 {
            let body = async |tx: &Tx| {
                tx.create(player(&format!("p{number}"), 1))?;
                tx.outbox("joined", &number)?;
                tx.outbox("greeted", &(number + 100))
            };
            db.transact(body).await.unwrap();
        }
        let (notes, failures) = (Notes::default(), Arc::new(AtomicU64::new(0)));
        let noting = |notes: &Notes| {
            let (notes, failures) = (notes.clone(), failures.clone());
            move |message: Message| {
                let (notes, failures) = (notes.clone(), failures.clone());
                async move {
                    // Every third call fails.
                    if failures.fetch_add(1, Ordering::SeqCst).is_multiple_of(3) {
                        return Err(floe::changes::Failure::new("busy"));
                    }
                    notes.add(format!("{}", message.read::<i64>()?));
                    Ok(())
                }
            }
        };
        let records = async || {
            let scan = Scan::new("floe_outbox").consistent();
            db.engine().scan(scan).await.unwrap().items.len()
        };
        assert_eq!(records().await, 5);
        // A record with a topic without a handler is kept.
        let some = Router::new().outbox("greeted", async |_| Ok(()));
        let run = async |name: &'static str, router: Router| {
            let consumer = ChangeConsumer::new(&db, name, router);
            consumer.run_until_caught_up().await.unwrap()
        };
        assert_eq!(run("some", some).await.handled, 5);
        let kept = Router::new().outbox("*", async |_| Ok(())).keep_outbox();
        assert_eq!(run("kept", kept).await.handled, 5);
        assert_eq!(records().await, 5);

        let router = Router::new()
            .outbox("joined", noting(&notes))
            .outbox("gree*", noting(&notes));
        let ran = run("all", router).await;
        assert_eq!((ran.handled, ran.dead_letters), (5, 0));
        let delivered = notes.take();
        assert_eq!(delivered.len(), 10);
        for number in 0..5 {
            let place = |text: String| delivered.iter().position(|note| *note == text).unwrap();
            assert!(place(number.to_string()) < place((number + 100).to_string()));
        }
        assert_eq!(records().await, 0);
    });
}

/// The requests of a run without changes, and of a run with a thousand changes.
#[tokio::test]
async fn consumer_sends_few_requests() {
    let env = floe_testkit::time::TestEnv::seeded(1).env;
    let options = floe_local::Options::new().env(env).background(false);
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory_with(options).unwrap());
    let recording = Arc::new(RecordingEngine::new(engine.clone()));
    let db = Db::with_parts(
        recording.clone(),
        Env::system(),
        Arc::new(floe::db::TokioTimer),
    );
    prepare(&db).await;
    let router = || noting(&Levels::default(), |_, _| async { Ok(()) });
    let run = async || consumer(&db, router()).run_until_caught_up().await.unwrap();
    run().await;
    for number in 0..1_000 {
        play(&db, &format!("p{number}")).await;
    }
    recording.take();
    let count = |requests: &[String]| {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for request in requests {
            let name = request.split(' ').next().unwrap().to_owned();
            *counts.entry(name).or_default() += 1;
        }
        let counts: Vec<String> = counts.iter().map(|(n, c)| format!("{n}={c}")).collect();
        counts.join(" ")
    };
    // The first run of a process: the lease, the position, the streams and the dead letters, and three polls that find
    // nothing.
    run().await;
    let first = count(&recording.take());
    run().await;
    let idle = count(&recording.take());
    assert_eq!(
        (first.as_str(), idle.as_str()),
        (
            "DescribeStream=1 GetItem=4 GetRecords=4 GetShardIterator=1 HoldChanges=1 ListStreams=1 Query=1 UpdateItem=4",
            "DescribeStream=1 GetItem=3 GetRecords=3 GetShardIterator=1 ListStreams=1 Query=1 UpdateItem=3",
        )
    );
}

#[tokio::test]
async fn invalid_consumer_is_rejected() {
    let db = Db::memory().unwrap();
    let nothing = ChangeConsumer::new(
        &db,
        "none",
        Router::new().matching(Pattern::any(), async |_| Ok(())),
    );
    let error = nothing.run_until_caught_up().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert_eq!(
        error.to_string(),
        "the consumer has no tables to read, and its router names none: consumer=none"
    );
    let short = consumer(&db, noting(&Levels::default(), |_, _| async { Ok(()) }));
    let short = short.lease(Duration::ZERO);
    let error = short.run_until_caught_up().await.unwrap_err();
    assert_eq!(error.to_string(), "the lease is too short: lease=0ns");
    db.ensure_tables(&floe::changes::consumer::SCHEMAS)
        .await
        .unwrap();
    let missing = consumer(&db, noting(&Levels::default(), |_, _| async { Ok(()) }));
    let error = missing.run_until_caught_up().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table, "{error}");
}

/// On shutdown, the consumer waits for running handlers, stores its position and releases its lease.
#[test]
fn shutdown_waits_for_running_handlers() {
    let mut world = World::new(5);
    let db = world.db.clone();
    world.wait({
        let db = db.clone();
        async move {
            prepare(&db).await;
            for number in 0..20 {
                play(&db, &format!("p{number}")).await;
            }
        }
    });
    let (levels, progress) = (
        Levels::default(),
        Arc::new(std::sync::Mutex::new(Vec::new())),
    );
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let gate = Arc::new(tokio::sync::Semaphore::new(8));
    let closed = gate.clone();
    let router = noting(&levels, move |_, _| {
        let gate = closed.clone();
        async move {
            gate.acquire().await?.forget();
            Ok(())
        }
    });
    let noted = progress.clone();
    let consumer = consumer(&db, router)
        .concurrency_max(4)
        .on_notice(move |notice| {
            if let ConsumerNotice::Stored(progress) = notice {
                noted.lock().unwrap().push(**progress);
            }
        });
    let ended = Arc::new(std::sync::Mutex::new(None));
    let end = ended.clone();
    world.spawn({
        let consumer = consumer.clone();
        async move {
            let ran = consumer.run(async { drop(stopped.await) }).await.unwrap();
            *end.lock().unwrap() = Some(ran);
        }
    });
    world.pass(Duration::from_secs(1));
    assert_eq!(levels.all().len(), 8);
    drop(stop);
    world.settle();
    assert_eq!(
        *ended.lock().unwrap(),
        None,
        "the shutdown waits for handlers"
    );
    gate.add_permits(100);
    world.settle();
    let ran = ended.lock().unwrap().unwrap();
    assert_eq!(ran.handled, 12);
    let before = world.test.now();
    let rest = world.wait(async move { consumer.run_until_caught_up().await.unwrap() });
    assert_eq!(
        rest.handled, 20,
        "changes that were read but not handled are not in the position"
    );
    // The lease was released, so the next run did not wait for it to expire.
    assert!(world.test.now().since(before) < Duration::from_secs(6));
    assert_eq!(levels.all().len(), 20);
    let last: ConsumerProgress = *progress.lock().unwrap().last().unwrap();
    assert_eq!((last.waiting, last.lag), (0, Duration::ZERO));
}

/// While handlers make no progress, the number of records read ahead is bounded.
#[tokio::test]
async fn reading_ahead_is_bounded() {
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory().unwrap());
    let recording = Arc::new(RecordingEngine::new(engine.clone()));
    let db = Db::with_engine(engine);
    prepare(&db).await;
    for number in 0..150 {
        let body = async |tx: &Tx| {
            for place in 0..100 {
                tx.create(player(&format!("p{number}-{place}"), 1))?;
            }
            Ok::<_, floe::Error>(())
        };
        db.transact(body).await.unwrap();
    }
    let router = Router::new().on_inserted::<Player>(async |_| std::future::pending().await);
    let watched = Db::with_engine(recording.clone());
    let consumer = consumer(&watched, router);
    let pages = || {
        let requests = recording.take();
        requests
            .iter()
            .filter(|r| r.starts_with("GetRecords"))
            .count()
    };
    let counted = async {
        let mut read = 0;
        while read < 10 {
            tokio::task::yield_now().await;
            read += pages();
        }
        for _ in 0..10_000 {
            tokio::task::yield_now().await;
            read += pages();
        }
        read
    };
    let read = tokio::select! {
        ran = consumer.run_until_caught_up() => panic!("{ran:?}"),
        read = counted => read,
    };
    assert_eq!(read, 10);
}

/// The requests of an idle consumer of a table with one shard: polls, searches for new shards, and heartbeats.
#[test]
fn idle_consumer_sends_few_requests() {
    let mut world = World::new(11);
    let db = world.db.clone();
    world.wait({
        let db = db.clone();
        async move {
            prepare(&db).await;
            play(&db, "ada").await;
        }
    });
    let router = noting(&Levels::default(), |_, _| async { Ok(()) });
    let consumer = consumer(&db, router);
    let (_stop, stopped) = tokio::sync::oneshot::channel::<()>();
    world.spawn(async move { drop(consumer.run(async { drop(stopped.await) }).await) });
    world.pass(Duration::from_secs(1));
    world.take_requests();
    world.pass(Duration::from_secs(100));
    let (polls, searches, heartbeats) = (400, 2 * 20, 2 * 40);
    let requests = world.take_requests();
    assert_eq!(requests, polls + searches + heartbeats);
}
