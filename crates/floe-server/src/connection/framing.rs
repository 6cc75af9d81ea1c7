//! Rejects requests with a line that ends with a bare line feed.
//!
//! hyper accepts a bare line feed as the end of a line. A proxy in front of the server may not; the two then disagree
//! on where a request ends, which allows request smuggling. [`Framing`] therefore inspects the bytes of a connection
//! before hyper does: it reads the lines of heads, chunk sizes and trailers, and skips bodies by their length. All
//! other errors are left to hyper.

use std::io::BufRead as _;

use crate::limits::READ_BUFFER_BYTES_MAX;

/// Replaces a bare line feed for hyper: no head or trailers are valid with it.
const INVALID_HEAD: &[u8] = b"\0\r\n\r\n";

/// Replaces it in a chunk size, where hyper does not accept a bare line feed either.
const INVALID_CHUNK_SIZE: &[u8] = b"\n";

/// The parse position in the requests of a connection.
#[derive(Debug)]
pub(super) struct Framing {
    line: Line,
    /// Bytes of the body before the next line.
    skipped: u64,
    /// The body announced by the head.
    body: Body,
    /// The first part of a line that arrives in several pieces.
    partial: Vec<u8>,
}

/// The kind of the next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Request,
    Header,
    ChunkSize,
    Trailer,
    /// hyper rejects the request and reads no further.
    Unknown,
}

/// The body announced by a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Length(u64),
    Chunked,
    Invalid,
}

/// A rejected line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BareLineFeed {
    /// Number of bytes before the line feed, which hyper may read.
    pub(super) at: usize,
    /// The bytes that hyper reads instead of the rest, so that it rejects the request.
    pub(super) replacement: &'static [u8],
}

impl Framing {
    pub(super) const fn new() -> Self {
        Self {
            line: Line::Request,
            skipped: 0,
            body: Body::Length(0),
            partial: Vec::new(),
        }
    }

    /// Parses further bytes. Returns the first rejected line in them.
    pub(super) fn inspect(&mut self, bytes: &[u8]) -> Option<BareLineFeed> {
        let mut rest = bytes;
        loop {
            rest = self.skip(rest);
            if rest.is_empty() || self.line == Line::Unknown {
                return None;
            }
            let length = line_length(rest);
            let (line, after) = rest.split_at(length);
            if !self.take(line) {
                let end = bytes.len() - after.len();
                return Some(BareLineFeed {
                    at: end.saturating_sub(1),
                    replacement: self.replacement(),
                });
            }
            rest = after;
        }
    }

    /// Skips the part that belongs to a body.
    fn skip<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let length = usize::try_from(self.skipped).map_or(bytes.len(), |n| n.min(bytes.len()));
        self.skipped -= length as u64;
        bytes.get(length..).unwrap_or_default()
    }

    /// Consumes a line, or part of one. Returns whether it is valid so far.
    fn take(&mut self, piece: &[u8]) -> bool {
        if piece.last() != Some(&b'\n') {
            self.partial.extend_from_slice(piece);
            return self.partial.len() <= READ_BUFFER_BYTES_MAX;
        }
        if self.partial.is_empty() {
            return self.end_line(piece);
        }
        let mut line = std::mem::take(&mut self.partial);
        line.extend_from_slice(piece);
        self.end_line(&line)
    }

    /// Consumes a complete line. Returns whether it ends with a carriage return and a line feed.
    fn end_line(&mut self, line: &[u8]) -> bool {
        let Some(line) = line.strip_suffix(b"\r\n") else {
            return false;
        };
        match self.line {
            // Empty lines may precede a request.
            Line::Request if line.is_empty() => {}
            Line::Request => {
                self.line = Line::Header;
                self.body = Body::Length(0);
            }
            Line::Header if line.is_empty() => self.end_head(),
            Line::Header => self.header(line),
            Line::ChunkSize => self.chunk_size(line),
            Line::Trailer if line.is_empty() => self.line = Line::Request,
            Line::Trailer | Line::Unknown => {}
        }
        true
    }

    fn end_head(&mut self) {
        self.line = match self.body {
            Body::Length(length) => {
                self.skipped = length;
                Line::Request
            }
            Body::Chunked => Line::ChunkSize,
            Body::Invalid => Line::Unknown,
        };
    }

    /// Records the body that a header announces. As in hyper, chunked encoding takes precedence over a length.
    fn header(&mut self, line: &[u8]) {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.body = Body::Chunked;
        } else if name.eq_ignore_ascii_case(b"content-length") && self.body != Body::Chunked {
            let length = value.and_then(|value| number(value.trim_ascii(), 10));
            self.body = length.map_or(Body::Invalid, Body::Length);
        }
    }

    fn chunk_size(&mut self, line: &[u8]) {
        let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
        let digits = line.iter().position(|byte| !is_digit(byte));
        let digits = line.get(..digits.unwrap_or(line.len()));
        match digits.and_then(|digits| number(digits, 16)) {
            None => self.line = Line::Unknown,
            Some(0) => self.line = Line::Trailer,
            // The chunk and the line end after it, which hyper checks.
            Some(size) => self.skipped = size.saturating_add(2),
        }
    }

    const fn replacement(&self) -> &'static [u8] {
        match self.line {
            Line::ChunkSize => INVALID_CHUNK_SIZE,
            _ => INVALID_HEAD,
        }
    }
}

