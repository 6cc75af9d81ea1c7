//! Creates engines for the suites, each with its own empty server.

use std::sync::Arc;

use dynoxide::Database;
use floe::Db;
use floe_aws::{AwsEngine, ConnectOptions};
use floe_store::{Engine, Env};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::world::runtime_engine::{self, RuntimeEngine};

/// Number of increments in suites with many: fewer than for the embedded engine.
pub(crate) const INCREMENTS: i64 = 320;

/// Returns an engine on an empty server.
pub(crate) fn engine() -> Arc<dyn Engine> {
    engine_at(Env::system())
}

/// Returns an engine with a test clock on an empty server with the system clock.
pub(crate) fn engine_at(env: Env) -> Arc<dyn Engine> {
    Arc::new(RuntimeEngine::start(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let db = Database::memory().unwrap();
        let serving = Serving(tokio::spawn(dynoxide::server::serve_on(listener, db)));
        let options = ConnectOptions::local(format!("http://{address}")).env(env);
        let engine: Arc<dyn Engine> = Arc::new(AwsEngine::connect(options).await.unwrap());
        let server: runtime_engine::Server = Box::new(serving);
        (engine, server)
    }))
}

/// Returns a database on an empty server.
pub(crate) fn db() -> Db {
    Db::with_engine(engine())
}

/// Serves until dropped.
struct Serving(JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}
