//! Dead letters of a router: changes that handlers fail for, and the later changes of their items; replayed in order,
//! or discarded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use floe::changes::{
    Change, Changed, ConsumerNotice, DeadLetters, Failure, Inserted, Pattern, Router,
};
use floe::{Db, Error, ErrorKind, Tx};
use floe_store::Value;

use super::support::{Levels, Notes, Player, consumer, noting, play, player, prepare};
use super::world::World;

/// A router that fails for a player while `is_broken` is set.
fn breakable(levels: &Levels, broken: &'static str, is_broken: &Arc<AtomicBool>) -> Router {
    let is_broken = is_broken.clone();
    noting(levels, move |name, level| {
        let is_broken = is_broken.load(Ordering::SeqCst);
        async move {
            if name == broken && is_broken {
                Err(Failure::new(format!("broken at {level}")))
            } else {
                Ok(())
            }
        }
    })
}

async fn play_all(db: &Db, turns: &[&str]) {
    for name in turns {
        play(db, name).await;
    }
}

#[test]
fn failing_change_is_retried_and_becomes_a_dead_letter_with_later_changes() {
    let mut world = World::new(1);
    let (db, test) = (world.db.clone(), world.test.clone());
    world.wait(async move {
        prepare(&db).await;
        play_all(&db, &["ada", "bob", "bob", "ada", "eve"]).await;
        let (levels, is_broken) = (Levels::default(), Arc::new(AtomicBool::new(true)));
        let pauses = Notes::default();
        let noted = pauses.clone();
        let consumer = consumer(&db, breakable(&levels, "bob", &is_broken))
            .attempts_max(4)
            .backoff(Duration::from_millis(100), Duration::from_millis(300))
            .on_notice(move |notice| match notice {
                ConsumerNotice::Retried {
                    handler,
                    failure,
                    attempts,
                    pause,
                    ..
                } => noted.add(format!(
                    "{handler}: {failure} {attempts} {}",
                    pause.as_millis() / 50
                )),
                ConsumerNotice::DeadLetter(change, error) => {
                    noted.add(format!("{:?} {error}", change.kind()));
                }
                _ => {}
            });
        let begun = test.now();
        let ran = consumer.run_until_caught_up().await.unwrap();
        assert_eq!((ran.handled, ran.dead_letters), (3, 2));
        let noted = pauses.take();
        let retries: Vec<&String> = noted.iter().filter(|note| note.contains(':')).collect();
        assert_eq!(retries.len(), 3, "{noted:?}");
        assert!(
            retries
                .iter()
                .all(|note| note.starts_with("inserted Player: broken at 1"))
        );
        // 100, 200 and 300 milliseconds, each with a jitter of a tenth.
        let waited = test.now().since(begun).as_millis();
        assert!((540..=660).contains(&waited), "{waited}");
        assert_eq!(
            noted[3..],
            [
                "Insert broken at 1",
                "Modify an earlier change of the item is a dead letter"
            ]
        );
        let parked = consumer.dead_letters().list().await.unwrap();
        let facts: Vec<_> = parked
            .iter()
            .map(|p| {
                (
                    p.attempts,
                    p.error.as_str(),
                    p.handlers.join(","),
                    p.replay_requested,
                )
            })
            .collect();
        assert_eq!(
            facts,
            [
                (4, "broken at 1", "inserted Player".to_owned(), false),
                (
                    0,
                    "an earlier change of the item is a dead letter",
                    "changed Player".to_owned(),
                    false
                ),
            ]
        );
        assert_eq!(
            parked[0].change.keys().get("_id"),
            Some(&Value::from("bob"))
        );
        assert_eq!(
            parked[0].change.new_image().unwrap().get("level"),
            Some(&Value::from(1))
        );
        assert!(parked[0].time >= begun);
        // Later changes of the item become dead letters too, also in another run.
        play_all(&db, &["bob", "ada"]).await;
        is_broken.store(false, Ordering::SeqCst);
        let ran = consumer.run_until_caught_up().await.unwrap();
        assert_eq!((ran.handled, ran.dead_letters), (1, 1));
        // The replay is requested by a process without handlers.
        let all = DeadLetters::of(&db, "levels");
        assert_eq!(all.replay_all().await.unwrap(), 1);
        let ran = consumer.run_until_caught_up().await.unwrap();
        assert_eq!((ran.replayed, ran.handled), (3, 0));
        assert_eq!(all.list().await.unwrap(), []);
        play_all(&db, &["bob"]).await;
        let ran = consumer.run_until_caught_up().await.unwrap();
        assert_eq!((ran.handled, ran.dead_letters), (1, 0));
        let expected = [("ada", 3), ("bob", 4), ("eve", 1)].map(|(n, l)| (n.to_owned(), l));
        assert_eq!((levels.all(), levels.repeated()), (expected.into(), 0));
    });
}

