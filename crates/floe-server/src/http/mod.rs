//! HTTP: what becomes of one request, in the order in which DynamoDB looks at it.
//!
//! 1. [`Guard`]: whether a web page is behind it that has no business here. This one is ours.
//! 2. [`body`]: whether it is too large.
//! 3. The method and the type of the content.
//! 4. Whether it is JSON, and whether there is such an operation ([`Handler::refuse`]).
//! 5. [`sigv4`](crate::sigv4): who calls.
//! 6. Whether a compressed body can be read ([`encoding`]).
//! 7. The call itself ([`Handler::call`]).

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

use crate::answer::Answer;
use crate::guard::Guard;
use crate::limits::{BESIDE_BYTES_MIN, COMPRESSED_BYTES_MIN};
use crate::memory::{NoRoom, Taken};
use crate::options::Options;
use crate::registry::{Entry, Phase, Registry};
use crate::service::Service;
use crate::sigv4::{self, Keys};
use body::{Body, Fault};
use encoding::Encoding;
use response::{AnswerBody, ContentType, Reply};

const TARGET: HeaderName = HeaderName::from_static("x-amz-target");

/// Who answers the calls: [`Service`], or something else in tests.
pub trait Handler: Send + Sync + 'static {
    /// Answers a call.
    fn call(&self, target: &str, body: &[u8]) -> impl Future<Output = Answer> + Send;

    /// What is wrong with a call before it matters who calls: it is not JSON, or there is no such operation.
    /// Asked only for calls of strangers.
    fn refuse(&self, target: &str, body: &[u8]) -> Option<Answer>;

    /// Whether a call may take as long as hundreds of others. Few of these are answered at a time, so that the
    /// others do not have to wait for all of them.
    fn is_long(&self, _target: &str) -> bool {
        false
    }

    /// The figures that are served, in the text format of Prometheus; `None` if there are none.
    fn metrics(&self, _connections: usize) -> Option<String> {
        None
    }

    /// Whether writes are accepted at present, for health checks.
    fn health(&self) -> Health {
        Health::Ready
    }
}

impl Handler for Service {
    async fn call(&self, target: &str, body: &[u8]) -> Answer {
        Self::call(self, target, body).await
    }

    fn refuse(&self, target: &str, body: &[u8]) -> Option<Answer> {
        crate::wire::refuse(target, body)
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

/// What answers requests, shared by all connections.
pub(crate) struct Responder<H> {
    handler: H,
    guard: Guard,
    /// None: everybody is let in.
    keys: Option<Keys>,
    /// The region that a signature must be for.
    region: Option<String>,
    env: Env,
    healthy: Bytes,
    /// Turns on the threads beside those that serve connections.
    beside: Semaphore,
    /// Turns of calls that may take long.
    long: Semaphore,
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
            beside: Semaphore::new((cores / 2).max(1)),
            long: Semaphore::new(cores),
        }
    }

    /// Answers DynamoDB's own health check.
    fn health_page(&self) -> Reply {
        match self.handler.health() {
            Health::Ready | Health::ReadOnly => Reply::healthy(self.healthy.clone()),
            refused => Reply::health(&refused),
        }
    }

    /// Answers what is asked of the service.
    async fn post(&self, head: &Request<()>, body: Body, exchange: &Exchange<H>) -> Reply {
        let Some(content_type) = ContentType::of(head.headers(), body.is_empty()) else {
            return Reply::unknown_page();
        };
        let target = text(head.headers(), &TARGET);
        let checked = self.run(body.len(), || self.check(head, &body)).await;
        if let Err(refusal) = checked {
            let refuse = || self.handler.refuse(target, &body);
            let earlier = self.run(body.len(), refuse).await;
            return Reply::json(earlier.unwrap_or_else(|| refusal.answer()), content_type);
        }
        let body = match body.decoded(head.headers(), exchange).await {
            Ok(body) => body,
            Err(Fault::Undecoded) => return Reply::undecoded(content_type),
            // The whole body is there, so the client matters no more.
            Err(fault) => return faulty(fault).unwrap_or_else(|_| Reply::malformed()),
        };
        match self.call(target, &body, &exchange.registry).await {
            Ok(answer) => self.encoded(head, answer, content_type).await,
            Err(NoRoom) => Reply::unavailable(),
        }
    }

    /// The answer as the client wants it: compressed, if it has asked for that and the answer is long enough.
    async fn encoded(&self, head: &Request<()>, answer: Answer, kind: ContentType) -> Reply {
        let is_long = answer.body.len() >= COMPRESSED_BYTES_MIN;
        let wanted = is_long.then(|| Encoding::wanted(head.headers()));
        let Some(encoding) = wanted.flatten() else {
            return Reply::json(answer, kind);
        };
        let compress = || encoding.compress(&answer.body);
        let body = self.run(answer.body.len(), compress).await;
        Reply::json(Answer { body, ..answer }, kind).with_encoding(encoding)
    }

    /// Finds out who calls.
    fn check(&self, head: &Request<()>, body: &[u8]) -> Result<(), sigv4::Refusal> {
        let claim = sigv4::claim(head)?;
        match &self.keys {
            None => Ok(()),
            Some(keys) => keys.verify(&claim, head, body, self.region.as_deref(), self.env.now()),
        }
    }

