//! Creates engines for the suites, each with its own empty server.

use std::sync::Arc;

use floe::Db;
use floe_aws::{AwsEngine, ConnectOptions};
use floe_local::{LocalEngine, Options};
use floe_server::{Server, Service};
use floe_store::{Engine, Env};

use crate::world::runtime_engine::{self, RuntimeEngine};

/// Number of increments in suites with many: fewer than for the embedded engine.
pub(crate) const INCREMENTS: i64 = 320;

/// Returns an engine on an empty server.
pub(crate) fn engine() -> Arc<dyn Engine> {
    start(Env::system(), Options::new())
}

/// Returns an engine on an empty server with a test clock and ids, and without background work.
pub(crate) fn engine_at(env: Env) -> Arc<dyn Engine> {
    start(env.clone(), Options::new().env(env).background(false))
}

/// Returns a database on an empty server.
pub(crate) fn db() -> Db {
    Db::with_engine(engine())
}

fn start(env: Env, options: Options) -> Arc<dyn Engine> {
    Arc::new(RuntimeEngine::start(async move {
        let local = Arc::new(LocalEngine::memory_with(options).unwrap());
        let server = Server::bind(floe_server::Options::new(), Service::new(local));
        let server = server.await.unwrap().spawn();
        let options = ConnectOptions::local(server.url()).env(env);
        let engine = AwsEngine::connect(options).await.unwrap();
        let engine: Arc<dyn Engine> = Arc::new(engine);
        let server: runtime_engine::Server = Box::new(server);
        (engine, server)
    }))
}
