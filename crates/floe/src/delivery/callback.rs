//! Optional functions set by the caller.

use std::fmt;
use std::sync::Arc;

/// An optional function set by the caller.
pub(crate) struct Callback<F: ?Sized>(pub(crate) Option<Arc<F>>);

impl<F: ?Sized> Clone for Callback<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F: ?Sized> Default for Callback<F> {
    fn default() -> Self {
        Self(None)
    }
}

impl<F: ?Sized> fmt::Debug for Callback<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Callback").field(&self.0.is_some()).finish()
    }
}
