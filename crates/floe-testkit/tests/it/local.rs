//! The embedded engine, in memory and in a directory: the contract suite, and random operations compared with the
//! reference model.
use std::sync::Arc;

use floe_local::{Durability, LocalEngine, Options};
use floe_store::env::ManualClock;
use floe_store::{BoxFuture, Engine, Env, Result};
use floe_testkit::Harness;
use floe_testkit::model::run_property;
use floe_testkit::time::TestEnv;
use tempfile::TempDir;

/// An embedded engine with a manual clock and without background threads.
struct Local {
    engine: Option<Arc<LocalEngine>>,
    clock: Arc<ManualClock>,
    seed: u64,
    /// Its directory; `None` in memory.
    dir: Option<TempDir>,
    durability: Durability,
}

impl Local {
    /// An empty engine in memory.
    fn memory(seed: u64) -> Self {
        Self::new(seed, None, Durability::Sync)
    }

    /// An empty engine in its own directory.
    fn directory(seed: u64) -> Self {
        Self::new(seed, Some(tempfile::tempdir().unwrap()), Durability::Sync)
    }

    /// As [`directory`](Self::directory), without waiting for the disk; only a power loss would show the
    /// difference.
    fn relaxed_directory(seed: u64) -> Self {
        Self::new(
            seed,
            Some(tempfile::tempdir().unwrap()),
            Durability::Relaxed,
        )
    }

    fn new(seed: u64, dir: Option<TempDir>, durability: Durability) -> Self {
        let mut local = Self {
            engine: None,
            clock: TestEnv::seeded(seed).clock,
            seed,
            dir,
            durability,
        };
        local.open().unwrap();
        local
    }

    fn open(&mut self) -> Result<()> {
        let env = Env::manual(self.clock.clone(), self.seed);
        let options = Options::new()
            .env(env)
            .durability(self.durability)
            .background(false);
        self.engine = Some(Arc::new(match &self.dir {
            Some(dir) => LocalEngine::open_with(dir.path(), options)?,
            None => LocalEngine::memory_with(options)?,
        }));
        Ok(())
    }

    fn local(&self) -> &Arc<LocalEngine> {
        self.engine.as_ref().expect("the engine is open")
    }
}

impl Harness for Local {
    fn engine(&self) -> Arc<dyn Engine> {
        self.local().clone()
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        Some(self.clock.clone())
    }

    fn sweep(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            while self.local().run_background_once()? {}
            Ok(())
        })
    }

    fn reopen(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            // In memory, data lives as long as the engine.
            if self.dir.is_none() {
                return Ok(());
            }
            // Another seed, so that ids do not repeat.
            self.seed = self.seed.wrapping_add(0x9e37_79b9);
            let engine = Arc::into_inner(self.engine.take().expect("the engine is open"));
            drop(engine.expect("no other reference to the engine exists"));
            self.open()
        })
    }
}

mod memory {
    use super::Local;

    floe_testkit::contract_suite!(|| async { Local::memory(1) });
}

mod directory {
    use super::Local;

    floe_testkit::contract_suite!(|| async { Local::directory(1) });
}

#[tokio::test]
async fn random_operations_in_memory_match_the_model() {
    let report = run_property(async |seed| Local::memory(seed), 1, 4000).await;
    println!("{}", report.unwrap());
}

#[tokio::test]
async fn random_operations_in_a_directory_match_the_model() {
    let report = run_property(async |seed| Local::relaxed_directory(seed), 2, 3000).await;
    println!("{}", report.unwrap());
}
