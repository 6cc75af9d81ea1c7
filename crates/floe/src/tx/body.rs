//! What a transaction runs: an async closure whose future can move between threads.
//!
//! The traits are implemented for every closure that fits, never by hand. They exist beside `AsyncFn`
//! because stable Rust cannot yet ask of an async closure that its future is `Send`; and they are two so that
//! the compiler tells what is wrong: that a body cannot run again, or what it holds that is not `Send`.

use std::future::Future;

/// The compiler speaks of the one trait or of the other, and is to say the same.
macro_rules! refused_if_it_cannot_run_again {
    ($($item:tt)*) => {
        #[diagnostic::on_unimplemented(
            message = "the body of a transaction may run several times, which this one cannot",
            label = "changes or moves what it captures",
            note = "a body cannot change what it captures: return a value instead",
            note = "a body cannot be `async move`: write `async |tx|`, which borrows, and let the block \
                    around it be `async move`"
        )]
        $($item)*
    };
}

refused_if_it_cannot_run_again! {
    /// An async closure over a transaction.
    pub trait TxBody<Arg, R> {
        /// Calls the body.
        fn call(&self, arg: Arg) -> impl Future<Output = R> + Send;
    }
}

impl<F, Arg, R> TxBody<Arg, R> for F
where
    F: Again<Arg, Output: Future<Output = R> + Send>,
{
    fn call(&self, arg: Arg) -> impl Future<Output = R> + Send {
        self.again(arg)
    }
}

refused_if_it_cannot_run_again! {
    /// A closure that can be called while what an earlier call returned is still there.
    pub trait Again<Arg> {
        /// What a call returns.
        type Output;

        /// Calls the closure.
        fn again(&self, arg: Arg) -> Self::Output;
    }
}

// Otherwise the compiler says that the closure is no `Fn`, and nothing of what to do.
#[diagnostic::do_not_recommend]
impl<F, Arg, Out> Again<Arg> for F
where
    F: Fn(Arg) -> Out,
{
    type Output = Out;

    fn again(&self, arg: Arg) -> Out {
        self(arg)
    }
}
