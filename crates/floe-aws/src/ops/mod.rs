//! The operations, as the engine does them: refuse what cannot work, send, send again, put answers together.
//!
//! Each operation first checks its request as every engine does (`validate` of `floe-store`), then asks whether
//! the store can do it at all, and only then sends something.

mod batch;
mod items;
mod tables;
mod transact;

use floe_store::{Capabilities, Error, Result};

use crate::ConnectOptions;
use crate::convert::Client;
use crate::retry::{Answer, Effect, Retry};

/// What the engine is made of. Its methods are the operations, by their names.
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

    /// Sends what only reads.
    pub(crate) async fn read<T, F>(&self, send: impl Fn() -> F + Send) -> Result<T>
    where
        T: Send,
        F: Future<Output = Answer<T>> + Send,
    {
        self.retry.run(Effect::None, send).await
    }

    /// Sends what writes each time that it arrives.
    async fn write<T, F>(&self, send: impl Fn() -> F + Send) -> Result<T>
    where
        T: Send,
        F: Future<Output = Answer<T>> + Send,
    {
        self.retry.run(Effect::EachTime, send).await
    }

    /// Refuses what the store cannot do, before anything is sent.
    pub(crate) fn need(&self, has: bool, what: &str) -> Result<()> {
        if has {
            return Ok(());
        }
        Err(Error::Unsupported(format!("the store has no {what}")))
    }
}
