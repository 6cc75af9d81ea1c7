//! Planted bugs outside of operations.

use std::sync::Arc;

use floe_store::env::ManualClock;
use floe_store::{BoxFuture, Engine, Result};

use super::{Bug, Mutant};
use crate::Harness;

/// A harness whose engine has a planted bug.
pub struct MutantHarness<H> {
    inner: H,
    mutant: Arc<Mutant>,
    bug: Bug,
}

impl<H: Harness> MutantHarness<H> {
    /// Plants a bug in the engine of a harness.
    pub fn new(inner: H, bug: Bug) -> Self {
        let mutant = Arc::new(Mutant::new(inner.engine(), bug));
        Self { inner, mutant, bug }
    }
}

impl<H: Harness> Harness for MutantHarness<H> {
    fn engine(&self) -> Arc<dyn Engine> {
        self.mutant.clone()
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        self.inner.clock()
    }

    fn sweep(&self) -> BoxFuture<'_, Result<()>> {
        match self.bug {
            Bug::NothingExpires => Box::pin(async { Ok(()) }),
            _ => self.inner.sweep(),
        }
    }

    fn reopen(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            self.inner.reopen().await?;
            let last_put = self.mutant.take_last_put();
            let mutant = Mutant::new(self.inner.engine(), self.bug);
            if let (Bug::LastPutLostOnReopen, Some(put)) = (self.bug, last_put) {
                mutant.delete_last_put(put).await;
            }
            self.mutant = Arc::new(mutant);
            Ok(())
        })
    }
}
