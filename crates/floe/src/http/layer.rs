//! The layer that runs a service in a transaction.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use ::http::StatusCode;
use ::http::request::Parts;
use axum_core::extract::Request;
use axum_core::response::{IntoResponse, Response};
use floe_store::BoxFuture;
use tower_layer::Layer;
use tower_service::Service;

use super::buffered::BufferedRequest;
use crate::db::Db;
use crate::error::Error;
use crate::tx::{Tx, TxOptions};

/// Default maximum size of a request body: 2 MB, as in axum.
pub const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Runs each request in a transaction: see the [module](super).
#[derive(Clone)]
#[must_use = "a layer does nothing until it is added to a router"]
pub struct TransactionLayer {
    db: Db,
    choose: Arc<Choose>,
    body_bytes_max: usize,
}

type Choose = dyn for<'db> Fn(TxOptions<'db>, &Parts) -> TxOptions<'db> + Send + Sync;

impl TransactionLayer {
    /// A layer that runs transactions on this database.
    pub fn new(db: Db) -> Self {
        Self {
            db,
            choose: Arc::new(|options, _| options),
            body_bytes_max: BODY_BYTES_MAX,
        }
    }

    /// Sets the options of each transaction, optionally depending on the request. Transactions of safe methods are
    /// already read-only.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use floe::{Db, http::TransactionLayer};
    /// # fn layer(db: Db) -> TransactionLayer {
    /// TransactionLayer::new(db).options(|tx, request| {
    ///     let tx = tx.retries(5).deadline(Duration::from_secs(2));
    ///     match request.uri.path() {
    ///         "/search" => tx.read_only().label("search"),
    ///         _ => tx.label("api"),
    ///     }
    /// })
    /// # }
    /// ```
    pub fn options<F>(mut self, choose: F) -> Self
    where
        F: for<'db> Fn(TxOptions<'db>, &Parts) -> TxOptions<'db> + Send + Sync + 'static,
    {
        self.choose = Arc::new(choose);
        self
    }

    /// Maximum size of a request body in bytes. Larger requests get status 413. Default: [2 MB](BODY_BYTES_MAX).
    pub const fn body_bytes_max(mut self, bytes: usize) -> Self {
        self.body_bytes_max = bytes;
        self
    }

    fn transaction(&self, request: &Parts) -> TxOptions<'_> {
        let mut options = self.db.tx();
        if request.method.is_safe() {
            options = options.read_only();
        }
        (self.choose)(options, request)
    }

    async fn run<S>(&self, service: S, request: Request) -> Result<Response, S::Error>
    where
        S: Service<Request, Response = Response> + Clone + Send,
        S::Future: Send,
        S::Error: Send,
    {
        let request = match BufferedRequest::read(request, self.body_bytes_max).await {
            Ok(request) => request,
            Err(response) => return Ok(*response),
        };
        // Services need not be `Sync`, but can be cloned.
        let service = Mutex::new(service);
        let body = async |tx: &Tx| {
            let service = service
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            respond(service, request.for_attempt(tx)).await
        };
        match self.transaction(&request.parts).run(body).await {
            Ok(response) => Ok(response),
            Err(Abort::Response(response)) => Ok(*response),
            Err(Abort::Failed(error)) => Ok(error.into_response()),
            Err(Abort::Service(error)) => Err(error),
        }
    }
}

/// Why the transaction of a request did not commit.
enum Abort<E> {
    /// The handler returned a status of 400 or above.
    Response(Box<Response>),
    /// The service itself failed.
    Service(E),
    /// The transaction failed.
    Failed(Error),
}

impl<E> From<Error> for Abort<E> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Calls a service, once it is ready.
async fn respond<S>(mut service: S, request: Request) -> Result<Response, Abort<S::Error>>
where
    S: Service<Request, Response = Response>,
{
    let ready = poll_fn(|context| service.poll_ready(context)).await;
    ready.map_err(Abort::Service)?;
    let response = service.call(request).await.map_err(Abort::Service)?;
    if response.status() >= StatusCode::BAD_REQUEST {
        return Err(Abort::Response(Box::new(response)));
    }
    Ok(response)
}

impl<S> Layer<S> for TransactionLayer {
    type Service = TransactionService<S>;

    fn layer(&self, inner: S) -> TransactionService<S> {
        TransactionService {
            layer: self.clone(),
            inner,
        }
    }
}

impl fmt::Debug for TransactionLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionLayer")
            .field("body_bytes_max", &self.body_bytes_max)
            .finish_non_exhaustive()
    }
}

/// A service whose requests run in transactions. Created by a [`TransactionLayer`].
///
/// It is always ready: each attempt waits until a clone of the inner service is ready.
#[derive(Clone, Debug)]
pub struct TransactionService<S> {
    layer: TransactionLayer,
    inner: S,
}

impl<S> Service<Request> for TransactionService<S>
where
    S: Service<Request, Response = Response> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
{
    type Response = Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response, S::Error>>;

    // Readiness of the inner service cannot be reserved here, because each attempt uses a new clone.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (layer, service) = (self.layer.clone(), self.inner.clone());
        Box::pin(async move { layer.run(service, request).await })
    }
}