#[test]
fn replay_stops_at_the_first_failure_and_can_be_requested_from_a_running_consumer() {
    let mut world = World::new(2);
    let db = world.db.clone();
    let (levels, is_broken) = (Levels::default(), Arc::new(AtomicBool::new(true)));
    world.wait({
        let db = db.clone();
        async move {
            prepare(&db).await;
            play_all(&db, &["bob", "bob", "bob"]).await;
        }
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = consumer(&db, breakable(&levels, "bob", &is_broken)).attempts_max(2);
    world.spawn(async move {
        running.run(async { drop(stopped.await) }).await.unwrap();
    });
    world.pass(Duration::from_secs(1));
    let all = DeadLetters::of(&db, "levels");
    let list = |world: &mut World| {
        let all = all.clone();
        world.wait(async move { all.list().await.unwrap() })
    };
    let parked = list(&mut world);
    assert_eq!(parked.len(), 3);
    let replay = |world: &mut World, id: floe::changes::DeadLetterId| {
        let all = all.clone();
        world.wait(async move { all.replay(&id).await.unwrap() });
    };
    // Whichever change is named, the changes of its item are tried in order.
    replay(&mut world, parked[2].id.clone());
    assert!(list(&mut world)[0].replay_requested);
    world.pass(Duration::from_secs(4));
    let after = list(&mut world);
    let tried: Vec<(u32, bool)> = after
        .iter()
        .map(|p| (p.attempts, p.replay_requested))
        .collect();
    assert_eq!(tried, [(4, false), (0, false), (0, false)]);
    is_broken.store(false, Ordering::SeqCst);
    replay(&mut world, parked[0].id.clone());
    world.pass(Duration::from_secs(4));
    assert_eq!(list(&mut world), []);
    assert_eq!(levels.all()["bob"], 3);
    drop(stop);
    world.pass(Duration::from_secs(1));
}

#[test]
fn discarded_dead_letter_is_removed_and_unblocks_its_item() {
    let mut world = World::new(3);
    let db = world.db.clone();
    world.wait(async move {
        prepare(&db).await;
        play_all(&db, &["bob"]).await;
        let notes = Notes::default();
        let noted = notes.clone();
        let router = Router::new()
            .on_inserted::<Player>(async |_: Inserted<Player>| Err(Failure::permanent("never")))
            .on_changed::<Player>(move |a: Changed<Player>| {
                let notes = noted.clone();
                async move {
                    notes.add(format!("{}", a.new.level));
                    Ok(())
                }
            });
        let consumer = consumer(&db, router);
        let ran = consumer.run_until_caught_up().await.unwrap();
        assert_eq!(ran.dead_letters, 1);
        let all = consumer.dead_letters();
        let parked = all.list().await.unwrap();
        // A permanent failure is not retried.
        assert_eq!((parked[0].attempts, parked[0].error.as_str()), (1, "never"));
        let id = parked[0].id.to_string().parse().unwrap();
        assert_eq!(parked[0].id, id);
        assert!(all.discard(&id).await.unwrap());
        assert!(!all.discard(&id).await.unwrap());
        let error = all.replay(&id).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = "bob".parse::<floe::changes::DeadLetterId>().unwrap_err();
        assert_eq!(error.to_string(), "invalid dead letter id: id=bob");
        play_all(&db, &["bob"]).await;
        let ran = consumer.run_until_caught_up().await.unwrap();
        assert_eq!((ran.handled, ran.dead_letters), (1, 0));
        assert_eq!(notes.take(), ["2"]);
    });
}

/// Of several handlers, only the failed one is called again, by a retry or a replay. A replay fails if the handler is
/// gone.
#[test]
fn dead_letter_calls_only_its_failed_handlers() {
    let mut world = World::new(4);
    let db = world.db.clone();
    world.wait(async move {
        prepare(&db).await;
        play_all(&db, &["bob"]).await;
        let (notes, failures) = (Notes::default(), Arc::new(AtomicU32::new(3)));
        let noted = |notes: &Notes, text: &'static str| {
            let notes = notes.clone();
            move |_: Change| {
                notes.add(text);
                async { Ok(()) }
            }
        };
        let flaky = {
            let (notes, failures) = (notes.clone(), failures.clone());
            move |_: Change| {
                notes.add("flaky");
                let fails = failures
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                    .is_ok();
                async move {
                    if fails {
                        Err(Failure::new("busy"))
                    } else {
                        Ok(())
                    }
                }
            }
        };
        let router = |name: &str| {
            Router::new()
                .matching(Pattern::any(), noted(&notes, "one"))
                .matching(Pattern::any(), flaky.clone())
                .named(name)
                .matching(Pattern::any(), noted(&notes, "two"))
        };
        let consume = async |name: &str| {
            let consumer = consumer(&db, router(name)).table("players").attempts_max(2);
            consumer.run_until_caught_up().await.unwrap()
        };
        assert_eq!(consume("flaky").await.dead_letters, 1);
        assert_eq!(notes.take(), ["one", "flaky", "two", "flaky"]);
        let all = DeadLetters::of(&db, "levels");
        assert_eq!(all.list().await.unwrap()[0].handlers, ["flaky"]);
        all.replay_all().await.unwrap();
        assert_eq!(consume("renamed").await.replayed, 0);
        assert_eq!(notes.take(), [""; 0]);
        let parked = all.list().await.unwrap();
        assert_eq!(
            parked[0].error,
            "the router has no such handler: handler=\"flaky\""
        );
        all.replay_all().await.unwrap();
        assert_eq!(consume("flaky").await.replayed, 1);
        assert_eq!(notes.take(), ["flaky", "flaky"]);
        assert_eq!(all.list().await.unwrap(), []);
    });
}

#[test]
fn change_larger_than_an_item_is_stored_completely() {
    let mut world = World::new(5);
    let db = world.db.clone();
    world.wait(async move {
        prepare(&db).await;
        let long = |sign: &str| sign.repeat(180_000);
        for text in [long("ä"), long("ö")] {
            let put = floe_store::op::PutItem::new(
                "players",
                floe_store::Item::new()
                    .with("_id", "big")
                    .with("level", 1)
                    .with("text", text.as_str()),
            );
            db.engine().write_item(put.into()).await.unwrap();
        }
        let failing = async |_: Change| Err(Failure::permanent("no"));
        let router = Router::new().matching(Pattern::any(), failing);
        let failing = consumer(&db, router).table("players");
        assert_eq!(failing.run_until_caught_up().await.unwrap().dead_letters, 2);
        let all = failing.dead_letters();
        let parked = all.list().await.unwrap();
        assert_eq!(
            parked[1].change.old_image().unwrap().get("text"),
            Some(&long("ä").into())
        );
        assert_eq!(
            parked[1].change.new_image().unwrap().get("text"),
            Some(&long("ö").into())
        );
        all.replay_all().await.unwrap();
        let router = Router::new().matching(Pattern::any(), async |_: Change| Ok(()));
        let working = consumer(&db, router).table("players");
        assert_eq!(working.run_until_caught_up().await.unwrap().replayed, 2);
        let scan = floe_store::op::Scan::new("floe_changes").consistent();
        let left = db.engine().scan(scan).await.unwrap().items;
        assert_eq!(left.len(), 2, "the lease and the position: {left:?}");
    });
}

#[test]
fn number_of_dead_letters_is_limited() {
    let mut world = World::new(6);
    let db = world.db.clone();
    world.wait(async move {
        prepare(&db).await;
        for number in 0..10 {
            let body = async |tx: &Tx| tx.create(player(&format!("p{number}"), 1)).map(drop);
            db.transact(body).await.map_err(|e: Error| e).unwrap();
        }
        let failing = async |_: Inserted<Player>| Err(Failure::permanent("no"));
        let router = Router::new().on_inserted::<Player>(failing);
        let consumer = consumer(&db, router).dead_letters_max(4).concurrency_max(1);
        let error = consumer.run_until_caught_up().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert_eq!(
            error.to_string(),
            "too many dead letters: consumer=levels dead_letters_max=4"
        );
        assert_eq!(consumer.dead_letters().list().await.unwrap().len(), 4);
    });
}
