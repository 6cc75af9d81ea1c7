//! Client of the AWS Lambda runtime API: four HTTP requests on the loopback interface, version 2018-06-01.

use std::future::poll_fn;
use std::pin::Pin;

use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;

use crate::error::{Error, ErrorKind, Result};

/// The header with the request id of an event.
const REQUEST_ID: &str = "lambda-runtime-aws-request-id";

/// The header with the error type, which Lambda requires besides the body.
const ERROR_TYPE: &str = "lambda-runtime-function-error-type";

/// The client of a runtime API.
#[derive(Clone, Debug)]
pub(super) struct Api {
    address: String,
    pub(super) error_name: &'static str,
}

/// An event that requires a response.
pub(super) struct Invocation {
    pub(super) id: String,
    pub(super) event: Vec<u8>,
}

impl Api {
    pub(super) const fn new(address: String, error_name: &'static str) -> Self {
        Self {
            address,
            error_name,
        }
    }

    /// Waits for the next event.
    pub(super) async fn next(&self) -> Result<Invocation> {
        let request = self.request(Method::GET, "invocation/next", String::new())?;
        let (response, event) = self.send(request).await?;
        let id = response.headers().get(REQUEST_ID);
        let id = id.and_then(|id| id.to_str().ok());
        let id = id.ok_or_else(|| broken("a Lambda event has no request id"))?;
        Ok(Invocation {
            id: id.to_owned(),
            event,
        })
    }

    /// Sends the response to an event.
    pub(super) async fn respond(&self, id: &str, response: String) -> Result<()> {
        let path = format!("invocation/{id}/response");
        let request = self.request(Method::POST, &path, response)?;
        self.send(request).await.map(drop)
    }

    /// Reports that an event failed.
    pub(super) async fn fail(&self, id: &str, message: &str) -> Result<()> {
        self.report_error(&format!("invocation/{id}/error"), message)
            .await
    }

    /// Reports that no event can be handled.
    pub(super) async fn fail_init(&self, message: &str) -> Result<()> {
        self.report_error("init/error", message).await
    }

    async fn report_error(&self, path: &str, message: &str) -> Result<()> {
        let name = self.error_name;
        let body = json!({"errorMessage": message, "errorType": name, "stackTrace": []});
        let mut request = self.request(Method::POST, path, body.to_string())?;
        let name = HeaderValue::from_str(name);
        let name = name.map_err(|_| broken("the error name is not a valid header value"))?;
        request.headers_mut().insert(ERROR_TYPE, name);
        self.send(request).await.map(drop)
    }

    fn request(&self, method: Method, path: &str, body: String) -> Result<Request<String>> {
        Request::builder()
            .method(method)
            .uri(format!("/2018-06-01/runtime/{path}"))
            .header(HOST, &self.address)
            .body(body)
            .map_err(|error| broken(error.to_string()))
    }

    /// Sends a request on a new connection: the process may be frozen for hours between events.
    async fn send(&self, request: Request<String>) -> Result<(Response<()>, Vec<u8>)> {
        let path = request.uri().path().to_owned();
        let failed = |reason: String| {
            broken(format!(
                "Lambda runtime API request failed: {reason}: address={} path={path}",
                self.address
            ))
        };
        let stream = TcpStream::connect(&self.address).await;
        let stream = stream.map_err(|error| failed(error.to_string()))?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| failed(error.to_string()))?;
        let driver = tokio::spawn(connection);
        let exchange = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            Ok::<_, hyper::Error>((Response::from_parts(head, ()), whole(body).await?))
        };
        let exchange = exchange.await;
        driver.abort();
        let (response, body) = exchange.map_err(|error| failed(error.to_string()))?;
        if response.status().is_success() {
            return Ok((response, body));
        }
        Err(failed(format!("status {}", response.status())))
    }
}

/// Reads a complete body.
async fn whole(mut body: Incoming) -> Result<Vec<u8>, hyper::Error> {
    let mut whole = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame?.into_data() {
            whole.extend_from_slice(&data);
        }
    }
    Ok(whole)
}

fn broken(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Store, message)
}
