//! The response to a client for an error: a status and a small JSON document.
//!
//! ```text
//! HTTP/1.1 422 Unprocessable Entity
//! {"error":"invalid_field","field":"level","message":"the value is below the minimum: ..."}
//! ```
//!
//! | kind | status | why |
//! |---|---|---|
//! | `AlreadyExists` | 409 | the request contradicts the stored state |
//! | `VersionConflict` | 409 | likewise: the stream is not at the version in the request |
//! | `InvalidField` | 422 | the request is well-formed, but a value is not allowed |
//! | `InvalidCursor` | 400 | the client sent it |
//! | `TooLarge` | 413 | the request exceeds the limits of a transaction |
//! | `TransactionFailed` | 503, `Retry-After: 1` | nothing was written, and the same request may succeed shortly; a 409 would ask the client to change it |
//! | `MaxResyncsExhausted` | 503, `Retry-After: 1` | likewise |
//! | `Store`, if it is busy | 503, `Retry-After: 1` | likewise |
//! | `Deadline` | 504 | the deadline passed |
//! | `OutcomeUnknown` | 500 | many proxies and clients retry 502 to 504, which must not happen here |
//! | `ReadOnly`, `FetchedTwice`, `InvalidUse` and others | 500 | the program is wrong, not the request |
//!
//! 4xx responses contain the message of the error. 5xx responses reveal nothing internal: the error itself is in the
//! [extensions](::http::Extensions) of the response, for a layer that logs it.

use ::http::header::{CONTENT_TYPE, RETRY_AFTER};
use ::http::{HeaderValue, StatusCode};
use axum_core::body::Body;
use axum_core::response::{IntoResponse, Response};
use floe_store::{Item, Value};

use crate::attribute::document::to_json_text;
use crate::error::{Error, ErrorKind};

/// See the [module](self).
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let (status, code, public_message) = public_error(&self);
        let message = public_message.map_or_else(|| self.to_string(), str::to_owned);
        let field = self.field().filter(|_| public_message.is_none());
        let mut response = json(status, code, &message, field);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The status, the code of the kind, and the message to send instead of the error's own.
fn public_error(error: &Error) -> (StatusCode, &'static str, Option<&'static str>) {
    const FAILED: &str = "the server failed";
    const BUSY: &str = "the server is busy and nothing was written: send the request again later";
    const DEADLINE: &str = "the server did not finish before its deadline";
    const UNKNOWN: &str =
        "the outcome of the request is unknown: check it before sending the request again";
    // Which other entity is involved is not disclosed to every client.
    const TAKEN: &str = "another entity has this key";
    const REFERRED: &str = "another entity refers to it";
    let failed = |code| (StatusCode::INTERNAL_SERVER_ERROR, code, Some(FAILED));
    let busy = |code| (StatusCode::SERVICE_UNAVAILABLE, code, Some(BUSY));
    match error.kind() {
        ErrorKind::AlreadyExists => (StatusCode::CONFLICT, "already_exists", None),
        ErrorKind::InvalidField => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", None),
        ErrorKind::InvalidCursor => (StatusCode::BAD_REQUEST, "invalid_cursor", None),
        ErrorKind::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", None),
        ErrorKind::VersionConflict => (StatusCode::CONFLICT, "version_conflict", None),
        ErrorKind::NotFound => (StatusCode::NOT_FOUND, "not_found", None),
        ErrorKind::Conflict => (StatusCode::CONFLICT, "conflict", Some(TAKEN)),
        ErrorKind::Restricted => (StatusCode::CONFLICT, "restricted", Some(REFERRED)),
        ErrorKind::IndexNotReady => busy("index_not_ready"),
        ErrorKind::TransactionFailed => busy("transaction_failed"),
        ErrorKind::MaxResyncsExhausted => busy("max_resyncs_exhausted"),
        ErrorKind::Store if is_busy(error) => busy("store"),
        ErrorKind::Deadline => (StatusCode::GATEWAY_TIMEOUT, "deadline", Some(DEADLINE)),
        ErrorKind::OutcomeUnknown => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            (status, "outcome_unknown", Some(UNKNOWN))
        }
        ErrorKind::FetchedTwice => failed("fetched_twice"),
        ErrorKind::ReadOnly => failed("read_only"),
        ErrorKind::InvalidUse => failed("invalid_use"),
        ErrorKind::Unsupported => failed("unsupported"),
        ErrorKind::Table => failed("table"),
        ErrorKind::Aborted => failed("aborted"),
        ErrorKind::InvalidEvent => failed("invalid_event"),
        ErrorKind::MissingEvents => failed("missing_events"),
        ErrorKind::Store => failed("store"),
    }
}

