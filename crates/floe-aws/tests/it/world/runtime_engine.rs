//! An engine that runs on its own runtime, so that paused time and thread settings of a test's runtime do not affect
//! the network.

use std::any::Any;
use std::sync::{Arc, LazyLock};

use floe_store::{BoxFuture, Engine, Result, each_operation, forward_to};
use tokio::runtime::{Builder, Runtime};

/// The runtime of servers and clients, shared by all tests of the process.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
});

/// An engine on the other runtime, and its server.
pub(crate) struct RuntimeEngine {
    engine: Arc<dyn Engine>,
    /// Keeps the server running.
    _server: Server,
}

/// A handle that keeps a server running.
pub(crate) type Server = Box<dyn Any + Send + Sync>;

impl RuntimeEngine {
    /// Creates the engine and the server on the other runtime.
    pub(crate) fn start(
        make: impl Future<Output = (Arc<dyn Engine>, Server)> + Send + 'static,
    ) -> Self {
        let (made, ready) = std::sync::mpsc::channel();
        RUNTIME.spawn(async move { made.send(make.await) });
        let (engine, server) = ready.recv().unwrap();
        Self {
            engine,
            _server: server,
        }
    }
}

macro_rules! runtime_engine {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            let engine = self.engine.clone();
            Box::pin(async move {
                let work = async move { engine.$operation(input).await };
                RUNTIME.spawn(work).await.unwrap()
            })
        }
    )*};
}

impl Engine for RuntimeEngine {
    forward_to!(self.engine; basics);
    each_operation!(runtime_engine; all);
}
