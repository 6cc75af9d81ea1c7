//! Makes the engines for the suites: each with an empty server of its own.

use std::sync::Arc;

use floe::Db;
use floe_aws::{AwsEngine, ConnectOptions};
use floe_local::{LocalEngine, Options};
use floe_server::{Server, Service};
use floe_store::{Engine, Env};

use crate::world::elsewhere::{self, Elsewhere};

/// How many increments a suite makes where more show more: far fewer than the embedded engine is
/// asked for.
pub(crate) const INCREMENTS: i64 = 320;

/// An engine to an empty server.
pub(crate) fn engine() -> Arc<dyn Engine> {
    start(Env::system(), Options::new())
}

/// An engine to an empty server whose time and ids belong to the test, and which does nothing on its own.
pub(crate) fn engine_at(env: Env) -> Arc<dyn Engine> {
    start(env.clone(), Options::new().env(env).background(false))
}

/// A database on an empty server.
pub(crate) fn db() -> Db {
    Db::with_engine(engine())
}

fn start(env: Env, options: Options) -> Arc<dyn Engine> {
    Arc::new(Elsewhere::start(async move {
        let local = Arc::new(LocalEngine::memory_with(options).unwrap());
        let server = Server::bind(floe_server::Options::new(), Service::new(local));
        let server = server.await.unwrap().spawn();
        let options = ConnectOptions::local(server.url()).env(env);
        let engine = AwsEngine::connect(options).await.unwrap();
        let engine: Arc<dyn Engine> = Arc::new(engine);
        let server: elsewhere::Server = Box::new(server);
        (engine, server)
    }))
}
