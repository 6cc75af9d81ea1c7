//! What a transaction runs: an async closure whose future can move between threads.

use std::future::Future;

/// An async closure over a transaction.
///
/// Implemented for every closure; never by hand. It exists beside `AsyncFn` because stable Rust cannot
/// yet ask of an async closure that its future is `Send`.
#[diagnostic::on_unimplemented(
    message = "the body of a transaction must be an async closure that can run again",
    note = "it may run several times: it cannot change what it captures; return a value instead",
    note = "its future must be `Send`: hold nothing across an await that is not"
)]
pub trait TxBody<Arg, R> {
    /// Calls the body.
    fn call(&self, arg: Arg) -> impl Future<Output = R> + Send;
}

impl<F, Fut, Arg, R> TxBody<Arg, R> for F
where
    F: Fn(Arg) -> Fut,
    Fut: Future<Output = R> + Send,
{
    fn call(&self, arg: Arg) -> impl Future<Output = R> + Send {
        self(arg)
    }
}
