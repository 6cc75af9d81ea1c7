//! A request that can be passed to a handler repeatedly, with its body in memory.

use ::http::request::Parts;
use axum_core::body::Body;
use axum_core::extract::{DefaultBodyLimit, FromRequest, Request};
use axum_core::response::Response;
use bytes::Bytes;

use super::extract::RequestTx;
use super::respond;
use crate::tx::Tx;

/// A request whose body has been read.
pub(super) struct BufferedRequest {
    pub(super) parts: Parts,
    body: Bytes,
}

impl BufferedRequest {
    /// Reads the body. Returns the error response if the body is too large or cannot be read.
    pub(super) async fn read(request: Request, bytes_max: usize) -> Result<Self, Box<Response>> {
        let (parts, body) = request.into_parts();
        // In a separate request, so that this limit applies and not one that the handler sets.
        let mut carrier = Request::new(body);
        DefaultBodyLimit::max(bytes_max).apply(&mut carrier);
        match Bytes::from_request(carrier, &()).await {
            Ok(body) => Ok(Self { parts, body }),
            Err(rejection) => Err(Box::new(respond::unread_body(
                rejection.status(),
                bytes_max,
            ))),
        }
    }

    /// The request for one attempt of the handler, with the transaction of that attempt.
    pub(super) fn for_attempt(&self, tx: &Tx) -> Request {
        let mut parts = self.parts.clone();
        parts.extensions.insert(RequestTx::new(tx));
        Request::from_parts(parts, Body::from(self.body.clone()))
    }
}
