//! What handlers are, what they are given, and how they fail.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use floe_store::BoxFuture;

use super::change::Change;

/// What a handler answers.
pub type Handled = Result<(), Failure>;

/// Why a change is not handled.
///
/// Every error becomes one with `?`, and is tried again. What trying again cannot help is
/// [permanent](Failure::permanent), and parked at once.
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
    /// A failure that may pass: the change is tried again.
    pub fn new(message: impl fmt::Display) -> Self {
        Self {
            message: message.to_string(),
            is_permanent: false,
            retry_after: None,
        }
    }

    /// A failure that trying again cannot help: the change is parked.
    pub fn permanent(message: impl fmt::Display) -> Self {
        Self {
            is_permanent: true,
            ..Self::new(message)
        }
    }

    setters! {
        /// The same, to be tried again not before so long, as who was asked has said.
        pub const fn retry_after(pause: Duration) => retry_after = Some(pause);
    }

    /// Whether trying again cannot help.
    pub const fn is_permanent(&self) -> bool {
        self.is_permanent
    }

    /// How long to wait at least before it is tried again.
    pub const fn pause(&self) -> Option<Duration> {
        self.retry_after
    }
}

// It is no `Error` itself, so that every error can become one.
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
    /// The value as it was last.
    pub value: T,
    /// The change, which also tells [why](Change::cause).
    pub change: Change,
}

/// An async function that can be called for each change, whatever thread it runs on. Implemented for all that fit, never
/// by hand.
///
/// A handler may run for several items at once, so what it captures it must share: clone it before the `async move`
/// block, and say what the closure takes.
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
    message = "this cannot handle changes",
    label = "not an async function of one argument that can run many times at once",
    note = "what a handler captures is cloned before its `async move` block: \
            `move |change: Change| {{ let db = db.clone(); async move {{ .. }} }}`"
)]
pub trait Handler<Arg>: Send + Sync + 'static {
    /// Calls it.
    #[doc(hidden)]
    fn call(&self, arg: Arg) -> BoxFuture<'static, Handled>;
}

#[diagnostic::do_not_recommend]
impl<H, Arg, F> Handler<Arg> for H
where
    H: Fn(Arg) -> F + Send + Sync + 'static,
    F: Future<Output = Handled> + Send + 'static,
{
    fn call(&self, arg: Arg) -> BoxFuture<'static, Handled> {
        Box::pin(self(arg))
    }
}
