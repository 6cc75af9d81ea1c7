//! A client with low overhead, so that the measurement reflects the server: requests are prepared in advance, and only
//! the status and length of a response are read.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use super::request::{Fresh, Pool, Prepared};
use crate::Fallible;
use crate::measure::Rate;

/// A keep-alive connection.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    /// The offset of the body.
    start: usize,
    body_len: usize,
}

/// A response.
pub(super) struct Response<'a> {
    pub(super) status: u16,
    pub(super) body: &'a [u8],
}

impl Connection {
    /// Larger than any response here, so that most responses take one read.
    const BUFFER: usize = 256 * 1024;

    pub(super) async fn open(address: SocketAddr) -> Fallible<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let buffer = vec![0; Self::BUFFER];
        Ok(Self { stream, buffer })
    }

    /// Sends a request and reads the whole response.
    pub(super) async fn call(&mut self, request: &[u8]) -> Fallible<Response<'_>> {
        self.stream.write_all(request).await?;
        let mut filled = 0;
        let head = loop {
            filled += self.fill(filled).await?;
            if let Some(head) = Head::read(self.buffer.get(..filled).unwrap_or_default())? {
                break head;
            }
        };
        let end = head.start + head.body_len;
        while filled < end {
            filled += self.fill(filled).await?;
        }
        if filled > end {
            return Err("a server sent more than its response".into());
        }
        Ok(Response {
            status: head.status,
            body: self.buffer.get(head.start..end).unwrap_or_default(),
        })
    }

    async fn fill(&mut self, filled: usize) -> Fallible<usize> {
        let room = self.buffer.get_mut(filled..).unwrap_or_default();
        match self.stream.read(room).await? {
            0 => Err(format!("a connection ended within a response: read={filled}").into()),
            count => Ok(count),
        }
    }
}

impl Head {
    /// Parses the head at the beginning of these bytes. Returns `None` if it is incomplete.
    fn read(bytes: &[u8]) -> Fallible<Option<Self>> {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Ok(None);
        };
        let text = std::str::from_utf8(bytes.get(..end).unwrap_or_default())?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let length = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim())
        });
        Ok(Some(Self {
            status: status.ok_or("a response has no status")?.parse()?,
            start: end + 4,
            body_len: length.ok_or("a response has no length")?.parse()?,
        }))
    }
}

/// The result of one round.
pub(super) struct Round {
    pub(super) rate: Rate,
    /// The latency of each response, in microseconds.
    pub(super) latencies: Vec<u32>,
}

/// Runs all connections for a duration. Each sends its next request after the response to the previous one. All share
/// one thread, which leaves the other cores to the server.
pub(super) async fn send_for(
    connections: Vec<Connection>,
    (pool, fresh): (&Rc<Pool>, &Rc<Fresh>),
    duration: Duration,
) -> Fallible<(Vec<Connection>, Round)> {
    let start = Instant::now();
    let tasks = LocalSet::new();
    let spawn = |(n, connection)| {
        let (pool, fresh) = (Rc::clone(pool), Rc::clone(fresh));
        let end = start + duration;
        tasks.spawn_local(
            async move { send_all(connection, pool.requests_from(n), &fresh, end).await },
        )
    };
    let handles: Vec<_> = connections.into_iter().enumerate().map(spawn).collect();
    tasks.await;
    let elapsed = start.elapsed();
    let (mut connections, mut latencies) = (Vec::new(), Vec::new());
    for handle in handles {
        let (connection, mut own) = handle.await??;
        connections.push(connection);
        latencies.append(&mut own);
    }
    let rate = Rate {
        operations: latencies.len() as u64,
        elapsed,
    };
    Ok((connections, Round { rate, latencies }))
}

/// Sends requests on one connection until the end of the round. Returns the latencies.
async fn send_all(
    mut connection: Connection,
    requests: impl Iterator<Item = &Prepared>,
    fresh: &Fresh,
    end: Instant,
) -> Fallible<(Connection, Vec<u32>)> {
    let (mut latencies, mut buffer) = (Vec::with_capacity(1 << 14), Vec::new());
    let mut sent = Instant::now();
    for request in requests {
        let request = request.bytes(fresh, &mut buffer);
        let response = connection.call(request).await?;
        if response.status != 200 {
            let body = String::from_utf8_lossy(response.body);
            return Err(format!(
                "the server rejected a request: status={} body={body}",
                response.status
            )
            .into());
        }
        let now = Instant::now();
        let micros = now.duration_since(sent).as_micros();
        latencies.push(u32::try_from(micros).unwrap_or(u32::MAX));
        if now >= end {
            break;
        }
        sent = now;
    }
    Ok((connection, latencies))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_parsed() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-type: x\r\nContent-Length:  2\r\n\r\n{}";
        let head = Head::read(whole).unwrap().unwrap();
        assert_eq!((head.status, head.body_len), (200, 2));
        assert_eq!(whole.get(head.start..), Some(b"{}".as_slice()));
        for cut in 0..head.start {
            assert_eq!(Head::read(whole.get(..cut).unwrap()).unwrap(), None);
        }
        for wrong in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1\r\ncontent-length: 2\r\n\r\n",
        ] {
            assert!(Head::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
