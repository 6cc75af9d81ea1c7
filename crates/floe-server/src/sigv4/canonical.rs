//! The canonical form of a request, which client and server sign.

pub(super) use floe_store::hex::encode as hex;
use hyper::Request;
use hyper::header::HeaderMap;

/// Returns the canonical form of a request.
///
/// The path is not normalized: DynamoDB has only one.
pub(super) fn canonical_request(
    head: &Request<()>,
    signed_headers: &str,
    payload_hash: &str,
) -> Vec<u8> {
    let mut text = Vec::with_capacity(1024);
    let mut line = |part: &[u8]| {
        text.extend_from_slice(part);
        text.push(b'\n');
    };
    line(head.method().as_str().as_bytes());
    line(head.uri().path().as_bytes());
    line(canonical_query(head.uri().query().unwrap_or_default()).as_bytes());
    for name in signed_headers.split(';') {
        line(&canonical_header(head.headers(), name));
    }
    line(b"");
    line(signed_headers.as_bytes());
    text.extend_from_slice(payload_hash.as_bytes());
    text
}

/// Returns a header with its name in lower case and its values trimmed.
fn canonical_header(headers: &HeaderMap, name: &str) -> Vec<u8> {
    let mut text = name.to_ascii_lowercase().into_bytes();
    text.push(b':');
    for (at, value) in headers.get_all(name).iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        push_trimmed(&mut text, value.as_bytes());
    }
    text
}

/// Appends a value with the blanks at its ends removed and those inside collapsed.
fn push_trimmed(text: &mut Vec<u8>, value: &[u8]) {
    let words = value.split(|b| matches!(b, b' ' | b'\t'));
    for (at, word) in words.filter(|word| !word.is_empty()).enumerate() {
        if at > 0 {
            text.push(b' ');
        }
        text.extend_from_slice(word);
    }
}

/// Returns the query parameters, uniformly encoded and sorted.
fn canonical_query(query: &str) -> String {
    let parts = query.split('&').filter(|part| !part.is_empty());
    let mut parameters: Vec<_> = parts
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (encoded(name), encoded(value))
        })
        .collect();
    parameters.sort_unstable();
    let parts: Vec<_> = parameters
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    parts.join("&")
}

/// Decodes and encodes a text, so that equal texts are encoded equally.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in decoded(text) {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after
            .first_chunk::<2>()
            .and_then(|digits| hex_byte(*digits));
        match (first, digits) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// Parses two hexadecimal digits.
pub(super) fn hex_byte(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? << 4 | low?).ok()
}
