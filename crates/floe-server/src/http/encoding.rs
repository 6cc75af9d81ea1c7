//! Compression of request and response bodies.

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};

use super::{gzip, text};

/// Compression of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Gzip,
    /// `deflate` in HTTP: the zlib format.
    Deflate,
}

impl Encoding {
    const ALL: [Self; 2] = [Self::Gzip, Self::Deflate];

    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }

    pub(super) const fn value(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }

    /// Returns the supported encoding that the client prefers. As in DynamoDB, a preference for `identity` is ignored.
    pub(super) fn negotiate(headers: &HeaderMap) -> Option<Self> {
        let wishes = text(headers, &header::ACCEPT_ENCODING);
        let (mut named, mut other) = (Vec::new(), None);
        for wish in wishes.split(',') {
            let mut parts = wish.split(';');
            let name = parts.next().unwrap_or_default().trim();
            let weight = weight(parts);
            if name == "*" {
                other = Some(weight);
            }
            let known = Self::ALL
                .into_iter()
                .find(|one| name.eq_ignore_ascii_case(one.name()));
            named.extend(known.map(|one| (one, weight)));
        }
        let is_named = |one: &Self| named.iter().any(|(name, _)| name == one);
        let unnamed = Self::ALL.into_iter().find(|one| !is_named(one));
        let mut best = None;
        for (one, weight) in named.iter().copied().chain(unnamed.zip(other)) {
            if weight > best.map_or(0.0, |(_, weight)| weight) {
                best = Some((one, weight));
            }
        }
        best.map(|(one, _)| one)
    }

    pub(super) fn compress(self, bytes: &[u8]) -> Bytes {
        Bytes::from(match self {
            Self::Gzip => gzip::compress(bytes),
            Self::Deflate => miniz_oxide::deflate::compress_to_vec_zlib(bytes, gzip::LEVEL),
        })
    }
}

/// Returns the weight of an encoding, from 0 to 1. A weight that is not a number is ignored.
fn weight<'a>(mut parameters: impl Iterator<Item = &'a str>) -> f32 {
    let value = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    let number = value.and_then(|value| value.parse::<f32>().ok());
    number.unwrap_or(1.0).clamp(0.0, 1.0)
}

/// The encoding of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestEncoding {
    Identity,
    Gzip,
    /// An encoding that DynamoDB does not support.
    Unsupported,
}

impl RequestEncoding {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let Some(value) = headers.get(header::CONTENT_ENCODING) else {
            return Self::Identity;
        };
        match value.as_bytes().trim_ascii() {
            b"" => Self::Identity,
            name if name.eq_ignore_ascii_case(b"identity") => Self::Identity,
            name if name.eq_ignore_ascii_case(b"gzip") => Self::Gzip,
            _ => Self::Unsupported,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(value: &str) -> Option<Encoding> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, value.parse().unwrap());
        Encoding::negotiate(&headers)
    }

    /// DynamoDB's responses, recorded by the tests of Alternator.
    #[test]
    fn preferred_encoding_is_selected() {
        use Encoding::*;
        for (value, expected) in [
            ("", None),
            ("identity", None),
            ("br", None),
            ("x-gzip", None),
            ("gzip", Some(Gzip)),
            ("deflate", Some(Deflate)),
            ("gzip, deflate", Some(Gzip)),
            ("br, identity, deflate, gzip", Some(Deflate)),
            ("GZIP, identity", Some(Gzip)),
            ("dog, gzip ,, cat", Some(Gzip)),
            ("gzip;q=0.8, deflate;q=0.5", Some(Gzip)),
            ("deflate;q=0.5, gzip;q=0.2", Some(Deflate)),
            (
                "br, gzip;q=0, deflate; q = 0.5 , identity;q=0",
                Some(Deflate),
            ),
            ("*", Some(Gzip)),
            ("*, deflate;q=0.5", Some(Gzip)),
            ("*, deflate", Some(Deflate)),
            ("*, gzip;q=0.5", Some(Deflate)),
            ("*;q=0.5,identity", Some(Gzip)),
            ("gzip ;q=0", None),
            ("*;q=0", None),
            ("br;q=0.8,identity;q=0.5,*;q=0", None),
            ("gzip;q=0.5,identity;q=0.8", Some(Gzip)),
            ("\"gzip\"", None),
            ("gzip br", None),
            ("gzip:q=1", None),
            ("gzip;q=31,deflate;q=51", Some(Gzip)),
            ("deflate;q=0.5, gzip;q=1;q=0.2", Some(Gzip)),
            ("deflate;q=0.5,gzip;q=0.", Some(Deflate)),
            ("deflate;q=0.5,gzip;q=0.x", Some(Gzip)),
            ("deflate;q=-0.5,gzip;q=0.2", Some(Gzip)),
            ("gzip;nq=1;q=0 ", None),
            ("gzip;q=0, gzip;q=1, gzip;q=0", Some(Gzip)),
            ("br,identity;q=0.5,gzip;q=0.0001", Some(Gzip)),
        ] {
            assert_eq!(wanted(value), expected, "{value}");
        }
        assert_eq!(Encoding::negotiate(&HeaderMap::new()), None);
    }
}
