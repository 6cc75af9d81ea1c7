//! The access keys of a server, and the verification of signatures.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use floe_store::env::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use hyper::Request;
use hyper::header::HeaderName;
use sha2::{Digest, Sha256};

use super::SignatureError;
use super::canonical::{canonical_request, hex, hex_byte};
use super::claim::{Claim, SignatureParts};
use super::date::SigningTime;
use crate::limits::CLOCK_SKEW_MAX;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "dynamodb";
const TERMINATOR: &str = "aws4_request";

const TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const CONTENT_HASH: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// The access keys that a server accepts, each with its secret.
#[derive(Clone)]
pub struct Keys(Arc<Vec<KeyPair>>);

struct KeyPair {
    access_key: String,
    secret_key: String,
    /// The last derived signing key, which stays the same for a day.
    derived: Mutex<Option<SigningKey>>,
}

/// A signing key for one day in one region.
#[derive(Clone)]
struct SigningKey {
    scope: String,
    key: Hmac<Sha256>,
}

impl Keys {
    /// Returns a single key.
    pub fn one(access_key: impl Into<String>, secret_key: impl Into<String>) -> Self {
        Self::new([(access_key, secret_key)])
    }

    /// Returns several keys, each with its secret.
    pub fn new<A: Into<String>, S: Into<String>>(pairs: impl IntoIterator<Item = (A, S)>) -> Self {
        let pairs = pairs.into_iter().map(|(access_key, secret_key)| KeyPair {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
            derived: Mutex::default(),
        });
        Self(Arc::new(pairs.collect()))
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no keys, so that every request is rejected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Verifies that a request is signed with one of the keys, unmodified, recent, and for this service.
    pub(crate) fn verify(
        &self,
        claim: &Claim<'_>,
        head: &Request<()>,
        body: &[u8],
        region: Option<&str>,
        now: Timestamp,
    ) -> Result<(), SignatureError> {
        let Claim::Header(signed) = claim else {
            return Err(SignatureError::invalid(
                "This server does not accept signatures in the query string: sign with the Authorization header.",
            ));
        };
        let time = check_time(signed.date, now)?;
        check_signed_headers(signed, head)?;
        let scope = Scope::parse(signed)?;
        scope.check(&time.to_string(), region)?;
        let mut pairs = self.0.iter();
        let pair = pairs.find(|pair| pair.access_key == scope.access_key);
        let pair = pair.ok_or(SignatureError::UNKNOWN_KEY)?;
        let payload_hash = hex(&Sha256::digest(body));
        let request = canonical_request(head, signed.signed_headers, &payload_hash);
        pair.check(signed, &scope, time, &request)
    }
}

/// Prints access keys only, no secrets.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|pair| &pair.access_key);
        f.debug_list().entries(names).finish()
    }
}

impl KeyPair {
    fn check(
        &self,
        signed: &SignatureParts<'_>,
        scope: &Scope<'_>,
        time: SigningTime,
        request: &[u8],
    ) -> Result<(), SignatureError> {
        let mut mac = self.signer(scope)?;
        mac.update(ALGORITHM.as_bytes());
        mac.update(format!("\n{time}\n{}\n", scope.text()).as_bytes());
        mac.update(hex(&Sha256::digest(request)).as_bytes());
        let signature = signature_bytes(signed.signature).ok_or(SignatureError::MISMATCH)?;
        // Constant-time comparison.
        mac.verify_slice(&signature)
            .map_err(|_| SignatureError::MISMATCH)
    }

    /// Returns the signing key of a scope.
    fn signer(&self, scope: &Scope<'_>) -> Result<Hmac<Sha256>, SignatureError> {
        let text = scope.text();
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = derived.as_ref().filter(|known| known.scope == text) {
            return Ok(known.key.clone());
        }
        let mut key = mac(format!("AWS4{}", self.secret_key).as_bytes())?;
        for part in scope.parts() {
            key.update(part.as_bytes());
            key = mac(&key.finalize().into_bytes())?;
        }
        *derived = Some(SigningKey {
            scope: text,
            key: key.clone(),
        });
        Ok(key)
    }
}

fn mac(key: &[u8]) -> Result<Hmac<Sha256>, SignatureError> {
    // A key of any length is valid.
    Hmac::new_from_slice(key).map_err(|_| SignatureError::MISMATCH)
}

/// Decodes the 32 bytes of a signature.
fn signature_bytes(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|pair| hex_byte(*pair)).collect();
    rest.is_empty().then_some(bytes).flatten()
}

