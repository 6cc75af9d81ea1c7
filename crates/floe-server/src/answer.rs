//! Answers to calls, before they have headers of HTTP.

use bytes::Bytes;

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
    let mut body = String::with_capacity(96 + message.len());
    body.push_str(r#"{"__type":"com.amazon.coral.service#"#);
    body.push_str(code);
    body.push_str(r#"","message":""#);
    push_escaped(&mut body, message);
    body.push_str(r#""}"#);
    Answer {
        status: 400,
        body: body.into(),
    }
}

/// Adds text as it stands in a string of JSON.
fn push_escaped(json: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\t' => json.push_str("\\t"),
            control if control < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => json.push(other),
        }
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
