//! The embedded engine as a test harness, with the clock and background work under control of the run.

use std::sync::Arc;

use floe_local::{LocalEngine, Options};
use floe_store::env::ManualClock;
use floe_store::{BoxFuture, Engine, Env, Error, Result};
use floe_testkit::Harness;
use floe_testkit::time::TestEnv;
use tempfile::TempDir;

/// An embedded engine, in memory or in its own directory.
pub(super) struct Local {
    /// Absent while it is being reopened.
    engine: Option<Arc<LocalEngine>>,
    clock: Arc<ManualClock>,
    seed: u64,
    folder: Option<TempDir>,
}

impl Local {
    /// Creates an empty engine.
    #[expect(
        clippy::expect_used,
        reason = "without an engine there is no run; the panic is reported as a failure of the check"
    )]
    pub(super) fn make(seed: u64, is_directory: bool) -> Self {
        let folder = is_directory.then(|| tempfile::tempdir().expect("a folder can be created"));
        let mut local = Self {
            engine: None,
            clock: TestEnv::seeded(seed).clock,
            seed,
            folder,
        };
        local.open().expect("an empty engine opens");
        local
    }

    fn open(&mut self) -> Result<()> {
        let env = Env::manual(Arc::clone(&self.clock), self.seed);
        let options = Options::new().env(env).background(false);
        self.engine = Some(Arc::new(match &self.folder {
            Some(folder) => LocalEngine::open_with(folder.path(), options)?,
            None => LocalEngine::memory_with(options)?,
        }));
        Ok(())
    }

    #[expect(clippy::expect_used, reason = "a run ends when reopening has failed")]
    fn local(&self) -> &Arc<LocalEngine> {
        self.engine.as_ref().expect("the engine is open")
    }
}

impl Harness for Local {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(self.local()) as Arc<dyn Engine>
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        Some(Arc::clone(&self.clock))
    }

    fn sweep(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            while self.local().run_background_once()? {}
            Ok(())
        })
    }

    fn reopen(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            // A store in memory would lose its content.
            if self.folder.is_none() {
                return Ok(());
            }
            // A new seed, so that ids are not repeated.
            self.seed = self.seed.wrapping_add(1);
            let engine = self.engine.take().and_then(Arc::into_inner);
            let engine =
                engine.ok_or_else(|| Error::Internal("the engine is still in use".to_owned()))?;
            engine.close()?;
            drop(engine);
            self.open()
        })
    }
}

/// A boxed harness: the property run is large, and compiling it for each type would take minutes.
pub(super) struct BoxedHarness(Box<dyn Harness>);

impl BoxedHarness {
    pub(super) fn new(harness: impl Harness + 'static) -> Self {
        Self(Box::new(harness))
    }
}

impl Harness for BoxedHarness {
    fn engine(&self) -> Arc<dyn Engine> {
        self.0.engine()
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        self.0.clock()
    }

    fn sweep(&self) -> BoxFuture<'_, Result<()>> {
        self.0.sweep()
    }

    fn reopen(&mut self) -> BoxFuture<'_, Result<()>> {
        self.0.reopen()
    }
}
