//! Handles one HTTP request, with the checks in DynamoDB's order:
//!
//! 1. [`Guard`]: the request does not come from a web page. This check is not DynamoDB's.
//! 2. [`body`]: the size of the body.
//! 3. The method and the content type.
//! 4. The body is JSON, and the operation exists ([`Handler::precheck`]).
//! 5. [`sigv4`](crate::sigv4): the signature.
//! 6. The compression of the body ([`encoding`]).
//! 7. The call ([`Handler::call`]).

mod body;
mod encoding;
mod gzip;
mod response;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use floe_store::{Env, Health};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, Request, Response};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::api_response::ApiResponse;
use crate::guard::Guard;
use crate::limits::{BLOCKING_BYTES_MIN, COMPRESSED_BYTES_MIN};
use crate::memory::{BudgetExhausted, Reservation};
use crate::options::Options;
use crate::registry::{Entry, Phase, Registry};
use crate::service::Service;
use crate::sigv4::{self, Keys};
use body::{Body, BodyError};
use encoding::Encoding;
use response::{ContentType, Reply, ResponseBody};

const TARGET: HeaderName = HeaderName::from_static("x-amz-target");

/// Executes API calls: [`Service`], or a substitute in tests.
pub trait Handler: Send + Sync + 'static {
    /// Executes a call.
    fn call(&self, target: &str, body: &[u8]) -> impl Future<Output = ApiResponse> + Send;

    /// Returns the error of a call that is rejected before its signature matters: the body is not JSON, or the
    /// operation does not exist. Called only if the signature check failed.
    fn precheck(&self, target: &str, body: &[u8]) -> Option<ApiResponse>;

    /// Whether a call may take as long as hundreds of others. The number of such calls in progress is limited, so that
    /// short calls do not wait for them.
    fn is_long(&self, _target: &str) -> bool {
        false
    }

    /// Returns the metrics in the Prometheus text format; `None` if there are none.
    fn metrics(&self, _connections: usize) -> Option<String> {
        None
    }

    /// Returns whether writes are currently accepted, for health checks.
    fn health(&self) -> Health {
        Health::Ready
    }
}

impl Handler for Service {
    async fn call(&self, target: &str, body: &[u8]) -> ApiResponse {
        Self::call(self, target, body).await
    }

    fn precheck(&self, target: &str, body: &[u8]) -> Option<ApiResponse> {
        crate::wire::precheck(target, body)
    }

    fn is_long(&self, target: &str) -> bool {
        crate::wire::is_long(target)
    }

    fn metrics(&self, connections: usize) -> Option<String> {
        Self::metrics(self, connections)
    }

    fn health(&self) -> Health {
        Self::health(self)
    }
}

/// Responds to requests. Shared by all connections.
pub(crate) struct Responder<H> {
    handler: H,
    guard: Guard,
    /// The accepted keys; `None` accepts any credentials.
    keys: Option<Keys>,
    /// The region that signatures must have.
    region: Option<String>,
    env: Env,
    healthy: Bytes,
    /// Permits for work in a blocking section.
    blocking: Semaphore,
    /// Permits for long calls.
    long_calls: Semaphore,
}

