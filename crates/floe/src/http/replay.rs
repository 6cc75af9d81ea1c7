//! A request that can be given to a handler again: its body is in memory.

use ::http::request::Parts;
use axum_core::body::Body;
use axum_core::extract::{DefaultBodyLimit, FromRequest, Request};
use axum_core::response::Response;
use bytes::Bytes;

use super::extract::RequestTx;
use super::respond;
use crate::tx::Tx;

/// A request whose body has been read.
pub(super) struct Replay {
    pub(super) parts: Parts,
    body: Bytes,
}

impl Replay {
    /// Reads the body. A request whose body is too large or cannot be read is answered at once.
    pub(super) async fn read(request: Request, bytes_max: usize) -> Result<Self, Box<Response>> {
        let (parts, body) = request.into_parts();
        // In a request of its own, so that the limit is ours and not one of the handler's.
        let mut carrier = Request::new(body);
        DefaultBodyLimit::max(bytes_max).apply(&mut carrier);
        match Bytes::from_request(carrier, &()).await {
            Ok(body) => Ok(Self { parts, body }),
            Err(unread) => Err(Box::new(respond::unread_body(unread.status(), bytes_max))),
        }
    }

    /// The request for one run of the handler, with the transaction of that run.
    pub(super) fn request(&self, tx: &Tx) -> Request {
        let mut parts = self.parts.clone();
        parts.extensions.insert(RequestTx::new(tx));
        Request::from_parts(parts, Body::from(self.body.clone()))
    }
}
