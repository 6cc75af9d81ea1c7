//! Just enough of HTTP: requests as text, and answers by their length.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

/// The head of a call with a body of this length.
pub(super) fn head(operation: &str, length: usize) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\n\
         X-Amz-Date: 20150830T123600Z\r\nContent-Type: application/x-amz-json-1.0\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=any/20150830/us-east-1/dynamodb/aws4_request, \
         SignedHeaders=host;x-amz-date, Signature=0\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// A request for a page.
pub(super) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// A whole call.
pub(super) fn call(operation: &str, body: &str) -> String {
    head(operation, body.len()) + body
}

/// A connection, and what was read of the next answer.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Waits until the server hangs up, and reads nothing of what it says.
    pub(super) async fn wait_unread(&mut self) -> io::Result<()> {
        while !self
            .stream
            .ready(Interest::READABLE)
            .await?
            .is_read_closed()
        {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// Waits until the server hangs up.
    pub(super) async fn wait_closed(&mut self) -> io::Result<()> {
        while self.fill().await? > 0 {
            self.buffer.clear();
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// Sends a call, and reads the status of its answer.
    pub(super) async fn ask(&mut self, request: &[u8]) -> io::Result<u16> {
        self.send(request).await?;
        self.answer().await
    }

    /// Sends a call, and reads the status and the body of its answer.
    pub(super) async fn ask_whole(&mut self, request: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        self.send(request).await?;
        self.answer_whole().await
    }

    /// Reads an answer: its status.
    pub(super) async fn answer(&mut self) -> io::Result<u16> {
        let (status, _) = self.answer_whole().await?;
        Ok(status)
    }

    /// Reads an answer: its status and its body.
    async fn answer_whole(&mut self) -> io::Result<(u16, Vec<u8>)> {
        let end = loop {
            let found = self.buffer.windows(4).position(|part| part == b"\r\n\r\n");
            match found {
                Some(end) => break end + 4,
                None if self.fill().await? == 0 => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                None => {}
            }
        };
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        let head = String::from_utf8_lossy(&head);
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let length: usize = length.unwrap_or(0);
        while self.buffer.len() < length {
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let body = self.buffer.drain(..length).collect();
        let status = status.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok((status, body))
    }

    async fn fill(&mut self) -> io::Result<usize> {
        self.stream.read_buf(&mut self.buffer).await
    }
}