impl<H: Handler> Responder<H> {
    pub(crate) fn new(options: &Options, handler: H) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let healthy = format!("healthy: dynamodb.{}.amazonaws.com ", options.region_name());
        Self {
            handler,
            guard: Guard::new(options),
            keys: options.keys.clone(),
            region: options.region.clone(),
            env: options.env.clone(),
            healthy: healthy.into(),
            blocking: Semaphore::new((cores / 2).max(1)),
            long_calls: Semaphore::new(cores),
        }
    }

    /// Responds to DynamoDB's own health check.
    fn health_page(&self) -> Reply {
        match self.handler.health() {
            Health::Ready | Health::ReadOnly => Reply::healthy(self.healthy.clone()),
            unhealthy => Reply::health(&unhealthy),
        }
    }

    /// Responds to an API call.
    async fn post(&self, head: &Request<()>, body: Body, exchange: &Exchange<H>) -> Reply {
        let Some(content_type) = ContentType::of(head.headers(), body.is_empty()) else {
            return Reply::unknown_page();
        };
        let target = text(head.headers(), &TARGET);
        let checked = self.run(body.len(), || self.check(head, &body)).await;
        if let Err(error) = checked {
            let precheck = || self.handler.precheck(target, &body);
            let earlier = self.run(body.len(), precheck).await;
            return Reply::json(earlier.unwrap_or_else(|| error.response()), content_type);
        }
        let body = match body.decoded(head.headers(), exchange).await {
            Ok(body) => body,
            Err(BodyError::BadEncoding) => return Reply::bad_encoding(content_type),
            // The body is complete, so the client is not involved.
            Err(error) => return error_reply(error).unwrap_or_else(|_| Reply::malformed()),
        };
        match self.call(target, &body, &exchange.registry).await {
            Ok(response) => self.compressed(head, response, content_type).await,
            Err(BudgetExhausted) => Reply::unavailable(),
        }
    }

    /// Returns the response, compressed if the client accepts it and the response is large enough.
    async fn compressed(
        &self,
        head: &Request<()>,
        response: ApiResponse,
        kind: ContentType,
    ) -> Reply {
        let is_long = response.body.len() >= COMPRESSED_BYTES_MIN;
        let wanted = is_long.then(|| Encoding::negotiate(head.headers()));
        let Some(encoding) = wanted.flatten() else {
            return Reply::json(response, kind);
        };
        let compress = || encoding.compress(&response.body);
        let body = self.run(response.body.len(), compress).await;
        Reply::json(ApiResponse { body, ..response }, kind).with_encoding(encoding)
    }

    /// Checks the signature.
    fn check(&self, head: &Request<()>, body: &[u8]) -> Result<(), sigv4::SignatureError> {
        let claim = sigv4::claim(head)?;
        match &self.keys {
            None => Ok(()),
            Some(keys) => keys.verify(&claim, head, body, self.region.as_deref(), self.env.now()),
        }
    }

    async fn call(
        &self,
        target: &str,
        body: &[u8],
        registry: &Registry,
    ) -> Result<ApiResponse, BudgetExhausted> {
        let permit = if self.handler.is_long(target) {
            self.long_call_permit().await
        } else {
            None
        };
        // Checked last, so that there is still room when the call is done. Up to twice the budget, small responses are
        // not blocked by large ones that clients do not read.
        let times = if permit.is_some() { 1 } else { 2 };
        let deadline = registry.limits().memory_deadline;
        registry.responses.wait_for_room(times, deadline).await?;
        let mut call = pin!(self.handler.call(target, body));
        // The first poll parses the whole body; later ones wait for the engine.
        let first = self.run_with(body.len(), |cx| call.as_mut().poll(cx)).await;
        match first {
            Poll::Ready(response) => Ok(response),
            Poll::Pending => Ok(call.await),
        }
    }

    /// Acquires a permit for a long call.
    async fn long_call_permit(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(permit) = self.long_calls.try_acquire() {
            return Some(permit);
        }
        let permit = self.long_calls.acquire().await.ok();
        // Lets short calls that arrived meanwhile run first.
        tokio::task::yield_now().await;
        permit
    }

    async fn run<T>(&self, size: usize, work: impl FnOnce() -> T) -> T {
        self.run_with(size, |_| work()).await
    }

    /// Runs work on this many bytes: directly if they are few; otherwise in a blocking section, so that small calls do
    /// not wait for it.
    async fn run_with<T>(
        &self,
        size: usize,
        work: impl FnOnce(&mut std::task::Context<'_>) -> T,
    ) -> T {
        let is_blocking = size >= BLOCKING_BYTES_MIN
            && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
        let _permit = if is_blocking {
            self.blocking.acquire().await.ok()
        } else {
            None
        };
        let mut work = Some(work);
        poll_fn(|cx| match work.take() {
            Some(work) if is_blocking => Poll::Ready(tokio::task::block_in_place(|| work(cx))),
            Some(work) => Poll::Ready(work(cx)),
            None => Poll::Pending,
        })
        .await
    }
}

