//! Responses to API calls, without HTTP headers.

use bytes::Bytes;
use floe_store::json::Writer;

/// The response to an API call, sent as `application/x-amz-json-1.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiResponse {
    /// The HTTP status: 200, 400 for a client error, 500 for an internal failure, 503 while writes are rejected.
    pub status: u16,
    /// The JSON body.
    pub body: Bytes,
}

impl ApiResponse {
    /// Returns a DynamoDB error with status 400.
    pub fn error(code: &str, message: &str) -> Self {
        coral_error(code, message)
    }
}

/// Returns an error of the framework in front of DynamoDB.
pub(crate) fn coral_error(code: &str, message: &str) -> ApiResponse {
    let mut writer = Writer::with_capacity(96 + message.len());
    writer.object(|w| {
        let name = format!("com.amazon.coral.service#{code}");
        w.name("__type").string(&name);
        w.name("message").string(message);
    });
    ApiResponse {
        status: 400,
        body: writer.into_bytes().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_escaped() {
        let response = coral_error("X", "a \"b\" \\ \n\u{1}");
        assert_eq!(
            response.body,
            r#"{"__type":"com.amazon.coral.service#X","message":"a \"b\" \\ \n\u0001"}"#
        );
    }
}
