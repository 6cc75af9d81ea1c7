//! Sinks: destinations of changes outside the program.
//!
//! A sink receives the [envelope](super::Envelope) of each change that a pattern matches: [`JsonLines`] writes to a
//! file or to standard output, `Webhook` posts to a server (with the feature `webhook`), [`ToBus`] sends to an event
//! bus. A custom sink:
//!
//! ```
//! use floe::changes::{Envelope, HandlerResult, Sink};
//! use floe_store::BoxFuture;
//!
//! struct Print;
//!
//! impl Sink for Print {
//!     fn send(&self, envelope: Envelope) -> BoxFuture<'_, HandlerResult> {
//!         Box::pin(async move {
//!             println!("{}", envelope.to_json());
//!             Ok(())
//!         })
//!     }
//! }
//! ```

mod bus;
mod lines;
#[cfg(feature = "webhook")]
mod webhook;

use floe_store::BoxFuture;

pub use self::bus::ToBus;
pub use self::lines::JsonLines;
#[cfg(feature = "webhook")]
pub use self::webhook::Webhook;
use super::envelope::Envelope;
use super::handler::HandlerResult;

/// A destination of changes.
pub trait Sink: Send + Sync + 'static {
    /// Sends a change. It is sent again after a failure, and may be sent again after a success.
    fn send(&self, envelope: Envelope) -> BoxFuture<'_, HandlerResult>;

    /// Makes everything that was sent durable. No checkpoint passes a change before a later flush has succeeded.
    fn flush(&self) -> BoxFuture<'_, HandlerResult> {
        Box::pin(async { Ok(()) })
    }
}
