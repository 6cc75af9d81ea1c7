//! HTTP responses: statuses, headers and bodies as in DynamoDB.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use floe_store::{Env, Health};
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::encoding::Encoding;
use super::{Exchange, text};
use crate::api_response::{ApiResponse, coral_error};
use crate::guard::{GuardRejection, Origin};
use crate::limits::{PREFLIGHT_SECONDS, UNCOUNTED_BYTES_MAX};
use crate::memory::Reservation;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
const CRC32: HeaderName = HeaderName::from_static("x-amz-crc32");
const REQUEST_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const PLAIN_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const SERVER: HeaderValue = HeaderValue::from_static("Server");
const EXPOSED: HeaderValue = HeaderValue::from_static("x-amzn-RequestId,x-amz-crc32,Date");

/// The type of a JSON body. The response has the type of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentType {
    /// `application/json`.
    Json,
    /// `application/x-amz-json-1.0`.
    AmzJson,
}

impl ContentType {
    /// Returns the content type of a request; `None` if DynamoDB does not support it. Without a body, any type counts
    /// as `application/json`.
    pub(super) fn of(headers: &HeaderMap, is_empty: bool) -> Option<Self> {
        let value = text(headers, &header::CONTENT_TYPE);
        let name = value.split(';').next().unwrap_or_default().trim();
        match name {
            "application/x-amz-json-1.0" => Some(Self::AmzJson),
            "application/json" => Some(Self::Json),
            _ => is_empty.then_some(Self::Json),
        }
    }

    const fn value(self) -> HeaderValue {
        match self {
            Self::Json => HeaderValue::from_static("application/json"),
            Self::AmzJson => HeaderValue::from_static("application/x-amz-json-1.0"),
        }
    }
}

/// A response before its headers are added.
#[derive(Debug, Default)]
pub(super) struct Reply {
    status: StatusCode,
    body: Bytes,
    content_type: Option<HeaderValue>,
    /// The compression of the body.
    encoding: Option<Encoding>,
    origin: Option<Origin>,
    /// Headers of the response to a preflight request.
    preflight: HeaderMap,
    /// Whether the body is sent in chunks.
    is_chunked: bool,
    /// Whether the connection is closed afterwards.
    pub(super) closes: bool,
}

impl Reply {
    fn new(status: StatusCode, body: Bytes) -> Self {
        Self {
            status,
            body,
            ..Self::default()
        }
    }

    fn of_type(status: StatusCode, body: impl Into<Bytes>, content_type: HeaderValue) -> Self {
        Self {
            content_type: Some(content_type),
            ..Self::new(status, body.into())
        }
    }

    /// The response to an API call.
    pub(super) fn json(response: ApiResponse, content_type: ContentType) -> Self {
        let status = StatusCode::from_u16(response.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::of_type(status, response.body, content_type.value())
    }

    /// An error of the framework in front of DynamoDB, with this status.
    fn error(status: StatusCode, code: &str, message: &str, content_type: ContentType) -> Self {
        Self {
            status,
            ..Self::json(coral_error(code, message), content_type)
        }
    }

    /// The service is healthy.
    pub(super) fn healthy(text: Bytes) -> Self {
        Self::new(StatusCode::OK, text)
    }

    /// Reports whether writes are accepted. The reason is for the operator and stays in the log.
    pub(super) fn health(health: &Health) -> Self {
        let (status, text) = match health {
            Health::Ready => (StatusCode::OK, "ready"),
            Health::ReadOnly => (StatusCode::OK, "read-only"),
            _ => (
                StatusCode::SERVICE_UNAVAILABLE,
                "writes refused: the store cannot write; see the server's log",
            ),
        };
        Self::of_type(status, text, PLAIN_TEXT)
    }

    /// Prometheus metrics.
    pub(super) fn metrics(text: String) -> Self {
        Self::of_type(StatusCode::OK, text, METRICS)
    }

    /// The page does not exist.
    pub(super) fn unknown_page() -> Self {
        let text = Bytes::from_static(b"<UnknownOperationException/>\n");
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// The body exceeds the maximum size.
    pub(super) fn too_large() -> Self {
        Self {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            is_chunked: true,
            closes: true,
            ..Self::default()
        }
    }

    /// The body does not follow HTTP/1.1, so the end of the request is unknown.
    pub(super) fn malformed() -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            closes: true,
            ..Self::default()
        }
    }

    /// The compression is not supported, or the body does not match it. DynamoDB reports this as an internal failure.
    pub(super) fn bad_encoding(content_type: ContentType) -> Self {
        let message = "The body of the request cannot be decompressed";
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::error(status, "InternalFailure", message, content_type)
    }

