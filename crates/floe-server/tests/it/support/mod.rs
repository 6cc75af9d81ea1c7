//! A test server, and an HTTP client that sends arbitrary bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use floe_local::LocalEngine;
use floe_server::{Options, Server, ServerHandle, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Starts a server on an empty engine in memory.
pub(crate) async fn start(options: Options) -> ServerHandle {
    let engine = Arc::new(LocalEngine::memory().unwrap());
    let server = Server::bind(options, Service::new(engine)).await;
    server.unwrap().spawn()
}

/// An HTTP response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// The body as received.
    pub(crate) bytes: Vec<u8>,
    /// The body as text; empty if it is compressed.
    pub(crate) body: String,
}

impl Response {
    /// Returns the value of a header; empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    pub(crate) async fn exchange(&mut self, request: &str) -> Response {
        self.send(request).await;
        self.read_response().await
    }

    /// Reads a response.
    pub(crate) async fn read_response(&mut self) -> Response {
        let within = Duration::from_secs(60);
        let read = tokio::time::timeout(within, self.parse_response()).await;
        read.expect("no response within 60 seconds")
    }

    async fn parse_response(&mut self) -> Response {
        let end = loop {
            match find(&self.buffer, b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => assert!(self.fill().await, "the connection ended: {:?}", self.text()),
            }
        };
        let head = String::from_utf8(self.buffer.drain(..end).collect()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap()[9..12].parse().unwrap();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut response = Response {
            status,
            headers: headers.collect(),
            ..Response::default()
        };
        let length = match response.header("transfer-encoding") {
            "chunked" => return response,
            _ => response.header("content-length").parse().unwrap_or(0),
        };
        while self.buffer.len() < length {
            assert!(self.fill().await, "the body ended: {:?}", self.text());
        }
        response.bytes = self.buffer.drain(..length).collect();
        if response.header("content-encoding").is_empty() {
            response.body = String::from_utf8(response.bytes.clone()).unwrap();
        }
        response
    }

    /// Whether the server has closed the connection without sending anything.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let within = Duration::from_secs(30);
        let filled = tokio::time::timeout(within, self.fill()).await;
        !filled.expect("the server did not close the connection")
    }

    async fn fill(&mut self) -> bool {
        let mut piece = [0; 16 << 10];
        // A closed and a broken connection are equivalent.
        let read = self.stream.read(&mut piece).await.unwrap_or(0);
        self.buffer.extend_from_slice(&piece[..read]);
        read > 0
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.buffer).into_owned()
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|part| part == needle)
}

/// Sends one request on a new connection.
pub(crate) async fn exchange(address: SocketAddr, request: &str) -> Response {
    Client::connect(address).await.exchange(request).await
}

/// Returns a request with this method and path, further headers, and body.
pub(crate) fn request(line: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{line} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    format!("{text}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// A signature, for servers that do not verify it.
pub(crate) const UNVERIFIED_AUTHORIZATION: &str = "AWS4-HMAC-SHA256 Credential=any/20150830/us-east-1/dynamodb/aws4_request, \
     SignedHeaders=host;x-amz-date, Signature=0";

/// Returns a call with an unverified signature.
pub(crate) fn call(operation: &str, body: &str) -> String {
    let target = format!("DynamoDB_20120810.{operation}");
    let headers = [
        ("Content-Type", "application/x-amz-json-1.0"),
        ("X-Amz-Target", target.as_str()),
        ("X-Amz-Date", "20150830T123600Z"),
        ("Authorization", UNVERIFIED_AUTHORIZATION),
    ];
    request("POST /", &headers, body)
}
