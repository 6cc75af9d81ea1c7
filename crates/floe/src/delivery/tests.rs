//! Tests the runtime with a test pattern: workers are killed at any poll, stall, are stopped, and meet store faults,
//! while handlers fail, panic and hang. Time is tokio's paused clock.

mod world;

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use floe_testkit::fault::Faults;
use floe_testkit::model::ModelEngine;
use floe_testkit::time::TestEnv;
use tokio::sync::{Notify, oneshot};

use self::world::{Handlers, LEASE, PARTITIONS, World};
use super::*;
use crate::db::TokioTimer;
use crate::error::ErrorKind;

/// Drops a future after this many polls.
async fn killed_after(polls: u64, future: impl Future<Output = Result<()>>) {
    let (mut future, mut left) = (Box::pin(future), polls);
    poll_fn(|context| {
        left = left.saturating_sub(1);
        match left {
            0 => Poll::Ready(()),
            _ => future.as_mut().poll(context).map(Result::unwrap),
        }
    })
    .await;
}

/// Does not poll a future while it is stalled.
async fn stalling(is_stalled: Arc<AtomicBool>, resumed: Arc<Notify>, work: BoxFuture<'_, ()>) {
    let mut work = work;
    loop {
        let notified = resumed.notified();
        let ended = poll_fn(|context| {
            if is_stalled.load(Ordering::SeqCst) {
                Poll::Ready(false)
            } else {
                Pin::new(&mut work).poll(context).map(|()| true)
            }
        });
        if ended.await {
            return;
        }
        notified.await;
    }
}