/// Whether the store wrote nothing and a later retry may succeed.
fn is_busy(error: &Error) -> bool {
    let cause = error.store_error();
    cause.is_some_and(|cause| cause.is_retryable() && !cause.may_have_applied())
}

/// The response to a request whose body was not read.
pub(super) fn unread_body(status: StatusCode, bytes_max: usize) -> Response {
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        let message = format!("the request body is too large: bytes_max={bytes_max}");
        return json(status, "body_too_large", &message, None);
    }
    let message = "the request body could not be read";
    json(status, "body_unread", message, None)
}

/// A response with a JSON document.
pub(super) fn json(status: StatusCode, code: &str, message: &str, field: Option<&str>) -> Response {
    let mut document = Item::with_capacity(3)
        .with("error", code)
        .with("message", message);
    if let Some(field) = field {
        document.insert("field", field);
    }
    // A map of texts always has a JSON form.
    let text = to_json_text(&Value::M(document)).unwrap_or_default();
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use floe_store::Error as StoreError;

    use super::*;

    fn error(kind: ErrorKind) -> Error {
        Error::new(kind, "secret: model=Player key=\"ada\"")
    }

    #[test]
    fn each_kind_has_its_status_and_only_4xx_contain_the_message() {
        use ErrorKind::*;
        for (kind, status, code) in [
            (AlreadyExists, 409, "already_exists"),
            (InvalidField, 422, "invalid_field"),
            (InvalidCursor, 400, "invalid_cursor"),
            (FetchedTwice, 500, "fetched_twice"),
            (TransactionFailed, 503, "transaction_failed"),
            (OutcomeUnknown, 500, "outcome_unknown"),
            (ReadOnly, 500, "read_only"),
            (TooLarge, 413, "too_large"),
            (InvalidUse, 500, "invalid_use"),
            (Unsupported, 500, "unsupported"),
            (Table, 500, "table"),
            (Aborted, 500, "aborted"),
            (Deadline, 504, "deadline"),
            (Store, 500, "store"),
        ] {
            let (actual, actual_code, public_message) = public_error(&error(kind));
            assert_eq!((actual.as_u16(), actual_code), (status, code));
            assert_eq!(public_message.is_none(), status < 500, "{kind:?}");
            let response = error(kind).into_response();
            assert_eq!(response.status().as_u16(), status);
            let has_retry_after = response.headers().contains_key(RETRY_AFTER);
            assert_eq!(has_retry_after, status == 503, "{kind:?}");
            assert_eq!(response.extensions().get(), Some(&error(kind)));
        }
    }

    #[test]
    fn store_is_busy_only_if_nothing_was_written() {
        let text = || "secret".to_owned();
        for (cause, status) in [
            (StoreError::Throttling(text()), 503),
            (StoreError::ProvisionedThroughputExceeded(text()), 503),
            (StoreError::TransactionConflict, 503),
            (StoreError::OutcomeUnknown(text()), 500),
            (StoreError::Internal(text()), 500),
            (StoreError::Storage(text()), 500),
            (StoreError::Validation(text()), 500),
        ] {
            let response = Error::from(cause.clone()).into_response();
            assert_eq!(response.status().as_u16(), status, "{cause:?}");
        }
    }
}
