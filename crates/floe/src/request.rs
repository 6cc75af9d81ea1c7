//! Sending requests until their outcome is known.
//!
//! Every request of every pattern goes out through one of two functions:
//!
//! * [`repeat`] sends a request that may be applied any number of times with the same effect: a read, or a write that
//!   is idempotent by itself.
//! * [`write`] sends a [`Write`] that must be applied once. When a response is lost, the outcome is found out by the
//!   idempotency token of the request, by [looking](Write::reconcile) at the item, or by the condition of the write,
//!   which the first sending made false.
//!
//! Both send again within a [`Budget`]. The patterns say what a refusal means; nothing here knows a pattern.
//!
//! | file | what it holds |
//! |---|---|
//! | `budget` | how often and how long a request is sent, and the pauses in between |
//! | `backoff` | how long a pause is |
//! | `repeat` | requests that may be applied repeatedly |
//! | `get` | reading items by their keys |
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
pub(crate) use write::{Outcome, Reconciled, Sending, Write, with_token, write};
