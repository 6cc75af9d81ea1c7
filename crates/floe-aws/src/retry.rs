//! Retries: of which requests, after which failures, after which pauses.
//!
//! The SDK does not retry. This module decides by the effect of a request that arrives twice: a read has none, a
//! transaction with a token is applied once, and any other write is applied each time. A write whose response was lost
//! is therefore not retried; it fails with [`OutcomeUnknown`](Error::OutcomeUnknown), and the caller determines the
//! outcome by a token, a condition or a stamp.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use floe_store::env::{SeededRandom, Timer};
use floe_store::{Env, Error, Result};

use crate::ConnectOptions;

/// The first pause, which doubles with every retry, as in the AWS SDKs.
const PAUSE_INITIAL: Duration = Duration::from_millis(25);
/// Maximum pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// No connection was established, so nothing was sent.
    NotSent(String),
    /// The request was sent, but there is no readable response.
    ResponseLost(String),
    /// The store rejected the request, or failed.
    Rejected(Error),
}

/// The result of one attempt.
pub(crate) type AttemptResult<T> = Result<T, Failure>;

impl Failure {
    fn may_have_applied(&self) -> bool {
        match self {
            Self::NotSent(_) => false,
            Self::ResponseLost(_) => true,
            Self::Rejected(error) => error.may_have_applied(),
        }
    }

    /// Whether the failure may be transient. Failures that require action by the caller, such as conflicts, are not
    /// retried here.
    fn is_transient(&self) -> bool {
        match self {
            Self::NotSent(_) | Self::ResponseLost(_) => true,
            Self::Rejected(error) => matches!(
                error,
                Error::Throttling(_)
                    | Error::ProvisionedThroughputExceeded(_)
                    | Error::TransactionInProgress
                    | Error::Internal(_)
            ),
        }
    }

    /// Converts the failure to an error; `in_doubt` if the response of an earlier attempt was lost.
    fn into_error(self, effect: Effect, in_doubt: bool) -> Error {
        match self {
            Self::NotSent(message) | Self::ResponseLost(message) if effect == Effect::None => {
                Error::Unreachable(message)
            }
            Self::NotSent(message) if !in_doubt => Error::Unreachable(message),
            Self::NotSent(message) | Self::ResponseLost(message) => Error::OutcomeUnknown(message),
            // Only a final error reveals the outcome of the earlier attempt.
            Self::Rejected(error) if in_doubt && error.is_retryable() => {
                Error::OutcomeUnknown(error.to_string())
            }
            Self::Rejected(error) => error,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Rejected(error)
    }
}

/// The effect of a request that arrives twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None: it reads.
    None,
    /// It is applied once: it has a token.
    Once,
    /// It is applied each time.
    EachTime,
}

/// Sends requests, with retries.
#[derive(Clone)]
pub(crate) struct Retry {
    pub(crate) env: Env,
    pub(crate) timer: Arc<dyn Timer>,
    /// Maximum number of retries.
    pub(crate) retries: u32,
}

impl Retry {
    /// Returns the retry policy of the options.
    pub(crate) fn new(options: &ConnectOptions) -> Self {
        Self {
            env: options.env.clone(),
            timer: options.timer.clone(),
            retries: options.retries,
        }
    }

    /// Sends a request, retrying where it is safe and may help.
    pub(crate) async fn run<T, F>(&self, effect: Effect, send: impl Fn() -> F + Send) -> Result<T>
    where
        T: Send,
        F: Future<Output = AttemptResult<T>> + Send,
    {
        let (mut sent, mut in_doubt) = (0, false);
        loop {
            let failure = match send().await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            sent += 1;
            let is_safe_to_retry = !failure.may_have_applied() || effect != Effect::EachTime;
            if sent > self.retries || !failure.is_transient() || !is_safe_to_retry {
                return Err(failure.into_error(effect, in_doubt));
            }
            in_doubt |= failure.may_have_applied() && effect == Effect::Once;
            self.pause(sent).await;
        }
    }

    /// Pauses before a retry, counted from 1.
    pub(crate) async fn pause(&self, tried: u32) {
        self.timer.sleep(pause(tried, self.env.next_u64())).await;
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

/// Returns the pause before a retry: doubled each time up to the maximum, with random jitter of at most half.
fn pause(tried: u32, seed: u64) -> Duration {
    let doubled = 1_u32
        .checked_shl(tried.saturating_sub(1))
        .unwrap_or(u32::MAX);
    let longest = PAUSE_INITIAL.saturating_mul(doubled).min(PAUSE_MAX);
    let half = u64::try_from(longest.as_micros() / 2).unwrap_or(u64::MAX);
    Duration::from_micros(half + SeededRandom::new(seed).below(half + 1))
}

#[cfg(test)]
mod tests;
