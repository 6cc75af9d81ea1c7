//! Serves connections: rejects invalid lines ([`framing`]), records progress ([`stream`]), and avoids thread switches
//! ([`wake`]).

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
use crate::registry::ConnectionSlot;
use stream::MonitoredStream;
use wake::run_self_waking;

/// Serves a connection in its own task until either side closes it.
pub(crate) fn spawn<S, H>(stream: S, slot: ConnectionSlot, responder: Arc<Responder<H>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let entry = Arc::clone(&slot.entry);
    let task = tokio::spawn(serve(stream, slot, responder));
    entry.set_task(task.abort_handle());
}

async fn serve<S, H>(stream: S, slot: ConnectionSlot, responder: Arc<Responder<H>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let exchange = Arc::new(Exchange {
        responder,
        registry: Arc::clone(&slot.registry),
        entry: Arc::clone(&slot.entry),
    });
    let service = service_fn(move |request| {
        let exchange = Arc::clone(&exchange);
        async move { exchange.respond(request).await }
    });
    let connection = http1::Builder::new()
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(READ_BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(MonitoredStream::new(stream, slot)), service);
    // Errors are ignored: all responses were sent, and only the client could act on them.
    drop(run_self_waking(connection).await);
}
