//! Changes: what a commit leaves behind for others to act on.
//!
//! Every table can have a change stream, which tells of each item that was inserted, changed or removed. A [`Router`] gives
//! these changes to handlers by type, by [pattern](Pattern), or by topic of the [outbox], and to [sinks](sink).
//!
//! | module | what it holds |
//! |---|---|
//! | [`router`] | which handlers a change goes to |
//! | [`handler`] | what handlers are given, and how they fail |
//! | [`consumer`] | reading the change streams of tables, and remembering how far |
//! | [`deliver`] | giving changes to a router directly |
//! | [`lambda`] | changes that AWS Lambda brings |
//! | [`pattern`], [`envelope`] | which changes are meant, in the language of Amazon EventBridge's rules |
//! | [`expired`] | handlers of versions of a registry that have expired |
//! | [`sink`] | where changes are sent that no handler of the program is for |
//! | [`outbox`] | messages that are written in the same commit as what they tell of |

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
pub use self::consumer::parked::{Parked, ParkedChanges, ParkedId};
pub use self::consumer::{Consumer, Notice, Progress, Ran};
pub use self::deliver::{Delivery, Undelivered};
pub use self::envelope::Envelope;
pub use self::expired::Expired;
pub use self::handler::{Changed, Failure, Handled, Handler, Inserted, Removed};
pub use self::outbox::{Message, Topics};
pub use self::pattern::{Pattern, Rule};
pub use self::router::Router;
pub use self::sink::Sink;
pub use crate::watched::Watched;
