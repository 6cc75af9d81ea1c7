//! Hooks that run once the outcome of a transaction is known.

use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};

use floe_store::BoxFuture;
use futures_util::FutureExt;

use crate::error::Error;
use crate::telemetry::transaction as telemetry;

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was committed.
    Committed,
    /// It was not committed, for this reason.
    Failed(Error),
}

pub(crate) type Hook = Box<dyn FnOnce(Outcome) -> BoxFuture<'static, ()> + Send>;

/// The hooks of one attempt, in their order.
#[derive(Default)]
pub(crate) struct Hooks(Mutex<Vec<Hook>>);

impl Hooks {
    pub(crate) fn add(&self, hook: Hook) {
        self.lock().push(hook);
    }

    /// Removes and returns all hooks.
    pub(crate) fn take(&self) -> Vec<Hook> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Hook>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs hooks in order. The outcome is final: a hook that panics changes neither it nor what the caller gets, and the hooks
/// after it run.
pub(crate) async fn run(hooks: Vec<Hook>, outcome: &Outcome) {
    for hook in hooks {
        let outcome = outcome.clone();
        let run = AssertUnwindSafe(async move { hook(outcome).await });
        if run.catch_unwind().await.is_err() {
            telemetry::hook_panicked();
        }
    }
}
