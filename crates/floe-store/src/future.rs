//! The type of futures returned by traits.

use std::future::Future;
use std::pin::Pin;

/// A boxed future, which makes [`Engine`](crate::Engine) usable as a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