/// Returns the length of the first line including its line feed, or of all bytes if there is none.
fn line_length(mut bytes: &[u8]) -> usize {
    // Reading from memory cannot fail.
    bytes.skip_until(b'\n').unwrap_or(bytes.len())
}

/// Parses a number that consists of digits only.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let is_digits = digits.iter().all(|byte| char::from(*byte).is_digit(radix));
    let text = std::str::from_utf8(digits).ok();
    let text = text.filter(|_| is_digits && !digits.is_empty());
    text.and_then(|text| u64::from_str_radix(text, radix).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    /// Parses a text in pieces of every size. Returns the position of the rejected line, which must not depend on the
    /// pieces.
    #[track_caller]
    fn refused_at(text: &str) -> Option<usize> {
        let whole = Framing::new().inspect(text.as_bytes()).map(|line| line.at);
        for size in 1..text.len() {
            let mut framing = Framing::new();
            let found = text.as_bytes().chunks(size).enumerate();
            let found = found.map(|(n, piece)| framing.inspect(piece).map(|f| n * size + f.at));
            assert_eq!(found.flatten().next(), whole, "piece size {size}: {text:?}");
        }
        whole
    }

    #[test]
    fn lines_with_carriage_return_and_line_feed_are_accepted() {
        for text in [
            GET,
            "\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\na\nb\n\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: \t3 \r\nContent-Length:3\r\n\r\n\n\n\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\n\n\r\nA;x=y\r\n0123456\n89\r\n0\r\nX: y\r\n\r\nGET",
            "POST / HTTP/1.1\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n0\r\n\r\n",
        ] {
            assert_eq!(refused_at(text), None, "{text:?}");
        }
    }

    #[test]
    fn bare_line_feed_is_found() {
        for text in [
            "GET / HTTP/1.1|",
            "|GET / HTTP/1.1\r\n\r\n",
            "\r\n|GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x|Other: y\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n|",
            "GET / HTTP/1.1\r\nHost: x|\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n\n\nGET / HTTP/1.1|",
            "POST / HTTP/1.1\r\nContent-Length: 2|\r\n\n\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2|ab\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x|ab\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n|",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y|\r\n",
        ] {
            let at = text.find('|');
            assert_eq!(refused_at(&text.replacen('|', "\n", 1)), at, "{text:?}");
        }
    }

    #[test]
    fn parsing_stops_where_hyper_rejects() {
        for head in [
            "Content-Length: x",
            "Content-Length: +1",
            "Content-Length: ",
        ] {
            let text = format!("POST / HTTP/1.1\r\n{head}\r\n\r\n\n\n");
            assert_eq!(refused_at(&text), None, "{head}");
        }
    }

    #[test]
    fn length_of_a_line_is_limited() {
        let mut framing = Framing::new();
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(framing.inspect(head.as_bytes()), None);
        let zeros = [b'0'; 1024];
        let pieces = (0..64).find(|_| framing.inspect(&zeros).is_some());
        assert_eq!(pieces, Some(READ_BUFFER_BYTES_MAX / zeros.len()));
    }
}
