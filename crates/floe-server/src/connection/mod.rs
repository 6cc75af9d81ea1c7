//! Serves connections: which lines are refused ([`framing`]), what moves is noted ([`stream`]), and one is served without
//! switching threads ([`wake`]).

mod framing;
mod stream;
#[cfg(test)]
mod tests;
mod wake;

use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::http::{Exchange, Handler, Responder};
use crate::limits::{HEAD_BYTES_MAX, READ_BUFFER_BYTES_MAX};
use crate::registry::Place;
use stream::Watched;
use wake::going_on;

/// Serves a connection in a task of its own, until either side has enough of it.
pub(crate) fn spawn<S, H>(stream: S, place: Place, responder: Arc<Responder<H>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let entry = Arc::clone(&place.entry);
    let task = tokio::spawn(serve(stream, place, responder));
    entry.set_task(task.abort_handle());
}

async fn serve<S, H>(stream: S, place: Place, responder: Arc<Responder<H>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let exchange = Arc::new(Exchange {
        responder,
        registry: Arc::clone(&place.registry),
        entry: Arc::clone(&place.entry),
    });
    let service = service_fn(move |request| {
        let exchange = Arc::clone(&exchange);
        async move { exchange.respond(request).await }
    });
    let connection = http1::Builder::new()
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(READ_BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(Watched::new(stream, place)), service);
    // How a connection ends is the affair of its client, which has all its answers.
    drop(going_on(connection).await);
}
