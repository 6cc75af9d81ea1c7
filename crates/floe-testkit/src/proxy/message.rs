//! Parses HTTP/1.1 messages, only as far as needed to find where a message ends.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

const END_OF_HEAD: &[u8] = b"\r\n\r\n";
const READ_BYTES: usize = 16 * 1024;

/// A request or a response.
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    head: usize,
}

impl Message {
    /// Reads the next message of a connection. `None` at the end of the connection.
    ///
    /// The body's length comes from `Content-Length`. Without that header the body is empty: DynamoDB's clients and
    /// servers always send it with a body.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        let head = loop {
            if let Some(at) = position(&bytes, END_OF_HEAD) {
                break at + END_OF_HEAD.len();
            }
            if !more(from, &mut bytes).await? {
                return Ok(None);
            }
        };
        let mut message = Self { bytes, head };
        let body = message.header("content-length");
        let body: usize = body.and_then(|text| text.parse().ok()).unwrap_or_default();
        while message.bytes.len() < head + body {
            if !more(from, &mut message.bytes).await? {
                return Ok(None);
            }
        }
        Ok(Some(message))
    }

    /// The operation in the header `X-Amz-Target`, without the service version.
    pub(super) fn operation(&self) -> &str {
        let target = self.header("x-amz-target").unwrap_or_default();
        target.rsplit('.').next().unwrap_or_default()
    }

    /// The first half of a message; never all of it.
    pub(super) fn half(&self) -> &[u8] {
        let body = self.bytes.len() - self.head;
        let end = match body {
            0 | 1 => self.head / 2,
            body => self.head + body / 2,
        };
        self.bytes.get(..end).unwrap_or_default()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let head = self.bytes.get(..self.head)?;
        let head = std::str::from_utf8(head).ok()?;
        head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Reads some more bytes; `false` at the end.
async fn more(from: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> io::Result<bool> {
    bytes.reserve(READ_BYTES);
    Ok(from.read_buf(bytes).await? > 0)
}

fn position(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len())
        .position(|part| part == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(mut bytes: &[u8]) -> Option<Message> {
        Message::read(&mut bytes).await.unwrap()
    }

    #[tokio::test]
    async fn message_ends_after_its_content_length() {
        let request = b"POST / HTTP/1.1\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\n\
            content-length: 4\r\n\r\nbody";
        let message = read(request).await.unwrap();
        assert_eq!(message.bytes, request);
        assert_eq!(message.operation(), "PutItem");
        assert!(message.half().ends_with(b"\r\n\r\nbo"));
        assert!(read(&request[..request.len() - 1]).await.is_none());
        assert!(read(b"").await.is_none());
    }

    #[tokio::test]
    async fn half_of_a_message_without_a_body_is_shorter_than_the_message() {
        let message = read(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        assert_eq!(message.operation(), "");
        assert!(message.half().len() < message.bytes.len());
    }
}
