//! What is sent again, and what a caller is told.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use floe_store::BoxFuture;
use floe_store::env::ManualClock;
use floe_store::error::{CancellationCode, CancellationReason};

use super::*;

/// A timer that only remembers how long it should have waited.
#[derive(Default)]
struct Pauses(Mutex<Vec<Duration>>);

impl Timer for Pauses {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.0.lock().unwrap().push(duration);
        Box::pin(async {})
    }
}

fn retry(retries: u32) -> (Retry, Arc<Pauses>) {
    let pauses = Arc::new(Pauses::default());
    let retry = Retry {
        env: Env::manual(ManualClock::at(Default::default()), 7),
        timer: pauses.clone(),
        retries,
    };
    (retry, pauses)
}

fn lost() -> Failure {
    Failure::Lost("cut".to_owned())
}

fn unsent() -> Failure {
    Failure::Unsent("refused".to_owned())
}

fn refused(error: Error) -> Failure {
    Failure::Refused(error)
}

fn throttled() -> Failure {
    refused(Error::Throttling("too fast".to_owned()))
}

fn canceled(code: CancellationCode) -> Error {
    let reasons = vec![CancellationReason::new(code, "")];
    Error::TransactionCanceled { reasons }
}

/// Fails in this order, then succeeds. The result, and how often it was sent.
async fn sending(effect: Effect, failures: &[Failure]) -> (Result<()>, usize) {
    let (retry, pauses) = retry(3);
    let sent = AtomicUsize::new(0);
    let send = || {
        let at = sent.fetch_add(1, Ordering::Relaxed);
        let failure = failures.get(at).cloned();
        async move { failure.map_or(Ok(()), Err) }
    };
    let result = retry.run(effect, send).await;
    let sent = sent.load(Ordering::Relaxed);
    assert_eq!(pauses.0.lock().unwrap().len(), sent - 1);
    (result, sent)
}

#[tokio::test]
async fn what_was_not_done_is_sent_again() {
    use Effect::{EachTime, None, Once};
    let internal = || refused(Error::Internal(String::new()));
    for (effect, failures, sent) in [
        (EachTime, vec![unsent(), throttled()], 3),
        (Once, vec![unsent(), throttled()], 3),
        (None, vec![unsent(), throttled(), lost()], 4),
        (None, vec![internal(), lost()], 3),
        (Once, vec![internal(), lost()], 3),
        (Once, vec![lost(), refused(Error::TransactionInProgress)], 3),
    ] {
        assert_eq!(
            sending(effect, &failures).await,
            (Ok(()), sent),
            "{failures:?}"
        );
    }
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_never_sent_again() {
    let unknown = Error::OutcomeUnknown("cut".to_owned());
    assert_eq!(
        sending(Effect::EachTime, &[lost()]).await,
        (Err(unknown.clone()), 1)
    );
    assert_eq!(
        sending(Effect::EachTime, &[throttled(), lost()]).await,
        (Err(unknown), 2)
    );
    let internal = Error::Internal("500".to_owned());
    assert_eq!(
        sending(Effect::EachTime, &[refused(internal.clone())]).await,
        (Err(internal), 1)
    );
}

#[tokio::test]
async fn an_answer_that_is_final_is_told_at_once() {
    for error in [
        Error::Validation("wrong".to_owned()),
        Error::ConditionalCheckFailed { item: None },
        Error::TransactionConflict,
        Error::AccessDenied("who".to_owned()),
        canceled(CancellationCode::TransactionConflict),
    ] {
        for effect in [Effect::None, Effect::Once, Effect::EachTime] {
            assert_eq!(
                sending(effect, &[refused(error.clone())]).await,
                (Err(error.clone()), 1)
            );
        }
    }
}

#[tokio::test]
async fn in_doubt_only_a_final_answer_settles() {
    let unknown = |message: &str| Err(Error::OutcomeUnknown(message.to_owned()));
    let failed = canceled(CancellationCode::ConditionalCheckFailed);
    for (last, expected) in [
        (refused(failed.clone()), Err(failed)),
        (
            refused(canceled(CancellationCode::TransactionConflict)),
            unknown(&canceled(CancellationCode::TransactionConflict).to_string()),
        ),
        (
            refused(Error::TransactionConflict),
            unknown("Transaction is ongoing for the item"),
        ),
    ] {
        let failures = [lost(), last];
        assert_eq!(sending(Effect::Once, &failures).await, (expected, 2));
    }
    for last in [unsent(), throttled(), lost()] {
        let failures = [lost(), last.clone(), last.clone(), last];
        let (result, sent) = sending(Effect::Once, &failures).await;
        assert!(
            matches!(result, Err(Error::OutcomeUnknown(_))),
            "{result:?}"
        );
        assert_eq!(sent, 4);
    }
}

#[tokio::test]
async fn who_cannot_be_reached_is_told_so() {
    let unreachable = |message: &str| Err(Error::Unreachable(message.to_owned()));
    let never = [unsent(), unsent(), unsent(), unsent()];
    for effect in [Effect::None, Effect::Once, Effect::EachTime] {
        assert_eq!(sending(effect, &never).await, (unreachable("refused"), 4));
    }
    let silent = [lost(), lost(), lost(), lost()];
    assert_eq!(
        sending(Effect::None, &silent).await,
        (unreachable("cut"), 4),
        "a read that was not answered has written nothing"
    );
}

#[test]
fn pauses_double_up_to_the_longest_and_follow_from_the_seed() {
    for (tried, millis) in [(1, 25), (2, 50), (3, 100), (7, 1000), (40, 1000)] {
        for seed in 0..200 {
            let longest = Duration::from_millis(millis);
            let one = pause(tried, seed);
            assert!(one >= longest / 2 && one <= longest, "{one:?}");
            assert_eq!(one, pause(tried, seed));
        }
    }
}
