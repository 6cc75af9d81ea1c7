//! Keeps web pages out.
//!
//! A page that somebody opens in a browser can make that browser send requests to servers on the same machine.
//! Two headers show it, which a page cannot forge:
//!
//! - `Host`: a page whose own name was made to point here (DNS rebinding) sends that name. So only names are
//!   accepted that nobody outside can own: addresses, `localhost`, the names that containers give to their host,
//!   and what was [allowed](crate::Options::allow_host). A server that listens to its network also accepts names
//!   without a dot, as services of Docker Compose have.
//! - `Origin`: the page of another site sends where it comes from. It is refused unless that
//!   [was allowed](crate::Options::cors).

use std::fmt;
use std::net::IpAddr;

use hyper::Request;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::options::Options;

/// Names under which a container reaches the machine it runs on. The top-level domain is reserved: nobody outside
/// can own them.
const CONTAINER_HOSTS: [&str; 3] = [
    "host.docker.internal",
    "gateway.docker.internal",
    "host.containers.internal",
];

/// What is let in.
#[derive(Debug)]
pub(crate) struct Guard {
    hosts: Vec<String>,
    origins: Vec<HeaderValue>,
    any_origin: bool,
    /// Names without a dot are accepted.
    is_exposed: bool,
}

/// A page that may read the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// As it stands in the answer.
    pub(crate) value: HeaderValue,
    /// The answer is for this origin and no other.
    pub(crate) is_named: bool,
}

/// Why a request is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is for a host of this name.
    Host(String),
    /// It comes from a page of this origin.
    Origin(String),
    /// It has several of a header that there can be only one of.
    Several(&'static str),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => write!(
                f,
                "the request is for a host that this server does not go by; to accept it, start floe with \
                 --allow-host {}: host={host:?}",
                name_of(host)
            ),
            Self::Origin(origin) => write!(
                f,
                "the request comes from a web page; to accept it, start floe with --cors {origin}: \
                 origin={origin:?}"
            ),
            Self::Several(name) => write!(f, "the request has more than one header {name}"),
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

    /// Lets a request in, or does not. If a page of another site is behind it that may read the answer, returns which.
    pub(crate) fn check(&self, head: &Request<()>) -> Result<Option<Origin>, Refused> {
        let headers = head.headers();
        // A request that names its host in the first line means that one, whatever the header says.
        if let Some(authority) = head.uri().authority() {
            self.check_host(authority.as_str())?;
        }
        let host = single(headers, &header::HOST, "Host")?;
        // Browsers always name the host, so who does not is none.
        if let Some(host) = host {
            self.check_host(&text(host))?;
        }
        let origin = single(headers, &header::ORIGIN, "Origin")?;
        match origin {
            None => Ok(None),
            Some(origin) => self.check_origin(origin, host),
        }
    }

    fn check_host(&self, host: &str) -> Result<(), Refused> {
        let name = name_of(host);
        let is_own = is_address(name)
            || is_local(name)
            || self.is_exposed && !name.is_empty() && !name.contains('.')
            || self.hosts.iter().any(|allowed| is_match(allowed, name));
        match is_own {
            true => Ok(()),
            false => Err(Refused::Host(host.to_owned())),
        }
    }

    fn check_origin(
        &self,
        origin: &HeaderValue,
        host: Option<&HeaderValue>,
    ) -> Result<Option<Origin>, Refused> {
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
        // A page of this very server.
        let site = text(origin);
        let site = site
            .strip_prefix("http://")
            .or_else(|| site.strip_prefix("https://"));
        match site.zip(host) {
            Some((site, host)) if site.as_bytes() == host.as_bytes() => Ok(None),
            _ => Err(Refused::Origin(text(origin).into_owned())),
        }
    }
}

/// The value of a header that there can be only one of.
fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    shown: &'static str,
) -> Result<Option<&'a HeaderValue>, Refused> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (first, None) => Ok(first),
        _ => Err(Refused::Several(shown)),
    }
}

fn text(value: &HeaderValue) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

/// The name in a host: without the port, the brackets of an address and the dot of a full name.
fn name_of(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    let name = host.split(':').next().unwrap_or_default();
    name.strip_suffix('.').unwrap_or(name)
}

/// An address is the same for everybody: no name was looked up that somebody could have changed.
fn is_address(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok()
}

fn is_local(name: &str) -> bool {
    is_match("localhost", name)
        || is_match("*.localhost", name)
        || CONTAINER_HOSTS.iter().any(|known| is_match(known, name))
}

/// Whether a name is the allowed one, or below it if the allowed one begins with `*.`; `*` is every name.
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
