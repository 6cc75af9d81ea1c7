//! A consumer on an engine: everything once and in order, whatever the streams, the store and the process do.

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

/// Some players, each at a level of their own.
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
async fn everything_is_delivered_once_and_in_order_on_the_embedded_engine() {
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

/// Shards split, records come late and again, requests are throttled, and answers get lost.
#[test]
fn everything_is_delivered_in_order_through_faults() {
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
                // Late records may look like the end.
                let last = consumer.run_until_caught_up().await.unwrap();
                assert_eq!(levels.all(), written, "seed={seed}");
                [first, second, last]
            }
        });
        assert!(ran.iter().all(|ran| ran.dead_letters == 0));
        // What comes again within a run is known. Between runs it may be that a record comes again that was stored.
        let handled: u64 = ran.iter().map(|ran| ran.handled).sum();
        assert_eq!(handled, 80 + levels.repeated());
        repeated += ran.iter().map(|ran| ran.duplicates).sum::<u64>();
    }
    assert!(repeated > 100, "{repeated}");
}

/// The order of each item is kept however handlers are delayed, and many items are handled at once.
#[test]
fn items_are_handled_at_once_and_each_in_its_order() {
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

/// The process is killed after each of its first turns in another run. Who comes next misses nothing.
#[test]
fn whoever_is_killed_loses_nothing() {
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
fn messages_of_the_outbox_are_delivered_and_their_records_removed() {
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
                    // Every third call fails, whatever it is for.
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
        // Of a record with a topic that nobody handles, nothing is removed.
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
        let told = notes.take();
        assert_eq!(told.len(), 10);
        for number in 0..5 {
            let place = |text: String| told.iter().position(|note| *note == text).unwrap();
            assert!(place(number.to_string()) < place((number + 100).to_string()));
        }
        assert_eq!(records().await, 0);
    });
}

/// What is asked of the engine: when there is nothing to do, and for a thousand changes.
#[tokio::test]
async fn requests_are_few() {
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
    // The first run of a process: the lease, the position, the streams, what is parked; and three looks that find nothing.
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
async fn what_cannot_be_run_is_told() {
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

/// A stop waits for what is in hand, stores how far it has come, and lets another one begin at once.
#[test]
fn a_stop_ends_what_is_in_hand() {
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
    let (tell, told) = tokio::sync::oneshot::channel::<()>();
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
            let ran = consumer.run(async { drop(told.await) }).await.unwrap();
            *end.lock().unwrap() = Some(ran);
        }
    });
    world.pass(Duration::from_secs(1));
    assert_eq!(levels.all().len(), 8);
    drop(tell);
    world.settle();
    assert_eq!(*ended.lock().unwrap(), None, "it waits for its handlers");
    gate.add_permits(100);
    world.settle();
    let ran = ended.lock().unwrap().unwrap();
    assert_eq!(ran.handled, 12);
    let before = world.test.now();
    let rest = world.wait(async move { consumer.run_until_caught_up().await.unwrap() });
    assert_eq!(
        rest.handled, 20,
        "what was read with the others is not stored"
    );
    // It had not to wait for a lease to end.
    assert!(world.test.now().since(before) < Duration::from_secs(6));
    assert_eq!(levels.all().len(), 20);
    let last: ConsumerProgress = *progress.lock().unwrap().last().unwrap();
    assert_eq!((last.waiting, last.lag), (0, Duration::ZERO));
}

/// However much there is, no more is read than a bound, while handlers do not get on.
#[tokio::test]
async fn what_is_read_waits_for_handlers() {
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

/// What an idle consumer asks of a table with one shard: a look each poll, a search for shards now and then, and that it is
/// alive.
#[test]
fn an_idle_consumer_asks_little() {
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
    let (_tell, told) = tokio::sync::oneshot::channel::<()>();
    world.spawn(async move { drop(consumer.run(async { drop(told.await) }).await) });
    world.pass(Duration::from_secs(1));
    world.take_requests();
    world.pass(Duration::from_secs(100));
    let (looks, searches, beats) = (400, 2 * 20, 2 * 40);
    let requests = world.take_requests();
    assert_eq!(requests, looks + searches + beats);
}