    async fn call(&self, target: &str, body: &[u8], registry: &Registry) -> Result<Answer, NoRoom> {
        let turn = match self.handler.is_long(target) {
            true => self.turn().await,
            false => None,
        };
        // Last, so that there is still room when the answer is there. Small answers are not kept from going out by
        // large ones that nobody takes; only many that are not so small are.
        let times = if turn.is_some() { 1 } else { 2 };
        let deadline = registry.limits().memory_deadline;
        registry.answers.room(times, deadline).await?;
        let mut call = pin!(self.handler.call(target, body));
        // The first step reads the whole body; what comes later waits for the engine.
        let first = self.run_with(body.len(), |cx| call.as_mut().poll(cx)).await;
        match first {
            Poll::Ready(answer) => Ok(answer),
            Poll::Pending => Ok(call.await),
        }
    }

    /// A turn for a call that may take long.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(turn) = self.long.try_acquire() {
            return Some(turn);
        }
        let turn = self.long.acquire().await.ok();
        // Those who came meanwhile, and have little to ask, go first.
        tokio::task::yield_now().await;
        turn
    }

    async fn run<T>(&self, size: usize, work: impl FnOnce() -> T) -> T {
        self.run_with(size, |_| work()).await
    }

    /// Does a piece of work on so many bytes: here if they are few, beside the threads that serve connections if
    /// they are many, so that small calls do not have to wait for it.
    async fn run_with<T>(
        &self,
        size: usize,
        work: impl FnOnce(&mut std::task::Context<'_>) -> T,
    ) -> T {
        let is_beside = size >= BESIDE_BYTES_MIN
            && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
        let _turn = match is_beside {
            true => self.beside.acquire().await.ok(),
            false => None,
        };
        let mut work = Some(work);
        poll_fn(|cx| match work.take() {
            Some(work) if is_beside => Poll::Ready(tokio::task::block_in_place(|| work(cx))),
            Some(work) => Poll::Ready(work(cx)),
            None => Poll::Pending,
        })
        .await
    }
}

/// A connection's way to its answers.
pub(crate) struct Exchange<H> {
    pub(crate) responder: Arc<Responder<H>>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) entry: Arc<Entry>,
}

impl<H: Handler> Exchange<H> {
    /// Answers a request. Fails if there is nobody left to answer.
    pub(crate) async fn respond(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<AnswerBody>, io::Error> {
        let (parts, incoming) = request.into_parts();
        let mut head = Request::from_parts(parts, ());
        let mut reply = self.reply(&head, incoming).await?;
        reply.closes |= self.registry.is_draining();
        self.enter(Phase::Answering)?;
        let headers = std::mem::take(head.headers_mut());
        Ok(reply.into_response(headers, self))
    }

    async fn reply(&self, head: &Request<()>, incoming: Incoming) -> Result<Reply, io::Error> {
        self.enter(Phase::Body)?;
        let responder = &*self.responder;
        let origin = match responder.guard.check(head) {
            Ok(origin) => origin,
            Err(refused) => {
                return match body::discard(incoming).await {
                    Ok(()) => Ok(Reply::forbidden(&refused)),
                    Err(fault) => faulty(fault),
                };
            }
        };
        let body = match body::read(incoming, head.headers(), self).await {
            Ok(body) => body,
            Err(fault) => return Ok(faulty(fault)?.with_origin(origin)),
        };
        self.enter(Phase::Serving)?;
        let reply = self.answer(head, body, origin.is_some()).await;
        Ok(reply.with_origin(origin))
    }

    async fn answer(&self, head: &Request<()>, body: Body, is_cross_origin: bool) -> Reply {
        match *head.method() {
            Method::OPTIONS if is_cross_origin => Reply::preflight(head.headers()),
            Method::GET if head.uri().path() == "/" => self.responder.health_page(),
            Method::GET if head.uri().path() == "/healthz" => {
                Reply::health(&self.responder.handler.health())
            }
            Method::GET if head.uri().path() == "/metrics" => {
                let figures = self.responder.handler.metrics(self.registry.count());
                figures.map_or_else(Reply::unknown_page, Reply::metrics)
            }
            Method::POST if head.uri().path() == "/" => self.responder.post(head, body, self).await,
            _ => Reply::unknown_page(),
        }
    }

    /// Takes memory for a body.
    async fn take(&self, size: usize) -> Result<Taken, NoRoom> {
        let deadline = self.registry.limits().memory_deadline;
        let taken = self.registry.bodies.take(size, deadline).await?;
        self.entry.holds(taken.bytes());
        Ok(taken)
    }

    /// Begins a phase, unless the connection was cut off.
    fn enter(&self, phase: Phase) -> Result<(), io::Error> {
        match self.entry.enter(phase, self.registry.now()) {
            true => Ok(()),
            false => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

/// The answer to a request whose body cannot be had. Fails if the client has gone.
fn faulty(fault: Fault) -> Result<Reply, io::Error> {
    match fault {
        Fault::Gone(error) => Err(error),
        Fault::Malformed | Fault::Undecoded => Ok(Reply::malformed()),
        Fault::TooLarge => Ok(Reply::too_large()),
        Fault::NoRoom => Ok(Reply::unavailable()),
    }
}

/// The text of a header; empty if it is not there or no text.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    let value = headers.get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}