/// The context in which a connection's requests are handled.
pub(crate) struct Exchange<H> {
    pub(crate) responder: Arc<Responder<H>>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) entry: Arc<Entry>,
}

impl<H: Handler> Exchange<H> {
    /// Handles a request. Fails if the connection was closed.
    pub(crate) async fn respond(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, io::Error> {
        let (parts, incoming) = request.into_parts();
        let mut head = Request::from_parts(parts, ());
        let mut reply = self.reply(&head, incoming).await?;
        reply.closes |= self.registry.is_draining();
        self.begin(Phase::Responding)?;
        let headers = std::mem::take(head.headers_mut());
        Ok(reply.into_response(headers, self))
    }

    async fn reply(&self, head: &Request<()>, incoming: Incoming) -> Result<Reply, io::Error> {
        self.begin(Phase::Body)?;
        let responder = &*self.responder;
        let origin = match responder.guard.check(head) {
            Ok(origin) => origin,
            Err(rejection) => {
                return match body::discard(incoming).await {
                    Ok(()) => Ok(Reply::forbidden(&rejection)),
                    Err(error) => error_reply(error),
                };
            }
        };
        let body = match body::read(incoming, head.headers(), self).await {
            Ok(body) => body,
            Err(error) => return Ok(error_reply(error)?.with_origin(origin)),
        };
        self.begin(Phase::Executing)?;
        let reply = self.dispatch(head, body, origin.is_some()).await;
        Ok(reply.with_origin(origin))
    }

    async fn dispatch(&self, head: &Request<()>, body: Body, is_cross_origin: bool) -> Reply {
        match *head.method() {
            Method::OPTIONS if is_cross_origin => Reply::preflight(head.headers()),
            Method::GET if head.uri().path() == "/" => self.responder.health_page(),
            Method::GET if head.uri().path() == "/healthz" => {
                Reply::health(&self.responder.handler.health())
            }
            Method::GET if head.uri().path() == "/metrics" => {
                let metrics = self.responder.handler.metrics(self.registry.count());
                metrics.map_or_else(Reply::unknown_page, Reply::metrics)
            }
            Method::POST if head.uri().path() == "/" => self.responder.post(head, body, self).await,
            _ => Reply::unknown_page(),
        }
    }

    /// Reserves memory for a body.
    async fn reserve(&self, size: usize) -> Result<Reservation, BudgetExhausted> {
        let deadline = self.registry.limits().memory_deadline;
        let reservation = self.registry.bodies.reserve(size, deadline).await?;
        self.entry.set_held_bytes(reservation.bytes());
        Ok(reservation)
    }

    /// Begins a phase. Fails if the connection was closed.
    fn begin(&self, phase: Phase) -> Result<(), io::Error> {
        if self.entry.begin(phase, self.registry.now()) {
            Ok(())
        } else {
            Err(io::ErrorKind::ConnectionAborted.into())
        }
    }
}

/// Returns the response to a request whose body cannot be read. Fails if the client has disconnected.
fn error_reply(error: BodyError) -> Result<Reply, io::Error> {
    match error {
        BodyError::Disconnected(error) => Err(error),
        BodyError::Malformed | BodyError::BadEncoding => Ok(Reply::malformed()),
        BodyError::TooLarge => Ok(Reply::too_large()),
        BodyError::BudgetExhausted => Ok(Reply::unavailable()),
    }
}

/// Returns the text of a header; empty if it is missing or not text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    let value = headers.get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}
