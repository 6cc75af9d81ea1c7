//! Arguments, results and failures of handlers.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use floe_store::BoxFuture;

use super::change::Change;

/// The result of a handler.
pub type HandlerResult = Result<(), Failure>;

/// Why a handler failed.
///
/// Every error converts into a transient failure with `?`, and is retried. A [permanent](Failure::permanent) failure
/// becomes a dead letter at once.
///
/// ```
/// use floe::changes::Failure;
///
/// fn port(text: &str) -> Result<u16, Failure> {
///     Ok(text.parse()?)
/// }
/// assert_eq!(port("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    message: String,
    is_permanent: bool,
    retry_after: Option<Duration>,
}

impl Failure {
    /// A transient failure: the change is retried.
    pub fn new(message: impl fmt::Display) -> Self {
        Self {
            message: message.to_string(),
            is_permanent: false,
            retry_after: None,
        }
    }

    /// A permanent failure: the change becomes a dead letter.
    pub fn permanent(message: impl fmt::Display) -> Self {
        Self {
            is_permanent: true,
            ..Self::new(message)
        }
    }

    setters! {
        /// Sets the minimum pause before the next attempt, for example from a `Retry-After` header.
        pub const fn retry_after(pause: Duration) => retry_after = Some(pause);
    }

    /// Whether retries cannot help.
    pub const fn is_permanent(&self) -> bool {
        self.is_permanent
    }

    /// The minimum pause before the next attempt.
    pub const fn pause(&self) -> Option<Duration> {
        self.retry_after
    }
}

// Not an `Error` itself, so that every error converts into it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// A value that was inserted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inserted<T> {
    /// The value.
    pub value: T,
    /// The change.
    pub change: Change,
}

/// A value that was changed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Changed<T> {
    /// The value before.
    pub old: T,
    /// The value after.
    pub new: T,
    /// The change.
    pub change: Change,
}

/// A value that was removed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Removed<T> {
    /// The last value.
    pub value: T,
    /// The change, with its [cause](Change::cause).
    pub change: Change,
}

/// An async function that can be called for each change, on any thread. Implemented for all suitable functions; do
/// not implement it manually.
///
/// A handler may run for several items concurrently, so it shares what it captures: clone it before the `async move`
/// block, and annotate the argument of the closure.
///
/// ```
/// # use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
/// use floe::changes::{Change, Pattern, Router};
/// let count = Arc::new(AtomicU32::new(0));
/// let router = Router::new().matching(Pattern::any(), move |_: Change| {
///     let count = count.clone();
///     async move {
///         count.fetch_add(1, Ordering::Relaxed);
///         Ok(())
///     }
/// });
/// ```
#[diagnostic::on_unimplemented(
    message = "this type cannot handle changes",
    label = "not an async function of one argument that can run concurrently",
    note = "clone captured values before the `async move` block: \
            `move |change: Change| {{ let db = db.clone(); async move {{ .. }} }}`"
)]
pub trait Handler<Arg>: Send + Sync + 'static {
    /// Calls the handler.
    #[doc(hidden)]
    fn call(&self, arg: Arg) -> BoxFuture<'static, HandlerResult>;
}

#[diagnostic::do_not_recommend]
impl<H, Arg, F> Handler<Arg> for H
where
    H: Fn(Arg) -> F + Send + Sync + 'static,
    F: Future<Output = HandlerResult> + Send + 'static,
{
    fn call(&self, arg: Arg) -> BoxFuture<'static, HandlerResult> {
        Box::pin(self(arg))
    }
}
