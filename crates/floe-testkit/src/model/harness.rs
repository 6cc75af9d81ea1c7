//! A harness for the model.

use std::sync::Arc;

use floe_store::env::ManualClock;
use floe_store::{BoxFuture, Engine, Result};

use super::ModelEngine;
use crate::Harness;
use crate::time::TestEnv;

/// A [`ModelEngine`] with its own clock.
#[derive(Debug)]
pub struct ModelHarness {
    engine: Arc<ModelEngine>,
    clock: Arc<ManualClock>,
}

impl ModelHarness {
    /// Creates an empty model; the seed determines its ids.
    pub fn new(seed: u64) -> Self {
        let TestEnv { env, clock } = TestEnv::seeded(seed);
        Self {
            engine: Arc::new(ModelEngine::new(env)),
            clock,
        }
    }
}

impl Harness for ModelHarness {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        Some(self.clock.clone())
    }

    fn sweep(&self) -> BoxFuture<'_, Result<()>> {
        self.engine.sweep();
        Box::pin(async { Ok(()) })
    }

    fn reopen(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
