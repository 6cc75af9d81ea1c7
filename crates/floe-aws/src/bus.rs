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
    /// Connects to the bus with this name or ARN; `default` is the bus that every account has. Uses the region,
    /// credentials, endpoint, timeouts and retries of the options.
    ///
    /// # Errors
    ///
    /// [`Validation`](floe_store::Error::Validation) if no region is configured. The bus is contacted with the first
    /// entry only.
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
            // Delivery is at least once: a duplicate event is acceptable.
            let put = || self.client.put(&entries);
            self.retry.run(Effect::None, put).await
        })
    }
}
