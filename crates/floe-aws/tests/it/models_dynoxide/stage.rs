//! Makes the engines for the suites: each with an empty server of its own.

use std::sync::Arc;

use dynoxide::Database;
use floe::Db;
use floe_aws::{AwsEngine, ConnectOptions};
use floe_store::{Engine, Env};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::world::elsewhere::{self, Elsewhere};

/// How many increments a suite makes where more show more: far fewer than the embedded engine is asked for.
pub(crate) const INCREMENTS: i64 = 320;

/// An engine to an empty server.
pub(crate) fn engine() -> Arc<dyn Engine> {
    engine_at(Env::system())
}

/// An engine whose time belongs to the test, to an empty server whose time does not.
pub(crate) fn engine_at(env: Env) -> Arc<dyn Engine> {
    Arc::new(Elsewhere::start(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let db = Database::memory().unwrap();
        let serving = Serving(tokio::spawn(dynoxide::server::serve_on(listener, db)));
        let options = ConnectOptions::local(format!("http://{address}")).env(env);
        let engine: Arc<dyn Engine> = Arc::new(AwsEngine::connect(options).await.unwrap());
        let server: elsewhere::Server = Box::new(serving);
        (engine, server)
    }))
}

/// A database on an empty server.
pub(crate) fn db() -> Db {
    Db::with_engine(engine())
}

/// Serves until it is dropped.
struct Serving(JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}
