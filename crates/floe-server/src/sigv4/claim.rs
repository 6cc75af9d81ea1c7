//! The signature that a request claims to have, before it is verified.

use std::borrow::Cow;

use hyper::Request;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::SignatureError;

/// The header with the time of the signature.
pub(super) const AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");

/// The query parameters of a signature.
const QUERY_PARTS: [&str; 5] = [
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Signature",
    "X-Amz-SignedHeaders",
    "X-Amz-Date",
];

/// The signature of a request, not yet verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim<'a> {
    /// In the `Authorization` header.
    Header(SignatureParts<'a>),
    /// In the query string.
    Query,
}

/// The parts of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignatureParts<'a> {
    pub(super) algorithm: &'a str,
    pub(super) credential: &'a str,
    pub(super) signed_headers: &'a str,
    pub(super) signature: &'a str,
    pub(super) date: &'a str,
}

/// Extracts the signature of a request.
pub(crate) fn claim(head: &Request<()>) -> Result<Claim<'_>, SignatureError> {
    let header = head.headers().get(header::AUTHORIZATION);
    let query = head.uri().query().unwrap_or_default();
    let is_in_query = parameter(query, "X-Amz-Algorithm").is_some();
    match header {
        Some(_) if is_in_query => Err(SignatureError::invalid(
            "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
        )),
        Some(header) => claim_of_header(header, head.headers()).map(Claim::Header),
        None if is_in_query => check_query(query).map(|()| Claim::Query),
        None => Err(SignatureError::MISSING),
    }
}

fn claim_of_header<'a>(
    header: &'a HeaderValue,
    headers: &'a HeaderMap,
) -> Result<SignatureParts<'a>, SignatureError> {
    let text = header.to_str().map_err(|_| SignatureError::MISSING)?.trim();
    if !text.starts_with("AWS4-") {
        return Err(SignatureError::MISSING);
    }
    // Words end with a comma or a space. Split one after the other, because searching for a single byte is fast.
    let words = text.split(',').flat_map(|part| part.split(' '));
    let mut words = words.filter(|word| !word.is_empty());
    let algorithm = words.next().unwrap_or_default();
    let mut signed = SignatureParts {
        algorithm,
        credential: "",
        signed_headers: "",
        signature: "",
        date: date(headers),
    };
    for (name, value) in words.filter_map(|word| word.split_once('=')) {
        match name {
            "Credential" => signed.credential = value,
            "SignedHeaders" => signed.signed_headers = value,
            "Signature" => signed.signature = value,
            _ => {}
        }
    }
    signed.check(text)
}

impl<'a> SignatureParts<'a> {
    fn check(self, text: &str) -> Result<SignatureParts<'a>, SignatureError> {
        let parts = [
            ("Credential", self.credential),
            ("Signature", self.signature),
            ("SignedHeaders", self.signed_headers),
        ];
        let mut message = String::new();
        for (name, _) in parts.into_iter().filter(|(_, value)| value.is_empty()) {
            message += &format!("Authorization header requires '{name}' parameter. ");
        }
        if self.date.is_empty() {
            message += "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ";
        }
        if message.is_empty() {
            return Ok(self);
        }
        Err(SignatureError::incomplete(format!(
            "{message}Authorization={text}"
        )))
    }
}

fn date(headers: &HeaderMap) -> &str {
    let value = headers.get(AMZ_DATE).or_else(|| headers.get(header::DATE));
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn check_query(query: &str) -> Result<(), SignatureError> {
    let lacks = |name: &&str| parameter(query, name).is_none_or(str::is_empty);
    let mut message = String::new();
    for name in QUERY_PARTS.into_iter().filter(lacks) {
        message += &format!("AWS query-string parameters must include '{name}'. ");
    }
    if message.is_empty() {
        return Ok(());
    }
    Err(SignatureError::incomplete(Cow::Owned(
        message + "Re-examine the query-string parameters.",
    )))
}

/// Returns a query parameter without decoding it.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|part| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        (key == name).then_some(value)
    })
}
