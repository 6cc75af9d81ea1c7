//! The keys of a server, and whether a signature was made with one of them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use floe_store::env::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use hyper::Request;
use hyper::header::HeaderName;
use sha2::{Digest, Sha256};

use super::Refusal;
use super::canonical::{canonical_request, hex, hex_byte};
use super::claim::{Claim, Signed};
use super::date::Moment;
use crate::limits::CLOCK_SKEW_MAX;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "dynamodb";
const TERMINATOR: &str = "aws4_request";

const TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const CONTENT_HASH: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// The access keys that a server accepts, each with its secret.
#[derive(Clone)]
pub struct Keys(Arc<Vec<Pair>>);

struct Pair {
    access_key: String,
    secret_key: String,
    /// What was last made of the secret: it stays the same for a day.
    derived: Mutex<Option<Derived>>,
}

/// The key that signs the requests of one day in one region.
#[derive(Clone)]
struct Derived {
    scope: String,
    key: Hmac<Sha256>,
}

impl Keys {
    /// A single key.
    pub fn one(access_key: impl Into<String>, secret_key: impl Into<String>) -> Self {
        Self::new([(access_key, secret_key)])
    }

    /// Several keys, each with its secret.
    pub fn new<A: Into<String>, S: Into<String>>(pairs: impl IntoIterator<Item = (A, S)>) -> Self {
        let pairs = pairs.into_iter().map(|(access_key, secret_key)| Pair {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
            derived: Mutex::default(),
        });
        Self(Arc::new(pairs.collect()))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none, so that nobody is let in.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Finds out whether a request was signed with one of the keys, as it came, just now, and for this service.
    pub(crate) fn verify(
        &self,
        claim: &Claim<'_>,
        head: &Request<()>,
        body: &[u8],
        region: Option<&str>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let Claim::Header(signed) = claim else {
            return Err(Refusal::invalid(
                "This server does not take signatures in the query string: sign with the Authorization header.",
            ));
        };
        let moment = check_moment(signed.date, now)?;
        check_signed_headers(signed, head)?;
        let scope = Scope::parse(signed)?;
        scope.check(&moment.to_string(), region)?;
        let mut pairs = self.0.iter();
        let pair = pairs.find(|pair| pair.access_key == scope.access_key);
        let pair = pair.ok_or(Refusal::UNKNOWN_KEY)?;
        let payload_hash = hex(&Sha256::digest(body));
        let request = canonical_request(head, signed.signed_headers, &payload_hash);
        pair.check(signed, &scope, moment, &request)
    }
}

/// Keys are secret.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|pair| &pair.access_key);
        f.debug_list().entries(names).finish()
    }
}

impl Pair {
    fn check(
        &self,
        signed: &Signed<'_>,
        scope: &Scope<'_>,
        moment: Moment,
        request: &[u8],
    ) -> Result<(), Refusal> {
        let mut mac = self.signer(scope)?;
        mac.update(ALGORITHM.as_bytes());
        mac.update(format!("\n{moment}\n{}\n", scope.text()).as_bytes());
        mac.update(hex(&Sha256::digest(request)).as_bytes());
        let signature = signature_bytes(signed.signature).ok_or(Refusal::MISMATCH)?;
        // Takes the same time wherever the difference is.
        mac.verify_slice(&signature).map_err(|_| Refusal::MISMATCH)
    }

    /// What signs requests of this scope.
    fn signer(&self, scope: &Scope<'_>) -> Result<Hmac<Sha256>, Refusal> {
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
        *derived = Some(Derived {
            scope: text,
            key: key.clone(),
        });
        Ok(key)
    }
}

fn mac(key: &[u8]) -> Result<Hmac<Sha256>, Refusal> {
    // A key may have any length.
    Hmac::new_from_slice(key).map_err(|_| Refusal::MISMATCH)
}

/// The 32 bytes of a signature.
fn signature_bytes(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|pair| hex_byte(*pair)).collect();
    rest.is_empty().then_some(bytes).flatten()
}

/// When a request was signed. It must have been just now: who listens in cannot use it later.
fn check_moment(text: &str, now: Timestamp) -> Result<Moment, Refusal> {
    let Some(moment) = Moment::parse(text) else {
        return Err(Refusal::incomplete(format!(
            "Date must be in ISO-8601 'basic format'. Got '{text}'. See http://en.wikipedia.org/wiki/ISO_8601"
        )));
    };
    let now = Moment(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    let skew = i64::try_from(CLOCK_SKEW_MAX.as_secs()).unwrap_or(i64::MAX);
    let (earliest, latest) = (now.plus(-skew), now.plus(skew));
    let minutes = skew / 60;
    if moment < earliest {
        return Err(Refusal::invalid(format!(
            "Signature expired: {moment} is now earlier than {earliest} ({now} - {minutes} min.)"
        )));
    }
    if moment > latest {
        return Err(Refusal::invalid(format!(
            "Signature not yet current: {moment} is still later than {latest} ({now} + {minutes} min.)"
        )));
    }
    Ok(moment)
}

/// What decides where a request goes and what it does must be signed.
fn check_signed_headers(signed: &Signed<'_>, head: &Request<()>) -> Result<(), Refusal> {
    let is_signed = |name: &str| {
        let mut names = signed.signed_headers.split(';');
        names.any(|signed| signed.eq_ignore_ascii_case(name))
    };
    let must = |name: &str| {
        Err(Refusal::invalid(format!(
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
        return Err(Refusal::incomplete(format!(
            "Unsupported AWS 'algorithm': '{}' (only {ALGORITHM} for now). ",
            signed.algorithm
        )));
    }
    match head.headers().get(CONTENT_HASH) {
        Some(hash) if hash.as_bytes().len() != 64 => Err(Refusal::invalid(
            "The payload must be signed: 'X-Amz-Content-SHA256' must be its hash.",
        )),
        _ => Ok(()),
    }
}

/// What a signature is for: who, which day, which region, which service.
#[derive(Debug)]
struct Scope<'a> {
    access_key: &'a str,
    date: &'a str,
    region: &'a str,
    service: &'a str,
    terminator: &'a str,
}

impl<'a> Scope<'a> {
    fn parse(signed: &Signed<'a>) -> Result<Self, Refusal> {
        let credential = signed.credential.trim_end_matches('/');
        let parts: Vec<_> = credential.split('/').collect();
        let [access_key, date, region, service, terminator] = parts[..] else {
            return Err(Refusal::incomplete(format!(
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

    fn check(&self, moment: &str, region: Option<&str>) -> Result<(), Refusal> {
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
        let day = moment.get(..8).unwrap_or_default();
        if date != day {
            message += &format!(
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: \
                 '{date}' != '{day}', from '{moment}'. "
            );
        }
        match message.trim_end() {
            "" => Ok(()),
            message => Err(Refusal::invalid(message.to_owned())),
        }
    }

    /// What a key is derived for.
    const fn parts(&self) -> [&'a str; 4] {
        [self.date, self.region, self.service, self.terminator]
    }

    fn text(&self) -> String {
        self.parts().join("/")
    }
}

#[cfg(test)]
impl Keys {
    /// Checks a signature for whatever service it is.
    pub(super) fn check_as(&self, signed: &Signed<'_>, request: &[u8]) -> Result<(), Refusal> {
        let scope = Scope::parse(signed)?;
        let moment = Moment::parse(signed.date).ok_or(Refusal::MISSING)?;
        let pair = self.0.first().ok_or(Refusal::UNKNOWN_KEY)?;
        pair.check(signed, &scope, moment, request)
    }
}
