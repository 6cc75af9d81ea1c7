//! An engine whose work is done by a runtime of its own, so that what the runtime of a test does with time and
//! threads does not touch the network.

use std::any::Any;
use std::sync::{Arc, LazyLock};

use floe_store::{BoxFuture, Engine, Result, each_operation, forward_to};
use tokio::runtime::{Builder, Runtime};

/// The runtime of servers and clients, for all tests of the process.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
});

/// An engine that works elsewhere, and the server that it speaks with.
pub(crate) struct Elsewhere {
    engine: Arc<dyn Engine>,
    /// Serves as long as it is there.
    _server: Server,
}

/// Whatever keeps a server running.
pub(crate) type Server = Box<dyn Any + Send + Sync>;

impl Elsewhere {
    /// The engine and the server that this makes, from wherever it is called.
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

macro_rules! elsewhere {
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

impl Engine for Elsewhere {
    forward_to!(self.engine; basics);
    each_operation!(elsewhere; all);
}
