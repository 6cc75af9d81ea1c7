//! Sends requests until their outcome is known.
//!
//! Every request of every pattern is sent by one of two functions:
//!
//! * [`repeat`] sends a request that may be applied any number of times with the same effect: a read, or a write that
//!   is idempotent.
//! * [`write`] sends a [`Write`] that must be applied once. When a response is lost, the outcome is determined by the
//!   idempotency token of the request, by [reading](Write::reconcile) the item, or by the condition of the write,
//!   which fails if an earlier attempt was applied.
//!
//! Both retry within a [`Budget`]. The patterns define what a rejection means; this module is independent of them.
//!
//! | file | contents |
//! |---|---|
//! | `budget` | retry budgets: attempts, deadline, pauses |
//! | `backoff` | the length of a pause |
//! | `repeat` | requests that may be applied repeatedly |
//! | `get` | reads of items by their keys |
//! | `write` | writes that must be applied once |

mod backoff;
mod budget;
mod get;
mod repeat;
mod write;

pub(crate) use backoff::Backoff;
pub(crate) use budget::{Attempts, Budget};
pub(crate) use get::{ItemRequest, batch_get, get};
pub(crate) use repeat::{Retryable, repeat};
pub(crate) use write::{Reconciled, SendAttempt, Write, WriteOutcome, with_token, write};
