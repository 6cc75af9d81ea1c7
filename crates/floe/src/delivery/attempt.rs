//! Attempts of handlers: a panic or a timeout is a failed attempt, followed by a pause and the next attempt.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use floe_store::BoxFuture;
use floe_store::env::Timer;

use super::Host;
use crate::error::{Error, ErrorKind};

/// Why a handler did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// It panicked with this message.
    Panicked(String),
    /// It took longer than this.
    TimedOut(Duration),
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(message) => write!(f, "the handler panicked: {message}"),
            Self::TimedOut(timeout) => write!(f, "the handler timed out: timeout={timeout:?}"),
        }
    }
}

impl std::error::Error for Interrupted {}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Self {
        Self::new(ErrorKind::Aborted, interrupted.to_string())
    }
}

/// The time limit of a handler.
#[derive(Clone, Copy)]
pub(crate) struct Timeout<'t> {
    timer: &'t dyn Timer,
    after: Duration,
}

impl<'t> Timeout<'t> {
    /// The timeout of the host's handlers.
    pub(crate) fn of(host: &'t dyn Host) -> Self {
        Self {
            timer: host.db().timer(),
            after: host.options().handler_timeout,
        }
    }
}

/// Runs the future of a handler. Drops it when it panics or times out.
///
/// # Errors
///
/// The panic or timeout.
pub(crate) async fn guard<T>(
    timeout: Option<Timeout<'_>>,
    handler: impl Future<Output = T>,
) -> Result<T, Interrupted> {
    let mut handler = pin!(handler);
    let mut timer: Option<BoxFuture<'_, ()>> = None;
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context)));
        match polled {
            Ok(Poll::Ready(output)) => return Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => {}
            Err(panic) => return Poll::Ready(Err(Interrupted::Panicked(message(&*panic)))),
        }
        let Some(Timeout {
            timer: clock,
            after,
        }) = timeout
        else {
            return Poll::Pending;
        };
        // Most handlers return at the first poll and need no timer.
        let timer = timer.get_or_insert_with(|| clock.sleep(after));
        let has_passed = timer.as_mut().poll(context);
        has_passed.map(|()| Err(Interrupted::TimedOut(after)))
    })
    .await
}

/// Returns the message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

/// The attempts of one task.
pub(crate) struct Attempts<'h> {
    host: &'h dyn Host,
    failed: u32,
}

impl<'h> Attempts<'h> {
    /// Starts without failed attempts.
    pub(crate) const fn new(host: &'h dyn Host) -> Self {
        Self { host, failed: 0 }
    }

    /// Number of failed attempts since the last progress.
    pub(crate) const fn failed(&self) -> u32 {
        self.failed
    }

    /// Resets the count after an attempt that made progress.
    pub(crate) const fn progressed(&mut self) {
        self.failed = 0;
    }

    /// Counts a failed attempt. Returns the pause before the next one; `None` if it was the last.
    pub(crate) fn fail(&mut self, pause_min: Duration) -> Option<Duration> {
        self.failed = self.failed.saturating_add(1);
        let options = self.host.options();
        let seed = self.host.db().env().next_u64();
        let pause = options.backoff.pause(self.failed, seed);
        (self.failed < options.attempts_max).then(|| pause.max(pause_min))
    }

    /// Waits before the next attempt.
    pub(crate) async fn wait(&self, pause: Duration) {
        self.host.db().timer().sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    /// A timer whose sleeps end at the second poll.
    struct SecondPoll;

    impl Timer for SecondPoll {
        fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
            Box::pin(tokio::task::yield_now())
        }
    }

    fn timeout() -> Timeout<'static> {
        Timeout {
            timer: &SecondPoll,
            after: Duration::from_secs(60),
        }
    }

    #[tokio::test]
    async fn panic_is_caught_with_its_message() {
        async fn failing(seed: u64) {
            tokio::task::yield_now().await;
            match seed {
                0 => panic!("no luck"),
                1 => std::panic::panic_any(seed),
                _ => panic!("seed={seed}"),
            }
        }
        for (seed, message) in [(0, "no luck"), (1, "no message"), (7, "seed=7")] {
            for timeout in [None, Some(timeout())] {
                let panicked = guard(timeout, failing(seed)).await.unwrap_err();
                assert_eq!(panicked, Interrupted::Panicked(message.to_owned()));
            }
        }
    }

    #[tokio::test]
    async fn hung_handler_times_out() {
        let hung = guard(Some(timeout()), pending::<()>()).await.unwrap_err();
        assert_eq!(hung, Interrupted::TimedOut(Duration::from_secs(60)));
        assert_eq!(hung.to_string(), "the handler timed out: timeout=60s");
        assert_eq!(guard(Some(timeout()), async { 7 }).await, Ok(7));
    }
}
