//! A proxy between a client and the server that changes responses: a planted bug.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// The change made to a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Removes the continuation key from pages of queries and scans. The checksum is correct.
    LastPage,
    /// The checksum is wrong.
    Checksum,
}

/// A proxy that runs until this process ends.
#[derive(Debug)]
pub(super) struct Proxy {
    address: String,
}

impl Proxy {
    /// Starts a proxy in front of a server.
    pub(super) fn start(server: &str, change: Change) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let server = server.to_owned();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = server.clone();
                // The client notices a broken connection.
                std::thread::spawn(move || drop(serve(&client, &server, change)));
            }
        });
        Ok(Self { address })
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

fn serve(client: &TcpStream, server: &str, change: Change) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    let (mut requests, mut upstream) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        drop(io::copy(&mut requests, &mut upstream));
        drop(upstream.shutdown(Shutdown::Write));
    });
    let forwarded = forward_responses(&mut BufReader::new(&server), client, change);
    drop(client.shutdown(Shutdown::Both));
    forwarded
}

/// Forwards responses until the server closes the connection.
fn forward_responses(
    from: &mut impl BufRead,
    mut client: impl Write,
    change: Change,
) -> io::Result<()> {
    loop {
        let head = read_head(from)?;
        if head.is_empty() {
            return Ok(());
        }
        let mut body = vec![0; length(&head)];
        from.read_exact(&mut body)?;
        client.write_all(&apply_change(&head, &body, change))?;
        client.flush()?;
    }
}

/// Reads the lines of a head, including the empty line that ends it.
fn read_head(from: &mut impl BufRead) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(Vec::new());
        }
        let is_last = line == "\r\n";
        lines.push(line);
        if is_last {
            return Ok(lines);
        }
    }
}

fn length(head: &[String]) -> usize {
    let mut fields = head.iter().filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or_default()
}

/// Applies the change to a response without changing its length.
fn apply_change(head: &[String], body: &[u8], change: Change) -> Vec<u8> {
    let mut body = body.to_vec();
    if change == Change::LastPage {
        replace_name(
            &mut body,
            b"\"LastEvaluatedKey\":",
            b"\"LastEvaluatedHey\":",
        );
    }
    let right = crc32(&body);
    let checksum = match change {
        Change::LastPage => right,
        Change::Checksum => right ^ 1,
    };
    let mut response = Vec::new();
    for line in head {
        if line.to_ascii_lowercase().starts_with("x-amz-crc32:") {
            response.extend(format!("x-amz-crc32: {checksum}\r\n").bytes());
        } else {
            response.extend(line.bytes());
        }
    }
    response.extend(body);
    response
}

fn replace_name(body: &mut [u8], name: &[u8], other: &[u8]) {
    let windows = body.windows(name.len()).enumerate();
    let found: Vec<_> = windows
        .filter(|(_, part)| *part == name)
        .map(|(at, _)| at)
        .collect();
    for at in found {
        if let Some(part) = body.get_mut(at..at + name.len()) {
            part.copy_from_slice(other);
        }
    }
}

/// CRC-32 as in zip and Ethernet, which DynamoDB sends with its responses.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
    let add = |crc, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    !bytes.iter().fold(!0, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(body: &str) -> String {
        let (crc, length) = (crc32(body.as_bytes()), body.len());
        format!("HTTP/1.1 200 OK\r\nX-Amz-Crc32: {crc}\r\ncontent-length: {length}\r\n\r\n{body}")
    }

    fn forwarded(responses: &str, change: Change) -> String {
        let mut forwarded = Vec::new();
        forward_responses(&mut responses.as_bytes(), &mut forwarded, change).unwrap();
        String::from_utf8(forwarded).unwrap()
    }

    #[test]
    fn checksum_matches_known_values() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b"{}"), 2_745_614_147);
    }

    #[test]
    fn responses_are_forwarded_with_the_change() {
        let page = r#"{"Items":[],"LastEvaluatedKey":{"pk":{"S":"a"}}}"#;
        let both = format!("{}{}", response(page), response("{}"));
        let last = page.replace("LastEvaluatedKey", "LastEvaluatedHey");
        let expected = format!("{}{}", response(&last), response("{}"));
        let expected = expected.replace("X-Amz-Crc32", "x-amz-crc32");
        assert_eq!(forwarded(&both, Change::LastPage), expected);

        let wrong = forwarded(&response("{}"), Change::Checksum);
        assert!(wrong.contains("x-amz-crc32: 2745614146\r\n"), "{wrong}");
        assert!(wrong.ends_with("\r\n\r\n{}"));
    }
}
