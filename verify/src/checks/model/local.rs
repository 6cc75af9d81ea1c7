//! The engine as the property run takes it: its time and its background work belong to the run.

use std::sync::Arc;

use floe_local::{LocalEngine, Options};
use floe_store::env::ManualClock;
use floe_store::{BoxFuture, Engine, Env, Error, Result};
use floe_testkit::Harness;
use floe_testkit::time::TestEnv;
use tempfile::TempDir;

/// An embedded engine, in memory or in a directory of its own.
pub(super) struct Local {
    /// Absent while it is being reopened.
    engine: Option<Arc<LocalEngine>>,
    clock: Arc<ManualClock>,
    seed: u64,
    folder: Option<TempDir>,
}

impl Local {
    /// An empty engine.
    #[expect(
        clippy::expect_used,
        reason = "without an engine there is no run; whoever started it is told of the panic"
    )]
    pub(super) fn make(seed: u64, is_directory: bool) -> Self {
        let folder = is_directory.then(|| tempfile::tempdir().expect("a folder can be made"));
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
            // What is in memory lives as long as the engine.
            if self.folder.is_none() {
                return Ok(());
            }
            // Ids go on instead of coming again.
            self.seed = self.seed.wrapping_add(1);
            let engine = self.engine.take().and_then(Arc::into_inner);
            let engine =
                engine.ok_or_else(|| Error::Internal("somebody holds the engine".to_owned()))?;
            engine.close()?;
            drop(engine);
            self.open()
        })
    }
}

/// Any harness behind one type: the property run is large, and compiling it for each would take
/// minutes.
pub(super) struct Any(Box<dyn Harness>);

impl Any {
    pub(super) fn new(harness: impl Harness + 'static) -> Self {
        Self(Box::new(harness))
    }
}

impl Harness for Any {
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
