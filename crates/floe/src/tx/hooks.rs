//! What a body wants to be done once the outcome of its transaction is known.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use floe_store::BoxFuture;

use crate::error::Error;

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It was committed.
    Committed,
    /// It was not, for this reason.
    Failed(Error),
}

pub(crate) type Hook = Box<dyn FnOnce(Outcome) -> BoxFuture<'static, ()> + Send>;

/// The hooks of one run, in their order.
#[derive(Default)]
pub(crate) struct Hooks(Mutex<Vec<Hook>>);

impl Hooks {
    pub(crate) fn add<F, Fut>(&self, hook: F)
    where
        F: FnOnce(Outcome) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook: Hook = Box::new(move |outcome| Box::pin(hook(outcome)));
        let mut hooks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hooks.push(hook);
    }

    /// Takes all hooks out.
    pub(crate) fn take(&self) -> Vec<Hook> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs hooks one after the other.
pub(crate) async fn run(hooks: Vec<Hook>, outcome: &Outcome) {
    for hook in hooks {
        hook(outcome.clone()).await;
    }
}