async fn kill_with(seed: u64) {
    let faults = Faults::seeded(seed)
        .throttle(0.05)
        .lost_before(0.03)
        .lost_after(0.03);
    let world = World::new(seed, faults.conflict(0.03)).await;
    for round in 0..6 {
        for partition in 0..PARTITIONS {
            let count = world.random.below(30);
            world.append(partition, (0..count).map(|_| world.random.below(5)));
        }
        world.behave(Handlers::Wild);
        world.is_flaky.store(true, Ordering::Relaxed);
        world.faults.resume();
        if round % 2 == 1 {
            world.replay_requests.fetch_add(1, Ordering::Relaxed);
        }
        let workers: Vec<_> = (0..=world.random.below(3))
            .map(|_| {
                let (polls, follows) = (world.random.below(400), world.random.below(2) == 0);
                let world = world.clone();
                tokio::spawn(async move {
                    killed_after(polls, world.work(follows, pending())).await;
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
    }
    world.finish(seed).await;
}

/// Workers are dropped at any poll, and others continue: records are delivered at least once and in the order of
/// their key, no checkpoint passes an unprocessed record, no term has two runs, and read-ahead is bounded.
#[tokio::test(start_paused = true)]
async fn killed_workers_lose_nothing() {
    for seed in 0..60 {
        kill_with(seed).await;
    }
}

/// A worker stalls at any point for longer than its lease. When it continues, it stores nothing under its old term.
#[tokio::test(start_paused = true)]
async fn stalled_worker_is_fenced() {
    for seed in 0..40 {
        let world = World::with(seed, Faults::seeded(seed), true).await;
        world.append(0, (0..40).map(|_| world.random.below(4)));
        let (is_stalled, resumed) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let (stalled, other) = (world.clone(), world.clone());
        let first = tokio::spawn(stalling(
            is_stalled.clone(),
            resumed.clone(),
            Box::pin(async move { stalled.work(true, pending()).await.unwrap() }),
        ));
        for _ in 0..seed * 2 {
            tokio::task::yield_now().await;
        }
        is_stalled.store(true, Ordering::SeqCst);
        let second = tokio::spawn(async move { other.work(true, pending()).await.unwrap() });
        world.sleep(3 * LEASE).await;
        world.append(0, (0..20).map(|_| world.random.below(4)));
        world.sleep(LEASE).await;
        is_stalled.store(false, Ordering::SeqCst);
        resumed.notify_one();
        world.sleep(3 * LEASE).await;
        first.abort();
        second.abort();
        world.finish(seed).await;
    }
}

/// A hung handler times out and becomes a dead letter; meanwhile it blocks only its key.
#[tokio::test(start_paused = true)]
async fn hung_handler_blocks_only_its_key() {
    let world = World::new(1, Faults::seeded(1)).await;
    world.append(0, [0, 1, 2, 1, 2]);
    world.behave(Handlers::Hung);
    let working = world.clone();
    let worker = tokio::spawn(async move { working.work(true, pending()).await.unwrap() });
    world.sleep(Duration::from_secs(59)).await;
    assert_eq!(world.books().calls, 4, "records of other keys are handled");
    assert_eq!(world.books().positions.get(&0), None);
    // Four attempts of a minute each, with pauses between them.
    world.sleep(Duration::from_secs(4 * 60)).await;
    assert_eq!(world.books().positions.get(&0), Some(&5));
    let stored = world.change(0, u64::MAX, |_| {}).await.unwrap().unwrap();
    assert_eq!(stored.letters, [0]);
    worker.abort();
}

/// A worker that is asked to stop lets its handlers finish, stores its checkpoints and releases its leases, so that
/// the next worker starts without waiting.
#[tokio::test(start_paused = true)]
async fn stopped_worker_finishes_and_releases_its_leases() {
    let world = World::new(2, Faults::seeded(2)).await;
    for partition in 0..PARTITIONS {
        world.append(partition, [1, 2, 3, 1]);
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let working = world.clone();
    let worker =
        tokio::spawn(async move { working.work(true, async { drop(stopped.await) }).await });
    world.sleep(Duration::from_secs(1)).await;
    drop(stop);
    worker.await.unwrap().unwrap();
    assert_eq!(world.books().positions, [(0, 4), (1, 4), (2, 4)].into());
    let notices = std::mem::take(&mut *world.notices.lock().unwrap());
    let all = (0..PARTITIONS).map(super::LeaseNotice::Acquired);
    let all = all.chain((0..PARTITIONS).map(super::LeaseNotice::Released));
    assert_eq!(notices, all.collect::<Vec<_>>());
    let (begun, calls) = (tokio::time::Instant::now(), world.books().calls);
    world.work(false, pending()).await.unwrap();
    assert!(begun.elapsed() < LEASE);
    assert_eq!(world.books().calls, calls, "nothing is delivered twice");
}

/// Handlers under way are dropped when the grace period is over.
#[tokio::test(start_paused = true)]
async fn stopped_worker_drops_hung_handlers_after_the_grace_period() {
    let world = World::new(3, Faults::seeded(3)).await;
    world.append(0, [1, 0, 1]);
    world.behave(Handlers::Hung);
    let (stop, stopped) = oneshot::channel::<()>();
    let working = world.clone();
    let worker =
        tokio::spawn(async move { working.work(true, async { drop(stopped.await) }).await });
    world.sleep(Duration::from_secs(1)).await;
    drop(stop);
    let begun = tokio::time::Instant::now();
    worker.await.unwrap().unwrap();
    assert_eq!(begun.elapsed().as_secs(), 5);
    world.finish(3).await;
}

/// A permanent error ends the worker, which releases its leases.
#[tokio::test(start_paused = true)]
async fn permanent_error_ends_the_worker() {
    let world = World::new(4, Faults::seeded(4)).await;
    world.append(0, [1]);
    let elsewhere = Db::with_parts(
        Arc::new(ModelEngine::new(TestEnv::seeded(5).env)),
        TestEnv::seeded(5).env,
        Arc::new(TokioTimer),
    );
    let mut world = Arc::into_inner(world).unwrap();
    world.db = elsewhere;
    let error = world.work(true, pending()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    let members = world.members.lock().unwrap();
    assert!(members.held("").is_empty() && members.heartbeats.is_empty());
}
