//! The operations of the engine: validate, send, retry, combine responses.
//!
//! Each operation first validates its request like every engine (`validate` of `floe-store`), then checks that the
//! store supports it, and only then sends anything.

mod batch;
mod items;
mod tables;
mod transact;

use floe_store::{Capabilities, Error, Result};

use crate::ConnectOptions;
use crate::convert::Client;
use crate::retry::{AttemptResult, Effect, Retry};

/// The state of the engine. Its methods are the operations.
#[derive(Clone, Debug)]
pub(crate) struct Operations {
    pub(crate) client: Client,
    pub(crate) retry: Retry,
    pub(crate) capabilities: Capabilities,
}

impl Operations {
    pub(crate) async fn connect(options: ConnectOptions) -> Result<Self> {
        Ok(Self {
            client: Client::new(&options).await?,
            retry: Retry::new(&options),
            capabilities: options.capabilities,
        })
    }

    /// Sends a request that only reads.
    pub(crate) async fn read<T, F>(&self, send: impl Fn() -> F + Send) -> Result<T>
    where
        T: Send,
        F: Future<Output = AttemptResult<T>> + Send,
    {
        self.retry.run(Effect::None, send).await
    }

    /// Sends a write that is applied each time it arrives.
    async fn write<T, F>(&self, send: impl Fn() -> F + Send) -> Result<T>
    where
        T: Send,
        F: Future<Output = AttemptResult<T>> + Send,
    {
        self.retry.run(Effect::EachTime, send).await
    }

    /// Rejects an operation that the store does not support, before anything is sent.
    pub(crate) fn require(&self, has: bool, what: &str) -> Result<()> {
        if has {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "the store does not support {what}"
        )))
    }
}
