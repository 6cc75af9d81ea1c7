//! A simulated OpenTelemetry collector: records requests and responds with a given status.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct CollectorServer {
    pub(crate) address: SocketAddr,
    posted: Arc<Mutex<Vec<Posted>>>,
}

impl CollectorServer {
    /// Starts a collector that responds with this status.
    pub(crate) fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let posted = Arc::new(Mutex::new(Vec::new()));
        let all = posted.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let posted = take(&connection.unwrap(), status);
                all.lock().unwrap().extend(posted);
            }
        });
        Self { address, posted }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests to this path so far.
    pub(crate) fn posted(&self, path: &str) -> Vec<Posted> {
        let posted = self.posted.lock().unwrap();
        let posted = posted.iter().filter(|posted| posted.path == path);
        posted.cloned().collect()
    }
}

pub(crate) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

/// Reads the only request of a connection, and responds.
fn take(mut connection: &TcpStream, status: u16) -> Option<Posted> {
    let mut reader = BufReader::new(connection);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let path = lines[0].split(' ').nth(1)?.to_owned();
    let headers = lines[1..].iter().filter_map(|line| line.split_once(": "));
    let headers: Vec<(String, String)> = headers
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length?.1.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let answer = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    connection.write_all(answer.as_bytes()).ok()?;
    Some(Posted {
        path,
        headers,
        body,
    })
}
