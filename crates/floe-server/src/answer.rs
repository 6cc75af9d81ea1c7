//! Answers to calls, before they have headers of HTTP.

use bytes::Bytes;
use floe_store::json::Writer;

/// An answer to a call, to be sent as `application/x-amz-json-1.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status of HTTP: 200, 400 for what the caller did wrong, 500 for what went wrong here, 503 while writes are
    /// refused.
    pub status: u16,
    /// The JSON.
    pub body: Bytes,
}

impl Answer {
    /// The refusal of a call with an error of DynamoDB and status 400.
    pub fn refusal(code: &str, message: &str) -> Self {
        coral_error(code, message)
    }
}

/// An error of the part of DynamoDB that stands before the service.
pub(crate) fn coral_error(code: &str, message: &str) -> Answer {
    let mut writer = Writer::with_capacity(96 + message.len());
    writer.object(|w| {
        let name = format!("com.amazon.coral.service#{code}");
        w.name("__type").string(&name);
        w.name("message").string(message);
    });
    Answer {
        status: 400,
        body: writer.into_bytes().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_escaped() {
        let answer = coral_error("X", "a \"b\" \\ \n\u{1}");
        assert_eq!(
            answer.body,
            r#"{"__type":"com.amazon.coral.service#X","message":"a \"b\" \\ \n\u0001"}"#
        );
    }
}
