//! A minimal HTTP client: requests as text, responses with a content length.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

/// The head of a request with a body of this length.
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

/// A complete request.
pub(super) fn call(operation: &str, body: &str) -> String {
    head(operation, body.len()) + body
}

/// A connection, and the bytes read of the next response.
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

    /// Waits until the server closes the connection, without reading.
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

    /// Waits until the server closes the connection.
    pub(super) async fn wait_closed(&mut self) -> io::Result<()> {
        while self.fill().await? > 0 {
            self.buffer.clear();
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// Sends a request and returns the status of its response.
    pub(super) async fn request_status(&mut self, request: &[u8]) -> io::Result<u16> {
        self.send(request).await?;
        self.read_status().await
    }

    /// Sends a request and returns status and body of its response.
    pub(super) async fn request(&mut self, request: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        self.send(request).await?;
        self.read_response().await
    }

    /// Reads a response and returns its status.
    pub(super) async fn read_status(&mut self) -> io::Result<u16> {
        let (status, _) = self.read_response().await?;
        Ok(status)
    }

    /// Reads a response and returns status and body.
    async fn read_response(&mut self) -> io::Result<(u16, Vec<u8>)> {
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