    /// The memory for large requests is exhausted.
    pub(super) fn unavailable() -> Self {
        let text = r#"{"__type":"com.amazon.coral.availability#ServiceUnavailableException","message":"The service is out of memory for large requests; try again"}"#;
        let content_type = ContentType::AmzJson.value();
        Self::of_type(StatusCode::SERVICE_UNAVAILABLE, text, content_type)
    }

    /// The guard rejects the request.
    pub(super) fn forbidden(rejection: &GuardRejection) -> Self {
        let (code, message) = ("AccessDeniedException", rejection.to_string());
        Self::error(StatusCode::FORBIDDEN, code, &message, ContentType::AmzJson)
    }

    /// Allows a browser to send the request of a page.
    pub(super) fn preflight(request: &HeaderMap) -> Self {
        let mut preflight = HeaderMap::new();
        let seconds = HeaderValue::from(PREFLIGHT_SECONDS);
        preflight.insert(header::ACCESS_CONTROL_MAX_AGE, seconds);
        if let Some(names) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            preflight.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
        if let Some(method) = request.get(header::ACCESS_CONTROL_REQUEST_METHOD) {
            preflight.insert(header::ACCESS_CONTROL_ALLOW_METHODS, method.clone());
        }
        if request.contains_key(REQUEST_PRIVATE_NETWORK) {
            preflight.insert(PRIVATE_NETWORK, HeaderValue::from_static("true"));
        }
        Self {
            preflight,
            ..Self::default()
        }
    }

    /// Sets the compression of the body.
    pub(super) const fn with_encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = Some(encoding);
        self
    }

    /// Allows the page of this origin to read the response.
    pub(super) fn with_origin(mut self, origin: Option<Origin>) -> Self {
        self.origin = origin;
        self
    }

    /// Returns the response with its headers. Reuses the memory of the request's headers.
    pub(super) fn into_response<H>(
        self,
        mut headers: HeaderMap,
        exchange: &Exchange<H>,
    ) -> Response<ResponseBody> {
        headers.clear();
        headers.insert(header::SERVER, SERVER);
        headers.insert(REQUEST_ID, request_id(&exchange.responder.env));
        headers.insert(CRC32, HeaderValue::from(crc32fast::hash(&self.body)));
        if let Some(content_type) = self.content_type {
            headers.insert(header::CONTENT_TYPE, content_type);
        }
        if let Some(encoding) = self.encoding {
            headers.insert(header::CONTENT_ENCODING, encoding.value());
        }
        if let Some(origin) = self.origin {
            add_origin(&mut headers, origin, self.preflight);
        }
        if self.closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let body = ResponseBody {
            bytes: counted(self.body, exchange),
            is_chunked: self.is_chunked,
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = headers;
        response
    }
}

/// Adds the headers that allow a page to read the response.
fn add_origin(headers: &mut HeaderMap, origin: Origin, preflight: HeaderMap) {
    if origin.is_named {
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.value);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.extend(preflight);
}

/// Counts a large response against the memory budget until its last byte is passed to the system.
fn counted<H>(bytes: Bytes, exchange: &Exchange<H>) -> Bytes {
    if bytes.len() <= UNCOUNTED_BYTES_MAX {
        exchange.entry.set_held_bytes(0);
        return bytes;
    }
    exchange.entry.set_held_bytes(bytes.len());
    let reservation = exchange.registry.responses.add(bytes.len());
    Bytes::from_owner(Counted {
        bytes,
        _reservation: reservation,
    })
}

struct Counted {
    bytes: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns a request id in DynamoDB's form: 26 random and 26 fixed characters.
fn request_id(env: &Env) -> HeaderValue {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";
    let mut id = *b"00000000000000000000000000VV4KQNSO5AEMVJF66Q9ASUAAJG";
    let mut bits = u128::from(env.next_u64()) << 64 | u128::from(env.next_u64());
    for letter in id.iter_mut().take(26) {
        let digit = usize::try_from(bits & 31).unwrap_or_default();
        *letter = DIGITS.get(digit).copied().unwrap_or(b'0');
        bits >>= 5;
    }
    HeaderValue::from_bytes(&id).unwrap_or(SERVER)
}

/// The body of a response, sent in one piece.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    bytes: Bytes,
    is_chunked: bool,
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.is_chunked = false;
        let bytes = std::mem::take(&mut self.bytes);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty() && !self.is_chunked
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_chunked {
            SizeHint::default()
        } else {
            SizeHint::with_exact(self.bytes.len() as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_have_the_form_of_dynamodb() {
        let env = Env::system();
        let (one, two) = (request_id(&env), request_id(&env));
        assert_ne!(one, two);
        let id = one.to_str().unwrap();
        assert_eq!(id.len(), 52);
        assert!(
            id.bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()),
            "{id}"
        );
    }
}
