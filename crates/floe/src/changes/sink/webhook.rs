//! Webhooks: each change's envelope is posted to a server as JSON.
//!
//! | header | what it holds |
//! |---|---|
//! | `Content-Type` | `application/json` |
//! | `Idempotency-Key` | the id of the change, the same each time that it comes |
//! | `X-Floe-Signature` | `sha256=` and the HMAC-SHA-256 of the body in hex, if there is a [secret](Webhook::secret) |
//!
//! Who answers 2xx has it. What may pass is tried again, by whoever runs the router: no answer in time, no connection, 5xx,
//! 408, and 429, after as long as `Retry-After` says. Anything else is a fault of the request, and parked; redirects are
//! not followed.

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
use crate::changes::handler::{Failure, Handled};
use crate::db::{Timer, TokioTimer};
use crate::error::{Error, ErrorKind, Result};
use crate::https::connector;
use crate::side_by_side;

/// How long an answer may take, unless something else is said.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How much of an answer is read, so that its connection can be used again.
const ANSWER_BYTES_MAX: usize = 64 << 10;

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
    /// Posts to this address.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when it is no address of `http` or `https`, or the certificates of this
    /// machine cannot be read.
    pub fn new(url: &str) -> Result<Self> {
        let refused = |reason: &dyn fmt::Display| {
            let message = format!("no address to post to, {reason}: url={url}");
            Error::new(ErrorKind::InvalidUse, message)
        };
        let uri: Uri = url.parse().map_err(|error| refused(&error))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(refused(&"it begins with http:// or https://"));
        }
        let connector = connector(uri.scheme_str() == Some("https"));
        let connector = connector.map_err(|error| refused(&error))?;
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
        /// Signs each body with this secret, so that the server can know who posts.
        pub fn secret(secret: impl AsRef<[u8]>) => secret = Some(secret.as_ref().into());
    }

    /// Sends this header with each request.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when it is none.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self> {
        let refused = || {
            let message = format!("not a header: name={name}");
            Error::new(ErrorKind::InvalidUse, message)
        };
        let name = name.parse().map_err(|_| refused())?;
        let value = value.parse().map_err(|_| refused())?;
        self.headers.push((name, value));
        Ok(self)
    }

    setters! {
        /// How long an answer may take; 30 seconds if nothing is said.
        pub const fn timeout(timeout: Duration) => timeout = timeout;

        /// Waits by this timer.
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

    async fn post(&self, envelope: &Envelope) -> Handled {
        let request = self.request(envelope)?;
        let answer = async {
            let answer = self.client.request(request).await;
            let answer = answer.map_err(|error| Failure::new(explained(&error)))?;
            let outcome = judge(&answer);
            drain(answer.into_body()).await;
            outcome
        };
        let timeout = self.timer.sleep(self.timeout);
        match side_by_side::unless(pin!(timeout), answer).await {
            Some(outcome) => outcome,
            None => {
                let millis = self.timeout.as_millis();
                Err(Failure::new(format!(
                    "the server did not answer in time: timeout_ms={millis}"
                )))
            }
        }
    }
}

/// What a server's answer means.
fn judge(answer: &Response<Incoming>) -> Handled {
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let message = format!("the server refuses: status={}", status.as_u16());
    let passes = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    if !status.is_server_error() && !passes.contains(&status) {
        return Err(Failure::permanent(message));
    }
    let seconds = answer.headers().get(RETRY_AFTER);
    let seconds = seconds.and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let failure = Failure::new(message);
    Err(match seconds {
        Some(seconds) => failure.retry_after(Duration::from_secs(seconds)),
        None => failure,
    })
}

/// Reads the rest of an answer, unless it is long.
async fn drain(mut body: Incoming) {
    let mut bytes = 0;
    while bytes < ANSWER_BYTES_MAX {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        match frame {
            Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, |data| data.len()),
            Some(Err(_)) | None => return,
        }
    }
}

/// What an error says, and what is behind it.
fn explained(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// The header that tells who has made a body.
fn signature(secret: &[u8], body: &[u8]) -> String {
    let mut text = "sha256=".to_owned();
    // A key of any length will do.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) {
        mac.update(body);
        text += &hex::encode(&mac.finalize().into_bytes());
    }
    text
}

impl Sink for Webhook {
    fn send(&self, envelope: Envelope) -> BoxFuture<'_, Handled> {
        Box::pin(async move { self.post(&envelope).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second case of RFC 4231.
    #[test]
    fn bodies_are_signed_as_the_standard_says() {
        assert_eq!(
            signature(b"Jefe", b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for (url, reason) in [
            ("", "empty string"),
            ("example.com", "it begins with http:// or https://"),
            ("ftp://example.com", "it begins with http:// or https://"),
        ] {
            let error = Webhook::new(url).unwrap_err().to_string();
            assert_eq!(error, format!("no address to post to, {reason}: url={url}"));
        }
        let webhook = Webhook::new("http://example.com").unwrap();
        let error = webhook.header("a b", "c").unwrap_err();
        assert_eq!(error.to_string(), "not a header: name=a b");
    }
}
