//! Handlers that panic or hang: they have failed a try, and hold their item alone.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use floe::changes::Failure;

use super::support::{Levels, consumer, noting, play, player, players, prepare, record};
use super::world::World;

/// What a router does for `bob` instead of handling him.
#[derive(Clone, Copy)]
enum Fault {
    Panic,
    Hang,
}

async fn strike(fault: Fault) -> Result<(), Failure> {
    match fault {
        // It writes nothing to the output, as a panic does.
        Fault::Panic => resume_unwind(Box::new("no luck")),
        Fault::Hang => std::future::pending().await,
    }
}

fn parked_by(fault: Fault, error: &'static str) {
    let mut world = World::new(21);
    let (db, test) = (world.db.clone(), world.test.clone());
    world.wait(async move {
        prepare(&db).await;
        for name in ["ada", "bob", "ada", "bob"] {
            play(&db, name).await;
        }
        let (levels, calls) = (Levels::default(), Arc::new(AtomicU32::new(0)));
        let counted = calls.clone();
        let router = noting(&levels, move |name, _| {
            let calls = counted.clone();
            async move {
                if name == "bob" {
                    calls.fetch_add(1, Ordering::SeqCst);
                    strike(fault).await?;
                }
                Ok(())
            }
        });
        let consumer = consumer(&db, router)
            .attempts_max(3)
            .handler_timeout(Duration::from_secs(7));
        let begun = test.now();
        let ran = consumer.run_until_caught_up().await.unwrap();
        assert_eq!((ran.handled, ran.dead_letters), (2, 2));
        assert_eq!((calls.load(Ordering::SeqCst), levels.all()["ada"]), (3, 2));
        let parked = consumer.dead_letters().list().await.unwrap();
        assert_eq!((parked[0].attempts, parked[0].error.as_str()), (3, error));
        let waited = test.now().since(begun);
        let timeouts = match fault {
            Fault::Panic => Duration::ZERO,
            Fault::Hang => Duration::from_secs(3 * 7),
        };
        assert!(waited >= timeouts && waited < timeouts + Duration::from_secs(2));
    });
}

#[test]
fn panicking_handler_has_failed_a_try() {
    parked_by(Fault::Panic, "the handler panicked: no luck");
}

#[test]
fn hung_handler_times_out() {
    parked_by(Fault::Hang, "the handler timed out: timeout=7s");
}

#[tokio::test]
async fn panic_in_a_direct_delivery_is_a_failure_of_its_change() {
    let levels = Levels::default();
    let router = noting(&levels, |name, _| async move {
        match name.as_str() {
            "bob" => strike(Fault::Panic).await,
            _ => Ok(()),
        }
    });
    let (ada, bob) = (player("ada", 1), player("bob", 1));
    let changes = players([record(1, None, Some(&bob)), record(2, None, Some(&ada))]);
    let delivery = router.deliver(&changes).await;
    assert_eq!((delivery.handled, delivery.failures.len()), (1, 1));
    assert_eq!(delivery.failures[0].index, 0);
    let failure = delivery.failures[0].failure.to_string();
    assert_eq!(failure, "the handler panicked: no luck");
}
