//! The body of a transaction: an async closure whose future is `Send`.
//!
//! The traits have blanket implementations for every suitable closure. They are needed in addition to `AsyncFn`
//! because stable Rust cannot yet require that the future of an async closure is `Send`. There are two, so that the
//! compiler reports the actual problem: a body that cannot run again, or a captured value that is not `Send`.

use std::future::Future;

/// The compiler reports either trait as unsatisfied; both carry the same message.
macro_rules! body_must_be_repeatable {
    ($($item:tt)*) => {
        #[diagnostic::on_unimplemented(
            message = "the body of a transaction may run several times, but this one can run only once",
            label = "changes or moves captured values",
            note = "a body cannot change captured values: return a value instead",
            note = "a body cannot be `async move`: write `async |tx|`, which borrows, and make the block \
                    around it `async move`"
        )]
        $($item)*
    };
}

body_must_be_repeatable! {
    /// An async closure over a transaction.
    pub trait TxBody<Arg, R> {
        /// Calls the body.
        fn call(&self, arg: Arg) -> impl Future<Output = R> + Send;
    }
}

impl<F, Arg, R> TxBody<Arg, R> for F
where
    F: RepeatableBody<Arg, Output: Future<Output = R> + Send>,
{
    fn call(&self, arg: Arg) -> impl Future<Output = R> + Send {
        self.invoke(arg)
    }
}

body_must_be_repeatable! {
    /// A closure that can be called while the result of an earlier call is still alive.
    pub trait RepeatableBody<Arg> {
        /// What a call returns.
        type Output;

        /// Calls the closure.
        fn invoke(&self, arg: Arg) -> Self::Output;
    }
}

// Otherwise the compiler reports only that the closure does not implement `Fn`.
#[diagnostic::do_not_recommend]
impl<F, Arg, Out> RepeatableBody<Arg> for F
where
    F: Fn(Arg) -> Out,
{
    type Output = Out;

    fn invoke(&self, arg: Arg) -> Out {
        self(arg)
    }
}
