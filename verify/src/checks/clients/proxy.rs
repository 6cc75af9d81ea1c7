//! Stands between a client and the server, and changes answers: a bug to be found.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// What is done to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The page of a query or scan does not tell that there is more. Its checksum is right.
    LastPage,
    /// The checksum is wrong.
    Checksum,
}

/// A proxy that ends with this process.
#[derive(Debug)]
pub(super) struct Proxy {
    address: String,
}

impl Proxy {
    /// Starts one in front of a server.
    pub(super) fn start(server: &str, change: Change) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let server = server.to_owned();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = server.clone();
                // A connection that breaks is the client's to notice.
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
    let passed = pass_answers(&mut BufReader::new(&server), client, change);
    drop(client.shutdown(Shutdown::Both));
    passed
}

/// Passes answers on, one after the other, until there are no more.
fn pass_answers(from: &mut impl BufRead, mut client: impl Write, change: Change) -> io::Result<()> {
    loop {
        let head = read_head(from)?;
        if head.is_empty() {
            return Ok(());
        }
        let mut body = vec![0; length(&head)];
        from.read_exact(&mut body)?;
        client.write_all(&changed(&head, &body, change))?;
        client.flush()?;
    }
}

/// The lines of a head, with the empty one that ends it.
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

/// An answer with the change in it, just as long as before.
fn changed(head: &[String], body: &[u8], change: Change) -> Vec<u8> {
    let mut body = body.to_vec();
    if change == Change::LastPage {
        rename(
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
    let mut answer = Vec::new();
    for line in head {
        match line.to_ascii_lowercase().starts_with("x-amz-crc32:") {
            true => answer.extend(format!("x-amz-crc32: {checksum}\r\n").bytes()),
            false => answer.extend(line.bytes()),
        }
    }
    answer.extend(body);
    answer
}

fn rename(body: &mut [u8], name: &[u8], other: &[u8]) {
    let places = body.windows(name.len()).enumerate();
    let found: Vec<_> = places
        .filter(|(_, part)| *part == name)
        .map(|(at, _)| at)
        .collect();
    for at in found {
        if let Some(part) = body.get_mut(at..at + name.len()) {
            part.copy_from_slice(other);
        }
    }
}

/// The checksum of zip and Ethernet, which DynamoDB puts on its answers.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
    let add = |crc, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    !bytes.iter().fold(!0, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> String {
        let (crc, length) = (crc32(body.as_bytes()), body.len());
        format!("HTTP/1.1 200 OK\r\nX-Amz-Crc32: {crc}\r\ncontent-length: {length}\r\n\r\n{body}")
    }

    fn passed(answers: &str, change: Change) -> String {
        let mut told = Vec::new();
        pass_answers(&mut answers.as_bytes(), &mut told, change).unwrap();
        String::from_utf8(told).unwrap()
    }

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b"{}"), 2_745_614_147);
    }

    #[test]
    fn answers_are_passed_on_with_the_change() {
        let page = r#"{"Items":[],"LastEvaluatedKey":{"pk":{"S":"a"}}}"#;
        let both = format!("{}{}", answer(page), answer("{}"));
        let last = page.replace("LastEvaluatedKey", "LastEvaluatedHey");
        let expected = format!("{}{}", answer(&last), answer("{}"));
        let expected = expected.replace("X-Amz-Crc32", "x-amz-crc32");
        assert_eq!(passed(&both, Change::LastPage), expected);

        let wrong = passed(&answer("{}"), Change::Checksum);
        assert!(wrong.contains("x-amz-crc32: 2745614146\r\n"), "{wrong}");
        assert!(wrong.ends_with("\r\n\r\n{}"));
    }
}
