//! The interface between AWS Lambda and a runtime: four requests of HTTP on the loopback, version 2018-06-01.

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

/// The name of an event, in the answer that brings it.
const REQUEST_ID: &str = "lambda-runtime-aws-request-id";

/// Which kind of error it is, as Lambda wants to know it beside the body.
const ERROR_TYPE: &str = "lambda-runtime-function-error-type";

/// Where a runtime asks for events.
#[derive(Clone, Debug)]
pub(super) struct Api {
    address: String,
    pub(super) error_name: &'static str,
}

/// An event to be answered.
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
        let id = id.ok_or_else(|| broken("an event of Lambda came without a name"))?;
        Ok(Invocation {
            id: id.to_owned(),
            event,
        })
    }

    /// Answers an event.
    pub(super) async fn respond(&self, id: &str, answer: String) -> Result<()> {
        let path = format!("invocation/{id}/response");
        let request = self.request(Method::POST, &path, answer)?;
        self.send(request).await.map(drop)
    }

    /// Says that an event could not be answered.
    pub(super) async fn fail(&self, id: &str, message: &str) -> Result<()> {
        self.tell_error(&format!("invocation/{id}/error"), message)
            .await
    }

    /// Says that no event can be answered.
    pub(super) async fn fail_init(&self, message: &str) -> Result<()> {
        self.tell_error("init/error", message).await
    }

    async fn tell_error(&self, path: &str, message: &str) -> Result<()> {
        let name = self.error_name;
        let body = json!({"errorMessage": message, "errorType": name, "stackTrace": []});
        let mut request = self.request(Method::POST, path, body.to_string())?;
        let name = HeaderValue::from_str(name);
        let name = name.map_err(|_| broken("the name of errors cannot be told"))?;
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

    /// Sends a request on a connection of its own: between two events the process may be frozen for hours.
    async fn send(&self, request: Request<String>) -> Result<(Response<()>, Vec<u8>)> {
        let path = request.uri().path().to_owned();
        let failed = |reason: String| {
            broken(format!(
                "Lambda does not answer: {reason}: address={} path={path}",
                self.address
            ))
        };
        let stream = TcpStream::connect(&self.address).await;
        let stream = stream.map_err(|error| failed(error.to_string()))?;
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| failed(error.to_string()))?;
        let carried = tokio::spawn(connection);
        let answered = async {
            let (head, body) = sender.send_request(request).await?.into_parts();
            Ok::<_, hyper::Error>((Response::from_parts(head, ()), whole(body).await?))
        };
        let answered = answered.await;
        carried.abort();
        let (response, body) = answered.map_err(|error| failed(error.to_string()))?;
        if response.status().is_success() {
            return Ok((response, body));
        }
        Err(failed(format!("status {}", response.status())))
    }
}

/// All of a body.
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
