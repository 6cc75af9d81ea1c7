//! Amazon EventBridge as an event bus.

use floe_store::bus::{BusEntry, EventBus};
use floe_store::{BoxFuture, Result};

use crate::ConnectOptions;
use crate::convert::BusClient;
use crate::retry::{Effect, Retry};

/// A bus of Amazon EventBridge.
///
/// Cheap to clone: copies share their connections.
#[derive(Clone, Debug)]
pub struct EventBridge {
    client: BusClient,
    retry: Retry,
}

impl EventBridge {
    /// The bus of this name, or of this resource name; `default` is the one that every account has. Of the options it takes
    /// region, credentials, endpoint, timeouts and retries.
    ///
    /// # Errors
    ///
    /// [`Validation`](floe_store::Error::Validation) when no region is known. Whether the bus can be reached shows with the
    /// first entry.
    pub async fn connect(options: ConnectOptions, bus: impl Into<String>) -> Result<Self> {
        Ok(Self {
            client: BusClient::new(&options, bus.into()).await?,
            retry: Retry::new(&options),
        })
    }
}

impl EventBus for EventBridge {
    fn put_events(&self, entries: Vec<BusEntry>) -> BoxFuture<'_, Result<Vec<Result<(), String>>>> {
        Box::pin(async move {
            // Events come at least once: one that comes twice does no harm.
            let put = || self.client.put(&entries);
            self.retry.run(Effect::None, put).await
        })
    }
}
