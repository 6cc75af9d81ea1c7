//! Sinks: where changes are sent that no handler of the program is for.
//!
//! A sink takes the [envelope](super::Envelope) of each change that a pattern matches. By hand:
//!
//! ```
//! use floe::changes::{Envelope, Handled, Sink};
//! use floe_store::BoxFuture;
//!
//! struct Print;
//!
//! impl Sink for Print {
//!     fn send(&self, envelope: Envelope) -> BoxFuture<'_, Handled> {
//!         Box::pin(async move {
//!             println!("{}", envelope.to_json());
//!             Ok(())
//!         })
//!     }
//! }
//! ```

use floe_store::BoxFuture;

use super::envelope::Envelope;
use super::handler::Handled;

/// Where changes are sent.
pub trait Sink: Send + Sync + 'static {
    /// Sends a change. It comes again if this fails, and may come again if it does not.
    fn send(&self, envelope: Envelope) -> BoxFuture<'_, Handled>;

    /// Makes lasting what was sent. No checkpoint passes a change before this has succeeded after it.
    fn flush(&self) -> BoxFuture<'_, Handled> {
        Box::pin(async { Ok(()) })
    }
}
