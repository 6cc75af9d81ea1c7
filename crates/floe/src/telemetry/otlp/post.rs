//! The HTTP client of the export, with its own runtime.
//!
//! The SDK exports from threads without a runtime. So each exporter has a single-threaded one, which runs on the thread of
//! the export while it waits for a response. Connections are not kept: between two exports nothing polls them, and a
//! connection closed by the collector would go unnoticed.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response, ResponseBodyTooLarge};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::https::connector;

/// Maximum size of a response.
const RESPONSE_BYTES_MAX: usize = 4 << 20;

/// An HTTP client for threads without a runtime.
pub(super) struct Poster {
    /// `Some` until the poster is dropped.
    runtime: Option<Runtime>,
    client: Client<HttpsConnector<HttpConnector>, FullBody>,
    timeout: Duration,
}

impl Poster {
    pub(super) fn new(timeout: Duration) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        // The URL is known with the first request only. A machine without root certificates can still use plain HTTP.
        let connector = connector(true).or_else(|_| connector(false))?;
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(connector);
        Ok(Self {
            runtime: Some(runtime),
            client,
            timeout,
        })
    }

    fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = self.runtime.as_ref();
        let runtime = runtime.filter(|_| Handle::try_current().is_err());
        let runtime = runtime.ok_or("an export must run on a thread without a runtime")?;
        let exchange = async {
            let response = self
                .client
                .request(request.map(|body| FullBody(Some(body))));
            let (head, body) = response.await?.into_parts();
            Ok(Response::from_parts(head, read(body).await?))
        };
        runtime.block_on(async { tokio::time::timeout(self.timeout, exchange).await? })
    }
}

async fn read(mut body: Incoming) -> Result<Bytes, HttpError> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame?;
        let data = frame.data_ref().map_or(&[][..], |data| data);
        if bytes.len() + data.len() > RESPONSE_BYTES_MAX {
            return Err(ResponseBodyTooLarge::new().into());
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes.into())
}

/// Desugared by hand, as `async_trait` expands it.
impl HttpClient for Poster {
    fn send_bytes<'s, 'f>(
        &'s self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move { self.post(request) })
    }
}

impl fmt::Debug for Poster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poster").finish_non_exhaustive()
    }
}

impl Drop for Poster {
    fn drop(&mut self) {
        // Dropping a runtime blocks, which is not allowed in async code.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A body in one frame.
struct FullBody(Option<Bytes>);

impl Body for FullBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|body| Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |body| body.len() as u64))
    }
}
