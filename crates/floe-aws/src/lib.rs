//! The DynamoDB engine: Amazon DynamoDB, or any server with its protocol, through the official SDK.
//!
//! ```no_run
//! use floe_aws::{AwsEngine, ConnectOptions};
//! use floe_store::{Engine, Item, op::GetItem};
//!
//! # async fn example() -> floe_store::Result<()> {
//! let options = ConnectOptions::new().region("eu-central-1").table_prefix("shop-");
//! let engine = AwsEngine::connect(options).await?;
//! let key = Item::new().with("id", "o-1");
//! let found = engine.get_item(GetItem::new("Orders", key)).await?;
//! println!("{:?}", found.item);
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - **Requests are validated before they are sent**, with the same rules and messages as on every engine.
//! - **A write is applied once, or its outcome is reported as unknown.** A request that may have been applied is not
//!   retried unless it has an idempotency token; see [`OutcomeUnknown`](floe_store::Error::OutcomeUnknown).
//! - **Operations that the store does not support are rejected before anything is sent**, with
//!   [`Unsupported`](floe_store::Error::Unsupported), according to [`ConnectOptions::capabilities`].
//! - **The table prefix is invisible to callers**, except in ARNs.
//! - **No data is lost in conversion**: numbers keep 38 digits, bytes stay bytes, sets stay sets.
//!
//! # Credentials
//!
//! In this order: [`ConnectOptions::credentials`], the environment, the profile (keys, roles, a process; with the
//! feature `sso` also IAM Identity Center), a web identity, the container's role, the machine's role.
//!
//! # Modules
//!
//! | module | purpose |
//! |---|---|
//! | `options` | endpoint, credentials and settings of a connection |
//! | `ops` | the operations: validate, send, retry, combine responses |
//! | `changes` | change streams |
//! | `bus` | Amazon EventBridge as an event bus, with the feature `eventbridge` |
//! | `retry` | which requests are retried, and after which pauses |
//! | `names` | the prefix of table names |
//! | `convert` | conversion between types of Floe and of the SDK; only this module uses the SDK |
//!
//! Not part of this crate: the meaning and validation of operations (`floe-store`), and the reconciliation of unknown
//! outcomes (`floe`).

#![forbid(unsafe_code)]

#[cfg(feature = "eventbridge")]
mod bus;
mod changes;
mod convert;
mod names;
mod ops;
mod options;
mod retry;

#[cfg(feature = "eventbridge")]
pub use bus::EventBridge;
pub use options::ConnectOptions;

use floe_store::{BoxFuture, Capabilities, Engine, Result, Timestamp, each_operation};
use ops::Operations;

/// An engine on Amazon DynamoDB, or on any server with its protocol.
///
/// Cheap to clone: clones share connections.
#[derive(Clone, Debug)]
pub struct AwsEngine(Operations);

impl AwsEngine {
    /// Resolves the region and creates the clients. Whether the store is reachable and accepts the credentials becomes
    /// known with the first request.
    ///
    /// # Errors
    ///
    /// [`Validation`](floe_store::Error::Validation) if no region is configured, or if the table prefix is invalid.
    pub async fn connect(options: ConnectOptions) -> Result<Self> {
        Operations::connect(options).await.map(Self)
    }
}

macro_rules! operate {
    ($($operation:ident($input:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, input: $input) -> BoxFuture<'_, Result<$output>> {
            Box::pin(self.0.$operation(input))
        }
    )*};
}

impl Engine for AwsEngine {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities.clone()
    }

    fn now(&self) -> Timestamp {
        self.0.retry.env.now()
    }

    each_operation!(operate; items, tables);
    each_operation!(operate; list_streams, describe_stream, get_shard_iterator, get_records);
}

/// Compiles the SDK example of the book.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/using-with-aws-sdks.md")]
struct SdkExamples;
