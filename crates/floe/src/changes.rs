//! The change router: delivers committed changes to handlers.
//!
//! Every table can have a change stream with a record of each inserted, changed or removed item. A [`Router`] passes
//! these changes to handlers by type, by [pattern](Pattern), or by topic of the [outbox], and to [sinks](sink).
//!
//! | module | contents |
//! |---|---|
//! | [`router`] | selects the handlers of a change |
//! | [`handler`] | arguments and failures of handlers |
//! | [`consumer`] | reads the change streams of tables and stores checkpoints |
//! | [`deliver`] | passes changes to a router directly |
//! | [`lambda`] | handles change events of AWS Lambda |
//! | [`pattern`], [`envelope`] | select changes with the syntax of Amazon EventBridge's rules |
//! | [`expired`] | handlers of expired versions of a registry |
//! | [`sink`] | send changes to destinations outside the program |
//! | [`outbox`] | messages stored in the commit that causes them |

pub mod change;
pub mod consumer;
pub mod deliver;
pub mod envelope;
pub mod expired;
pub mod handler;
pub mod lambda;
mod limits;
pub mod outbox;
pub mod pattern;
pub mod router;
pub mod sink;
mod work;

pub use self::change::{Cause, Change, KeyNames};
pub use self::consumer::dead_letters::{DeadLetter, DeadLetterId, DeadLetters};
pub use self::consumer::{ChangeConsumer, ConsumerNotice, ConsumerProgress, ConsumerSummary};
pub use self::deliver::{BatchDelivery, FailedRecord};
pub use self::envelope::Envelope;
pub use self::expired::Expired;
pub use self::handler::{Changed, Failure, Handler, HandlerResult, Inserted, Removed};
pub use self::outbox::{Message, Topics};
pub use self::pattern::{Pattern, Rule};
pub use self::router::Router;
pub use self::sink::Sink;
pub use crate::watched::Watched;
