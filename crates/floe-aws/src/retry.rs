//! Sending again: which requests, after which failures, after which pauses.
//!
//! The SDK sends nothing again on its own. What may be repeated is decided here, by what a second sending
//! would do: a read does nothing, a transaction with a token is applied once, any other write is applied each
//! time it arrives. So a write whose answer was lost is not repeated; it is told as
//! [`OutcomeUnknown`](Error::OutcomeUnknown), and who wrote it settles it by a token, a condition or a stamp.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use floe_store::env::{SeededRandom, Timer};
use floe_store::{Env, Error, Result};

use crate::ConnectOptions;

/// The first pause, which doubles from then on: what the SDKs wait for DynamoDB.
const PAUSE_INITIAL: Duration = Duration::from_millis(25);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What became of a request that was not answered with success.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// No connection was made, so nothing was sent.
    Unsent(String),
    /// It was sent, and there is no answer, or none that can be read.
    Lost(String),
    /// The store answered that it did not do it, or that it failed.
    Refused(Error),
}

/// What became of a request that was sent once.
pub(crate) type Answer<T> = Result<T, Failure>;

impl Failure {
    fn may_have_applied(&self) -> bool {
        match self {
            Self::Unsent(_) => false,
            Self::Lost(_) => true,
            Self::Refused(error) => error.may_have_applied(),
        }
    }

    /// Whether it may pass by itself. What others must do something about, as a conflict, is theirs to repeat.
    fn passes(&self) -> bool {
        match self {
            Self::Unsent(_) | Self::Lost(_) => true,
            Self::Refused(error) => matches!(
                error,
                Error::Throttling(_)
                    | Error::ProvisionedThroughputExceeded(_)
                    | Error::TransactionInProgress
                    | Error::Internal(_)
            ),
        }
    }

    /// What the caller is told; `in_doubt` if the answer to an earlier sending was lost.
    fn into_error(self, effect: Effect, in_doubt: bool) -> Error {
        match self {
            Self::Unsent(message) | Self::Lost(message) if effect == Effect::None => {
                Error::Unreachable(message)
            }
            Self::Unsent(message) if !in_doubt => Error::Unreachable(message),
            Self::Unsent(message) | Self::Lost(message) => Error::OutcomeUnknown(message),
            // Only an answer that is final tells something about the sending before.
            Self::Refused(error) if in_doubt && error.is_retryable() => {
                Error::OutcomeUnknown(error.to_string())
            }
            Self::Refused(error) => error,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// What a request does to the store if it arrives twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It reads.
    None,
    /// It writes once: it carries a token.
    Once,
    /// It writes each time.
    EachTime,
}

/// Sends requests until they are answered or it makes no sense to go on.
#[derive(Clone)]
pub(crate) struct Retry {
    pub(crate) env: Env,
    pub(crate) timer: Arc<dyn Timer>,
    /// How often a request may be sent after the first time.
    pub(crate) retries: u32,
}

impl Retry {
    /// As the settings say.
    pub(crate) fn new(options: &ConnectOptions) -> Self {
        Self {
            env: options.env.clone(),
            timer: options.timer.clone(),
            retries: options.retries,
        }
    }

    /// Sends a request, again where that is safe and may help.
    pub(crate) async fn run<T, F>(&self, effect: Effect, send: impl Fn() -> F + Send) -> Result<T>
    where
        T: Send,
        F: Future<Output = Answer<T>> + Send,
    {
        let (mut sent, mut in_doubt) = (0, false);
        loop {
            let failure = match send().await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            sent += 1;
            let is_settled = !failure.may_have_applied() || effect != Effect::EachTime;
            if sent > self.retries || !failure.passes() || !is_settled {
                return Err(failure.into_error(effect, in_doubt));
            }
            in_doubt |= failure.may_have_applied() && effect == Effect::Once;
            self.pause(sent).await;
        }
    }

    /// Lets time pass before something is tried for the next time, counted from 1.
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

/// The pause after so many tries: doubled each time up to the longest, of which at least half, by the seed.
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
