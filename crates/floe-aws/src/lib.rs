//! The DynamoDB engine: Amazon DynamoDB, or anything that speaks its protocol, through the official SDK.
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
//! # What it promises
//!
//! - **A request is checked before it is sent**, by the same rules and in the same words as on every engine.
//! - **A write is applied once or its outcome is told as unknown.** Nothing is repeated that may have been
//!   applied, unless it carries a token; see [`OutcomeUnknown`](floe_store::Error::OutcomeUnknown).
//! - **What the store cannot do is refused before anything is sent**:
//!   [`Unsupported`](floe_store::Error::Unsupported), as [`ConnectOptions::capabilities`] says.
//! - **The table prefix is seen by nobody above**, but in the names of resources (ARNs).
//! - **Nothing is lost on the way**: numbers keep their 38 digits, bytes stay bytes, sets stay sets.
//!
//! # Credentials
//!
//! In this order: those of [`ConnectOptions::credentials`], the environment, the profile (keys, roles, a process;
//! with the feature `sso` also IAM Identity Center), a web identity, the container's role, the machine's role.
//!
//! # What is where
//!
//! | module | what it does |
//! |---|---|
//! | `options` | where and as whom to connect |
//! | `ops` | the operations: check, send, send again, put answers together |
//! | `changes` | change streams |
//! | `bus` | Amazon EventBridge as an event bus, with the feature `eventbridge` |
//! | `retry` | what is sent again, after which pauses |
//! | `names` | the prefix of table names |
//! | `convert` | between Floe's words and the SDK's: the only place where types of the SDK appear |
//!
//! What is not here: the meaning of operations and their checks (`floe-store`), and what to do about an unknown
//! outcome (`floe`).

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

/// An engine on Amazon DynamoDB, or on anything that speaks its protocol.
///
/// Cheap to clone: copies share their connections.
#[derive(Clone, Debug)]
pub struct AwsEngine(Operations);

impl AwsEngine {
    /// Finds out the region and makes ready to send. Whether the store can be reached, and whether it knows the
    /// credentials, shows with the first request.
    ///
    /// # Errors
    ///
    /// [`Validation`](floe_store::Error::Validation) when no region is known, or when the prefix is none that a
    /// table's name can begin with.
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

/// The program for the SDK in the book compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/using-with-aws-sdks.md")]
struct SdkExamples;
