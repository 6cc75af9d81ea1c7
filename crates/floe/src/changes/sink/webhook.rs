//! Webhooks: the envelope of each change is posted to a server as JSON.
//!
//! | header | value |
//! |---|---|
//! | `Content-Type` | `application/json` |
//! | `Idempotency-Key` | the id of the change, the same on repeated delivery |
//! | `X-Floe-Signature` | `sha256=` and the HMAC-SHA-256 of the body in hex, if there is a [secret](Webhook::secret) |
//!
//! A 2xx response accepts the change. Transient failures are retried by the consumer or receiver: no connection, no
//! response in time, 5xx, 408, and 429, after `Retry-After` if present. Any other status is a permanent failure;
//! redirects are not followed.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use floe_store::{BoxFuture, hex};
use hmac::{Hmac, KeyInit, Mac};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use sha2::Sha256;

use super::Sink;
use crate::changes::envelope::Envelope;
use crate::changes::handler::{Failure, HandlerResult};
use crate::concurrent;
use crate::db::{Timer, TokioTimer};
use crate::error::{Error, ErrorKind, Result};
use crate::https::connector;

/// Default timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum bytes read of a response body, so that its connection can be reused.
const RESPONSE_BYTES_MAX: usize = 64 << 10;

const SIGNATURE: HeaderName = HeaderName::from_static("x-floe-signature");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A sink that posts to a server.
///
/// ```
/// use floe::changes::sink::Webhook;
/// use floe::changes::{Pattern, Router};
///
/// let webhook = Webhook::new("https://hooks.example.com/changes")?.secret("s3cret");
/// let router = Router::new().forward(Pattern::any().pk_type("lyr"), webhook);
/// # Ok::<(), floe::Error>(())
/// ```
#[derive(Clone)]
pub struct Webhook {
    uri: Uri,
    secret: Option<Arc<[u8]>>,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: Duration,
    timer: Arc<dyn Timer>,
    client: Client<HttpsConnector<HttpConnector>, String>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("uri", &self.uri)
            .finish_non_exhaustive()
    }
}

impl Webhook {
    /// Posts to this URL.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if it is not an `http` or `https` URL, or the certificates of this
    /// machine cannot be read.
    pub fn new(url: &str) -> Result<Self> {
        let invalid = |reason: &dyn fmt::Display| {
            let message = format!("invalid webhook url, {reason}: url={url}");
            Error::new(ErrorKind::InvalidUse, message)
        };
        let uri: Uri = url.parse().map_err(|error| invalid(&error))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(invalid(&"it must start with http:// or https://"));
        }
        let connector = connector(uri.scheme_str() == Some("https"));
        let connector = connector.map_err(|error| invalid(&error))?;
        Ok(Self {
            uri,
            secret: None,
            headers: Vec::new(),
            timeout: TIMEOUT,
            timer: Arc::new(TokioTimer),
            client: Client::builder(TokioExecutor::new()).build(connector),
        })
    }

    setters! {
        /// Signs each body with this secret, so that the server can verify the sender.
        pub fn secret(secret: impl AsRef<[u8]>) => secret = Some(secret.as_ref().into());
    }

    /// Adds a header to each request.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if it is not a valid header.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self> {
        let invalid = || {
            let message = format!("invalid header: name={name}");
            Error::new(ErrorKind::InvalidUse, message)
        };
        let name = name.parse().map_err(|_| invalid())?;
        let value = value.parse().map_err(|_| invalid())?;
        self.headers.push((name, value));
        Ok(self)
    }

    setters! {
        /// Time limit of a request. Default: 30 seconds.
        pub const fn timeout(timeout: Duration) => timeout = timeout;

        /// Sets the timer of the time limit.
        pub fn timer(timer: Arc<dyn Timer>) => timer = timer;
    }

    fn request(&self, envelope: &Envelope) -> Result<Request<String>, Failure> {
        let body = envelope.text();
        let mut request = Request::post(self.uri.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, "floe")
            .header(IDEMPOTENCY_KEY, envelope.change().event_id());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(secret) = &self.secret {
            request = request.header(SIGNATURE, signature(secret, body.as_bytes()));
        }
        request.body(body).map_err(Failure::permanent)
    }

    async fn post(&self, envelope: &Envelope) -> HandlerResult {
        let request = self.request(envelope)?;
        let response = async {
            let response = self.client.request(request).await;
            let response = response.map_err(|error| Failure::new(error_chain(&error)))?;
            let outcome = classify(&response);
            drain(response.into_body()).await;
            outcome
        };
        let timeout = self.timer.sleep(self.timeout);
        match concurrent::run_until(pin!(timeout), response).await {
            Some(outcome) => outcome,
            None => {
                let millis = self.timeout.as_millis();
                Err(Failure::new(format!(
                    "the server did not respond in time: timeout_ms={millis}"
                )))
            }
        }
    }
}

/// Classifies a response.
fn classify(response: &Response<Incoming>) -> HandlerResult {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let message = format!("the server rejected the change: status={}", status.as_u16());
    let transient = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    if !status.is_server_error() && !transient.contains(&status) {
        return Err(Failure::permanent(message));
    }
    let seconds = response.headers().get(RETRY_AFTER);
    let seconds = seconds.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let failure = Failure::new(message);
    Err(match seconds {
        Some(seconds) => failure.retry_after(Duration::from_secs(seconds)),
        None => failure,
    })
}

/// Reads the rest of a response body, up to a limit.
async fn drain(mut body: Incoming) {
    let mut bytes = 0;
    while bytes < RESPONSE_BYTES_MAX {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        match frame {
            Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, |data| data.len()),
            Some(Err(_)) | None => return,
        }
    }
}

/// The message of an error with its sources.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// The value of the signature header.
fn signature(secret: &[u8], body: &[u8]) -> String {
    let mut text = "sha256=".to_owned();
    // HMAC accepts keys of any length.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) {
        mac.update(body);
        text += &hex::encode(&mac.finalize().into_bytes());
    }
    text
}

impl Sink for Webhook {
    fn send(&self, envelope: Envelope) -> BoxFuture<'_, HandlerResult> {
        Box::pin(async move { self.post(&envelope).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 2 of RFC 4231.
    #[test]
    fn signature_matches_rfc_4231() {
        assert_eq!(
            signature(b"Jefe", b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn invalid_urls_and_headers_are_rejected() {
        for (url, reason) in [
            ("", "empty string"),
            ("example.com", "it must start with http:// or https://"),
            (
                "ftp://example.com",
                "it must start with http:// or https://",
            ),
        ] {
            let error = Webhook::new(url).unwrap_err().to_string();
            assert_eq!(error, format!("invalid webhook url, {reason}: url={url}"));
        }
        let webhook = Webhook::new("http://example.com").unwrap();
        let error = webhook.header("a b", "c").unwrap_err();
        assert_eq!(error.to_string(), "invalid header: name=a b");
    }
}
