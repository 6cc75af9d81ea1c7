//! Several processes with one consumer name: one delivers, another takes over, and no change is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use floe::Db;
use floe::changes::{ChangeConsumer, ConsumerNotice};
use floe_store::env::SeededRandom;
use tokio::sync::oneshot;

use super::support::{Levels, Notes, consumer, noting, play, prepare};
use super::world::{Pause, World};

/// A consumer that notes when it acquires the lease or waits for it.
fn process(db: &Db, levels: &Levels, notes: &Notes, name: &'static str) -> ChangeConsumer {
    let noted = notes.clone();
    let router = noting(levels, |_, _| async {
        Pause::default().await;
        Ok(())
    });
    consumer(db, router).on_notice(move |notice| match notice {
        ConsumerNotice::LeaseAcquired => noted.add(format!("{name} leads")),
        ConsumerNotice::Waiting => noted.add(format!("{name} waits")),
        _ => {}
    })
}

fn spawn(world: &mut World, consumer: ChangeConsumer) -> (usize, oneshot::Sender<()>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let task = world.spawn(async move { drop(consumer.run(async { drop(stopped.await) }).await) });
    (task, stop)
}

fn write(world: &mut World, names: &'static [&'static str]) {
    let db = world.db.clone();
    world.wait(async move {
        for name in names {
            play(&db, name).await;
        }
    });
}

#[test]
fn second_process_takes_over() {
    let mut world = World::new(1);
    let db = world.db.clone();
    world.wait({
        let db = db.clone();
        async move { prepare(&db).await }
    });
    let (levels, notes) = (Levels::default(), Notes::default());
    let (first, _stop) = spawn(&mut world, process(&db, &levels, &notes, "first"));
    world.pass(Duration::from_secs(1));
    let (_, stop) = spawn(&mut world, process(&db, &levels, &notes, "second"));
    write(&mut world, &["ada", "bob", "ada"]);
    world.pass(Duration::from_secs(60));
    assert_eq!(notes.take(), ["first leads", "second waits"]);
    assert_eq!((levels.all().len(), levels.repeated()), (2, 0));
    // The lease holder dies. The other process takes over when its lease expires.
    world.kill(first);
    write(&mut world, &["ada"]);
    world.pass(Duration::from_secs(8));
    assert_eq!((notes.take(), levels.all()["ada"]), (vec![], 2));
    world.pass(Duration::from_secs(8));
    assert_eq!(notes.take(), ["second leads"]);
    assert_eq!(levels.all()["ada"], 3);
    // A process that is stopped releases its lease at once.
    let (_, _stop) = spawn(&mut world, process(&db, &levels, &notes, "third"));
    world.pass(Duration::from_secs(1));
    drop(stop);
    world.pass(Duration::from_secs(3));
    assert_eq!(notes.take(), ["third waits", "third leads"]);
    write(&mut world, &["ada"]);
    world.pass(Duration::from_secs(1));
    assert_eq!((levels.all()["ada"], levels.repeated()), (4, 0));
}

/// A run until caught up returns at once if another process holds the lease.
#[test]
fn catching_up_does_not_wait_for_the_lease() {
    let mut world = World::new(2);
    let db = world.db.clone();
    world.wait({
        let db = db.clone();
        async move { prepare(&db).await }
    });
    let (levels, notes) = (Levels::default(), Notes::default());
    let (first, _stop) = spawn(&mut world, process(&db, &levels, &notes, "first"));
    write(&mut world, &["ada"]);
    let second = process(&db, &levels, &notes, "second");
    let catching = second.clone();
    let ran = world.wait(async move { catching.run_until_caught_up().await.unwrap() });
    assert_eq!(ran.records, 0);
    world.kill(first);
    write(&mut world, &["ada"]);
    let ran = world.wait(async move { second.run_until_caught_up().await.unwrap() });
    assert_eq!((ran.handled, levels.all()["ada"]), (1, 2));
}

/// A process stalls at any point for longer than its lease. When it continues, its writes are rejected.
#[test]
fn stalled_lease_holder_is_fenced() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        let db = world.db.clone();
        world.wait({
            let db = db.clone();
            async move { prepare(&db).await }
        });
        let (levels, notes) = (Levels::default(), Notes::default());
        let (first, _stop) = spawn(&mut world, process(&db, &levels, &notes, "first"));
        let (_, _other) = spawn(&mut world, process(&db, &levels, &notes, "second"));
        write(&mut world, &["ada", "bob", "ada", "eve", "ada"]);
        for _ in 0..seed {
            world.turn();
        }
        world.stall(first, true);
        world.pass(Duration::from_secs(30));
        write(&mut world, &["ada", "bob"]);
        world.pass(Duration::from_secs(5));
        world.stall(first, false);
        world.pass(Duration::from_secs(20));
        write(&mut world, &["eve"]);
        world.pass(Duration::from_secs(20));
        let all = levels.all();
        assert_eq!(
            (all["ada"], all["bob"], all["eve"]),
            (4, 2, 2),
            "seed={seed}"
        );
    }
}

/// Processes start, die and stall at random moments while changes are written.
#[test]
fn no_change_is_lost_when_processes_start_and_stop() {
    for seed in 0..15 {
        let mut world = World::new(seed);
        let db = world.db.clone();
        world.wait({
            let db = db.clone();
            async move { prepare(&db).await }
        });
        let (levels, notes) = (Levels::default(), Notes::default());
        let random = SeededRandom::new(seed);
        let count = Arc::new(AtomicU64::new(0));
        let mut running = Vec::new();
        for _ in 0..25 {
            match random.below(4) {
                0 => running.push(spawn(&mut world, process(&db, &levels, &notes, "one"))),
                1 if !running.is_empty() => {
                    let at = random.below(running.len() as u64) as usize;
                    let (task, _stop) = running.swap_remove(at);
                    world.kill(task);
                }
                2 if !running.is_empty() => {
                    let at = random.below(running.len() as u64) as usize;
                    let (_, stop) = running.swap_remove(at);
                    drop(stop);
                }
                _ => {
                    let (db, name) = (world.db.clone(), format!("p{}", random.below(3)));
                    world.wait(async move { play(&db, &name).await });
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }
            for _ in 0..random.below(200) {
                world.turn();
            }
            world.pass(Duration::from_millis(random.below(8_000)));
        }
        for (task, _) in running {
            world.kill(task);
        }
        let last = process(&db, &levels, &notes, "last");
        world.wait(async move { last.run_until_caught_up().await.unwrap() });
        let reached: i64 = levels.all().values().sum();
        assert_eq!(reached as u64, count.load(Ordering::SeqCst), "seed={seed}");
    }
}
