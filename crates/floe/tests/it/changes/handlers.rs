//! Handlers that panic or hang: each call is a failed attempt, and blocks its item only.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use floe::changes::Failure;

use super::support::{Levels, consumer, noting, play, player, players, prepare, record};
use super::world::World;

/// What the handler does for changes of `bob`.
#[derive(Clone, Copy)]
enum Fault {
    Panic,
    Hang,
}

async fn inject(fault: Fault) -> Result<(), Failure> {
    match fault {
        // Without the message that `panic!` writes to stderr.
        Fault::Panic => resume_unwind(Box::new("no luck")),
        Fault::Hang => std::future::pending().await,
    }
}

fn check_dead_letters(fault: Fault, error: &'static str) {
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
                    inject(fault).await?;
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
fn panic_counts_as_a_failed_attempt() {
    check_dead_letters(Fault::Panic, "the handler panicked: no luck");
}

#[test]
fn hung_handler_times_out() {
    check_dead_letters(Fault::Hang, "the handler timed out: timeout=7s");
}

#[tokio::test]
async fn panic_in_a_direct_delivery_fails_its_change_only() {
    let levels = Levels::default();
    let router = noting(&levels, |name, _| async move {
        match name.as_str() {
            "bob" => inject(Fault::Panic).await,
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
