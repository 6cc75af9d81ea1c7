//! The transaction of a request, as an argument of a handler.

use std::convert::Infallible;
use std::fmt;
use std::ops::Deref;

use ::http::StatusCode;
use ::http::request::Parts;
use axum_core::extract::{FromRequestParts, OptionalFromRequestParts};
use axum_core::response::{IntoResponse, Response};

use super::respond;
use crate::tx::Tx;

/// The transaction in which a handler runs. Clones refer to the same transaction, as do those in other arguments of the
/// handler and in layers inside of the [`TransactionLayer`](super::TransactionLayer).
#[derive(Debug)]
pub struct RequestTx(Tx);

impl RequestTx {
    pub(super) fn new(tx: &Tx) -> Self {
        Self(tx.share())
    }
}

impl Clone for RequestTx {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Deref for RequestTx {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.0
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestTx {
    type Rejection = MissingLayer;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingLayer> {
        parts.extensions.get().cloned().ok_or(MissingLayer)
    }
}

/// For handlers that also work without a transaction.
impl<S: Send + Sync> OptionalFromRequestParts<S> for RequestTx {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(parts.extensions.get().cloned())
    }
}

/// The rejection of a handler that takes a transaction without a [`TransactionLayer`](super::TransactionLayer) around
/// it. Add the layer to the router after the route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingLayer;

impl fmt::Display for MissingLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the route has no transaction: add a TransactionLayer to its router")
    }
}

impl std::error::Error for MissingLayer {}

impl IntoResponse for MissingLayer {
    fn into_response(self) -> Response {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        respond::json(status, "missing_layer", &self.to_string(), None)
    }
}