/// Checks the signing time. It must be recent, so that an intercepted request cannot be replayed later.
fn check_time(text: &str, now: Timestamp) -> Result<SigningTime, SignatureError> {
    let Some(time) = SigningTime::parse(text) else {
        return Err(SignatureError::incomplete(format!(
            "Date must be in ISO-8601 'basic format'. Got '{text}'. See http://en.wikipedia.org/wiki/ISO_8601"
        )));
    };
    let now = SigningTime(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    let skew = i64::try_from(CLOCK_SKEW_MAX.as_secs()).unwrap_or(i64::MAX);
    let (earliest, latest) = (now.plus(-skew), now.plus(skew));
    let minutes = skew / 60;
    if time < earliest {
        return Err(SignatureError::invalid(format!(
            "Signature expired: {time} is now earlier than {earliest} ({now} - {minutes} min.)"
        )));
    }
    if time > latest {
        return Err(SignatureError::invalid(format!(
            "Signature not yet current: {time} is still later than {latest} ({now} + {minutes} min.)"
        )));
    }
    Ok(time)
}

/// Checks that the headers that determine the destination and the operation are signed.
fn check_signed_headers(
    signed: &SignatureParts<'_>,
    head: &Request<()>,
) -> Result<(), SignatureError> {
    let is_signed = |name: &str| {
        let mut names = signed.signed_headers.split(';');
        names.any(|signed| signed.eq_ignore_ascii_case(name))
    };
    let must = |name: &str| {
        Err(SignatureError::invalid(format!(
            "'{name}' must be a 'SignedHeader' in the AWS Authorization."
        )))
    };
    if !is_signed("host") {
        return must("Host");
    }
    if head.headers().contains_key(TARGET) && !is_signed(TARGET.as_str()) {
        return must("X-Amz-Target");
    }
    if signed.algorithm != ALGORITHM {
        return Err(SignatureError::incomplete(format!(
            "Unsupported AWS 'algorithm': '{}' (only {ALGORITHM} for now). ",
            signed.algorithm
        )));
    }
    match head.headers().get(CONTENT_HASH) {
        Some(hash) if hash.as_bytes().len() != 64 => Err(SignatureError::invalid(
            "The payload must be signed: 'X-Amz-Content-SHA256' must be its hash.",
        )),
        _ => Ok(()),
    }
}

/// The credential scope of a signature: access key, day, region and service.
#[derive(Debug)]
struct Scope<'a> {
    access_key: &'a str,
    date: &'a str,
    region: &'a str,
    service: &'a str,
    terminator: &'a str,
}

impl<'a> Scope<'a> {
    fn parse(signed: &SignatureParts<'a>) -> Result<Self, SignatureError> {
        let credential = signed.credential.trim_end_matches('/');
        let parts: Vec<_> = credential.split('/').collect();
        let [access_key, date, region, service, terminator] = parts[..] else {
            return Err(SignatureError::incomplete(format!(
                "Credential must have exactly 5 slash-delimited elements, e.g. \
                 keyid/date/region/service/term, got '{}'",
                signed.credential
            )));
        };
        Ok(Self {
            access_key,
            date,
            region,
            service,
            terminator,
        })
    }

    fn check(&self, time: &str, region: Option<&str>) -> Result<(), SignatureError> {
        let mut message = String::new();
        let [date, own, service, terminator] = self.parts();
        if region.is_some_and(|region| region != own) {
            message += &format!("Credential should be scoped to a valid region, not '{own}'. ");
        }
        if service != SERVICE {
            message += &format!("Credential should be scoped to correct service: '{SERVICE}'. ");
        }
        if terminator != TERMINATOR {
            message += &format!(
                "Credential should be scoped with a valid terminator: '{TERMINATOR}', not '{terminator}'. "
            );
        }
        let day = time.get(..8).unwrap_or_default();
        if date != day {
            message += &format!(
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: \
                 '{date}' != '{day}', from '{time}'. "
            );
        }
        match message.trim_end() {
            "" => Ok(()),
            message => Err(SignatureError::invalid(message.to_owned())),
        }
    }

    /// The parts from which a signing key is derived.
    const fn parts(&self) -> [&'a str; 4] {
        [self.date, self.region, self.service, self.terminator]
    }

    fn text(&self) -> String {
        self.parts().join("/")
    }
}

#[cfg(test)]
impl Keys {
    /// Checks a signature for any service.
    pub(super) fn check_as(
        &self,
        signed: &SignatureParts<'_>,
        request: &[u8],
    ) -> Result<(), SignatureError> {
        let scope = Scope::parse(signed)?;
        let time = SigningTime::parse(signed.date).ok_or(SignatureError::MISSING)?;
        let pair = self.0.first().ok_or(SignatureError::UNKNOWN_KEY)?;
        pair.check(signed, &scope, time, request)
    }
}
