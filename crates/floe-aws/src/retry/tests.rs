//! Which requests are retried, and which errors are returned.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use floe_store::BoxFuture;
use floe_store::env::ManualClock;
use floe_store::error::{CancellationCode, CancellationReason};

use super::*;

/// A timer that records pauses instead of waiting.
#[derive(Default)]
struct RecordingTimer(Mutex<Vec<Duration>>);

impl Timer for RecordingTimer {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.0.lock().unwrap().push(duration);
        Box::pin(async {})
    }
}

fn retry(retries: u32) -> (Retry, Arc<RecordingTimer>) {
    let pauses = Arc::new(RecordingTimer::default());
    let retry = Retry {
        env: Env::manual(ManualClock::at(Default::default()), 7),
        timer: pauses.clone(),
        retries,
    };
    (retry, pauses)
}

fn response_lost() -> Failure {
    Failure::ResponseLost("cut".to_owned())
}

fn not_sent() -> Failure {
    Failure::NotSent("refused".to_owned())
}

fn rejected(error: Error) -> Failure {
    Failure::Rejected(error)
}

fn throttled() -> Failure {
    rejected(Error::Throttling("too fast".to_owned()))
}

fn canceled(code: CancellationCode) -> Error {
    let reasons = vec![CancellationReason::new(code, "")];
    Error::TransactionCanceled { reasons }
}

/// Fails with these failures, then succeeds. Returns the result and the number of attempts.
async fn send_with_failures(effect: Effect, failures: &[Failure]) -> (Result<()>, usize) {
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
async fn unapplied_requests_are_retried() {
    use Effect::{EachTime, None, Once};
    let internal = || rejected(Error::Internal(String::new()));
    for (effect, failures, sent) in [
        (EachTime, vec![not_sent(), throttled()], 3),
        (Once, vec![not_sent(), throttled()], 3),
        (None, vec![not_sent(), throttled(), response_lost()], 4),
        (None, vec![internal(), response_lost()], 3),
        (Once, vec![internal(), response_lost()], 3),
        (
            Once,
            vec![response_lost(), rejected(Error::TransactionInProgress)],
            3,
        ),
    ] {
        assert_eq!(
            send_with_failures(effect, &failures).await,
            (Ok(()), sent),
            "{failures:?}"
        );
    }
}

#[tokio::test]
async fn write_with_lost_response_is_not_retried() {
    let unknown = Error::OutcomeUnknown("cut".to_owned());
    assert_eq!(
        send_with_failures(Effect::EachTime, &[response_lost()]).await,
        (Err(unknown.clone()), 1)
    );
    assert_eq!(
        send_with_failures(Effect::EachTime, &[throttled(), response_lost()]).await,
        (Err(unknown), 2)
    );
    let internal = Error::Internal("500".to_owned());
    assert_eq!(
        send_with_failures(Effect::EachTime, &[rejected(internal.clone())]).await,
        (Err(internal), 1)
    );
}

#[tokio::test]
async fn final_errors_are_not_retried() {
    for error in [
        Error::Validation("wrong".to_owned()),
        Error::ConditionalCheckFailed { item: None },
        Error::TransactionConflict,
        Error::AccessDenied("who".to_owned()),
        canceled(CancellationCode::TransactionConflict),
    ] {
        for effect in [Effect::None, Effect::Once, Effect::EachTime] {
            assert_eq!(
                send_with_failures(effect, &[rejected(error.clone())]).await,
                (Err(error.clone()), 1)
            );
        }
    }
}

#[tokio::test]
async fn only_final_errors_settle_the_outcome() {
    let unknown = |message: &str| Err(Error::OutcomeUnknown(message.to_owned()));
    let failed = canceled(CancellationCode::ConditionalCheckFailed);
    for (last, expected) in [
        (rejected(failed.clone()), Err(failed)),
        (
            rejected(canceled(CancellationCode::TransactionConflict)),
            unknown(&canceled(CancellationCode::TransactionConflict).to_string()),
        ),
        (
            rejected(Error::TransactionConflict),
            unknown("Transaction is ongoing for the item"),
        ),
    ] {
        let failures = [response_lost(), last];
        assert_eq!(
            send_with_failures(Effect::Once, &failures).await,
            (expected, 2)
        );
    }
    for last in [not_sent(), throttled(), response_lost()] {
        let failures = [response_lost(), last.clone(), last.clone(), last];
        let (result, sent) = send_with_failures(Effect::Once, &failures).await;
        assert!(
            matches!(result, Err(Error::OutcomeUnknown(_))),
            "{result:?}"
        );
        assert_eq!(sent, 4);
    }
}

#[tokio::test]
async fn unreachable_store_is_reported() {
    let unreachable = |message: &str| Err(Error::Unreachable(message.to_owned()));
    let never = [not_sent(), not_sent(), not_sent(), not_sent()];
    for effect in [Effect::None, Effect::Once, Effect::EachTime] {
        assert_eq!(
            send_with_failures(effect, &never).await,
            (unreachable("refused"), 4)
        );
    }
    let silent = [
        response_lost(),
        response_lost(),
        response_lost(),
        response_lost(),
    ];
    assert_eq!(
        send_with_failures(Effect::None, &silent).await,
        (unreachable("cut"), 4),
        "an unanswered read has no effect"
    );
}

#[test]
fn pauses_double_up_to_the_maximum() {
    for (tried, millis) in [(1, 25), (2, 50), (3, 100), (7, 1000), (40, 1000)] {
        for seed in 0..200 {
            let longest = Duration::from_millis(millis);
            let one = pause(tried, seed);
            assert!(one >= longest / 2 && one <= longest, "{one:?}");
            assert_eq!(one, pause(tried, seed));
        }
    }
}
