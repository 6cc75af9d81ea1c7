//! A Floe server in this process, and an engine that accesses it over HTTP.

pub(crate) mod runtime_engine;

use std::sync::Arc;

use floe_aws::{AwsEngine, ConnectOptions};
use floe_local::{LocalEngine, Options};
use floe_server::{Server, ServerHandle, Service};
use floe_store::env::ManualClock;
use floe_store::{BoxFuture, Engine, Env, Result};
use floe_testkit::Harness;
use floe_testkit::time::TestEnv;

/// An embedded engine in memory with a test clock, served to a client.
pub(crate) struct Remote {
    pub(crate) engine: Arc<AwsEngine>,
    pub(crate) local: Arc<LocalEngine>,
    /// Keeps the server running.
    #[allow(dead_code, reason = "not every test needs the address")]
    pub(crate) server: ServerHandle,
    clock: Arc<ManualClock>,
}

impl Remote {
    /// Returns an empty server, and a client with its tables' names.
    pub(crate) async fn new() -> Self {
        Self::with(|options| options).await
    }

    /// Returns an empty server, and a client with these options.
    pub(crate) async fn with(change: impl FnOnce(ConnectOptions) -> ConnectOptions) -> Self {
        let clock = TestEnv::seeded(1).clock;
        let env = Env::manual(clock.clone(), 1);
        let options = Options::new().env(env.clone()).background(false);
        let local = Arc::new(LocalEngine::memory_with(options).unwrap());
        let service = Service::new(local.clone());
        let server = Server::bind(floe_server::Options::new(), service);
        let server = server.await.unwrap().spawn();
        let options = ConnectOptions::local(server.url()).env(env);
        let engine = AwsEngine::connect(change(options)).await.unwrap();
        Self {
            engine: Arc::new(engine),
            local,
            server,
            clock,
        }
    }
}

impl Harness for Remote {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        Some(self.clock.clone())
    }

    fn sweep(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            while self.local.run_background_once()? {}
            Ok(())
        })
    }

    fn reopen(&mut self) -> BoxFuture<'_, Result<()>> {
        // The data in memory lives as long as the server.
        Box::pin(async { Ok(()) })
    }
}
