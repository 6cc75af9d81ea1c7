//! Rejects requests from web pages.
//!
//! A page in a browser can make the browser send requests to servers on the same machine. Two headers reveal them,
//! which a page cannot forge:
//!
//! - `Host`: a page whose host name was made to resolve to this machine (DNS rebinding) sends that name. Therefore only
//!   names are accepted that an attacker cannot own: addresses, `localhost`, the names by which containers reach their
//!   host, and [allowed](crate::Options::allow_host) names. A server that listens on the network also accepts names
//!   without a dot, which services of Docker Compose have.
//! - `Origin`: a page of another site sends its origin. It is rejected unless it is [allowed](crate::Options::cors).

use std::fmt;
use std::net::IpAddr;

use hyper::Request;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::options::Options;

/// Host names under which a container reaches its machine. The top-level domain is reserved, so an attacker cannot own
/// them.
const CONTAINER_HOSTS: [&str; 3] = [
    "host.docker.internal",
    "gateway.docker.internal",
    "host.containers.internal",
];

/// Decides which requests are accepted.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: Vec<String>,
    origins: Vec<HeaderValue>,
    any_origin: bool,
    /// Whether names without a dot are accepted.
    is_exposed: bool,
}

/// The origin of a page that may read the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The value of `Access-Control-Allow-Origin`.
    pub(crate) value: HeaderValue,
    /// Whether the response depends on the origin.
    pub(crate) is_named: bool,
}

/// Why a request is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GuardRejection {
    /// The host name is not allowed.
    Host(String),
    /// The origin of the page is not allowed.
    Origin(String),
    /// A header occurs more than once that must be unique.
    Several(&'static str),
}

impl fmt::Display for GuardRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => write!(
                f,
                "the host name is not allowed; to accept it, start floe with --allow-host {}: host={host:?}",
                host_name(host)
            ),
            Self::Origin(origin) => write!(
                f,
                "requests from this web page are not allowed; to accept them, start floe with --cors {origin}: \
                 origin={origin:?}"
            ),
            Self::Several(name) => write!(f, "the request has more than one {name} header"),
        }
    }
}

impl Guard {
    pub(crate) fn new(options: &Options) -> Self {
        let origins = options.cors.iter();
        Self {
            hosts: options.hosts.clone(),
            any_origin: options.cors.iter().any(|origin| origin == "*"),
            origins: origins
                .filter_map(|origin| HeaderValue::from_str(origin).ok())
                .collect(),
            is_exposed: !options.listen.ip().is_loopback(),
        }
    }

    /// Checks a request. Returns its origin if it comes from a page of another site that may read the response.
    pub(crate) fn check(&self, head: &Request<()>) -> Result<Option<Origin>, GuardRejection> {
        let headers = head.headers();
        // The host in the request line takes precedence over the header.
        if let Some(authority) = head.uri().authority() {
            self.check_host(authority.as_str())?;
        }
        let host = unique(headers, &header::HOST, "Host")?;
        // Browsers always send the header, so a request without it does not come from one.
        if let Some(host) = host {
            self.check_host(&text(host))?;
        }
        let origin = unique(headers, &header::ORIGIN, "Origin")?;
        match origin {
            None => Ok(None),
            Some(origin) => self.check_origin(origin, host),
        }
    }

    fn check_host(&self, host: &str) -> Result<(), GuardRejection> {
        let name = host_name(host);
        let is_own = is_address(name)
            || is_local(name)
            || self.is_exposed && !name.is_empty() && !name.contains('.')
            || self.hosts.iter().any(|allowed| is_match(allowed, name));
        if is_own {
            Ok(())
        } else {
            Err(GuardRejection::Host(host.to_owned()))
        }
    }

    fn check_origin(
        &self,
        origin: &HeaderValue,
        host: Option<&HeaderValue>,
    ) -> Result<Option<Origin>, GuardRejection> {
        if self.any_origin {
            return Ok(Some(Origin {
                value: HeaderValue::from_static("*"),
                is_named: false,
            }));
        }
        if self.origins.contains(origin) {
            return Ok(Some(Origin {
                value: origin.clone(),
                is_named: true,
            }));
        }
        // A page of this server.
        let site = text(origin);
        let site = site
            .strip_prefix("http://")
            .or_else(|| site.strip_prefix("https://"));
        match site.zip(host) {
            Some((site, host)) if site.as_bytes() == host.as_bytes() => Ok(None),
            _ => Err(GuardRejection::Origin(text(origin).into_owned())),
        }
    }
}

/// Returns the value of a header that must not be repeated.
fn unique<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    shown: &'static str,
) -> Result<Option<&'a HeaderValue>, GuardRejection> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (first, None) => Ok(first),
        _ => Err(GuardRejection::Several(shown)),
    }
}

fn text(value: &HeaderValue) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

/// Returns the host name without the port, the brackets of an address, and the trailing dot.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    let name = host.split(':').next().unwrap_or_default();
    name.strip_suffix('.').unwrap_or(name)
}

/// Whether the name is an IP address. Addresses are safe because no name was resolved that an attacker controls.
fn is_address(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok()
}

fn is_local(name: &str) -> bool {
    is_match("localhost", name)
        || is_match("*.localhost", name)
        || CONTAINER_HOSTS.iter().any(|known| is_match(known, name))
}

/// Whether a name matches the allowed one: equal, below it if it begins with `*.`, or any name for `*`.
fn is_match(allowed: &str, name: &str) -> bool {
    match allowed.strip_prefix('*') {
        None => allowed.eq_ignore_ascii_case(name),
        Some(suffix) => {
            let at = name.len().checked_sub(suffix.len());
            let end = at.and_then(|at| name.get(at..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
        }
    }
}
