//! What a request says about itself, before anything is verified.

use std::borrow::Cow;

use hyper::Request;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::Refusal;

/// The header with the moment of a signature.
pub(super) const AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");

/// The parameters of a signature in the query.
const QUERY_PARTS: [&str; 5] = [
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Signature",
    "X-Amz-SignedHeaders",
    "X-Amz-Date",
];

/// What a request says about who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim<'a> {
    /// In the header `Authorization`.
    Header(Signed<'a>),
    /// In the query.
    Query,
}

/// The parts of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signed<'a> {
    pub(super) algorithm: &'a str,
    pub(super) credential: &'a str,
    pub(super) signed_headers: &'a str,
    pub(super) signature: &'a str,
    pub(super) date: &'a str,
}

/// Reads what a request says about who sent it.
pub(crate) fn claim(head: &Request<()>) -> Result<Claim<'_>, Refusal> {
    let header = head.headers().get(header::AUTHORIZATION);
    let query = head.uri().query().unwrap_or_default();
    let is_in_query = parameter(query, "X-Amz-Algorithm").is_some();
    match header {
        Some(_) if is_in_query => Err(Refusal::invalid(
            "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
        )),
        Some(header) => claim_of_header(header, head.headers()).map(Claim::Header),
        None if is_in_query => check_query(query).map(|()| Claim::Query),
        None => Err(Refusal::MISSING),
    }
}

fn claim_of_header<'a>(
    header: &'a HeaderValue,
    headers: &'a HeaderMap,
) -> Result<Signed<'a>, Refusal> {
    let text = header.to_str().map_err(|_| Refusal::MISSING)?.trim();
    if !text.starts_with("AWS4-") {
        return Err(Refusal::MISSING);
    }
    // Commas and spaces both end a word. One at a time, because the search for a single byte is fast.
    let words = text.split(',').flat_map(|part| part.split(' '));
    let mut words = words.filter(|word| !word.is_empty());
    let algorithm = words.next().unwrap_or_default();
    let mut signed = Signed {
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

impl<'a> Signed<'a> {
    fn check(self, text: &str) -> Result<Signed<'a>, Refusal> {
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
        match message.is_empty() {
            true => Ok(self),
            false => Err(Refusal::incomplete(format!(
                "{message}Authorization={text}"
            ))),
        }
    }
}

fn date(headers: &HeaderMap) -> &str {
    let value = headers.get(AMZ_DATE).or_else(|| headers.get(header::DATE));
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn check_query(query: &str) -> Result<(), Refusal> {
    let lacks = |name: &&str| parameter(query, name).is_none_or(str::is_empty);
    let mut message = String::new();
    for name in QUERY_PARTS.into_iter().filter(lacks) {
        message += &format!("AWS query-string parameters must include '{name}'. ");
    }
    match message.is_empty() {
        true => Ok(()),
        false => Err(Refusal::incomplete(Cow::Owned(
            message + "Re-examine the query-string parameters.",
        ))),
    }
}

/// The value of a parameter of the query, as it stands there.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|part| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        (key == name).then_some(value)
    })
}
