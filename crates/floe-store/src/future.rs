//! The type of the futures that traits return.

use std::future::Future;
use std::pin::Pin;

/// A future on the heap: what makes [`Engine`](crate::Engine) usable as a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
