//! The settings of a server.

use std::net::{Ipv4Addr, SocketAddr};

use floe_store::Env;

use crate::limits::Limits;
use crate::serve_error::ServeError;
use crate::sigv4::Keys;

/// The default region.
const REGION: &str = "us-east-1";

/// The settings of a [`Server`](crate::Server).
///
/// ```
/// use floe_server::{Keys, Options};
///
/// let options = Options::new()
///     .listen(([0, 0, 0, 0], 8000).into())
///     .keys(Keys::one("AKIDEXAMPLE", "a secret"))
///     .allow_host("db.example.com");
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) listen: SocketAddr,
    pub(crate) region: Option<String>,
    pub(crate) keys: Option<Keys>,
    pub(crate) is_insecure: bool,
    pub(crate) hosts: Vec<String>,
    pub(crate) cors: Vec<String>,
    pub(crate) limits: Limits,
    pub(crate) env: Env,
}

/// Declares plain setters: the option, its parameter type, and the stored value.
macro_rules! setters {
    ($( $(#[$doc:meta])* $option:ident: $taken:ty = $value:expr; )+) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $option(mut self, $option: $taken) -> Self {
            self.$option = $value;
            self
        }
    )+};
}

impl Options {
    /// Returns the defaults: a free port of this machine, any credentials accepted, no web pages.
    pub fn new() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            region: None,
            keys: None,
            is_insecure: false,
            hosts: Vec::new(),
            cors: Vec::new(),
            limits: Limits::default(),
            env: Env::system(),
        }
    }

    setters! {
        /// The address to listen on. An address that other machines can reach is rejected without [`keys`](Self::keys),
        /// unless the server is [insecure](Self::insecure).
        listen: SocketAddr = listen;

        /// The region of the server. With [`keys`](Self::keys), signatures for other regions are rejected. Default: any
        /// region is accepted, and the server reports us-east-1.
        region: impl Into<String> = Some(region.into());

        /// Accepts only requests that are signed with one of these keys.
        keys: Keys = Some(keys);

        /// Limits that keep one client from starving other clients.
        limits: Limits = limits;

        /// The source of time and ids.
        env: Env = env;
    }

    /// Whether unsigned requests are accepted from other machines too. Default: no.
    #[must_use]
    pub const fn insecure(mut self, on: bool) -> Self {
        self.is_insecure = on;
        self
    }

    /// Accepts a host name in addition to addresses and `localhost`: one name, all names below one (`*.example.com`),
    /// or all (`*`).
    #[must_use]
    pub fn allow_host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into());
        self
    }

    /// Accepts requests from web pages of an origin (`https://app.example.com`), or of all origins (`*`).
    #[must_use]
    pub fn cors(mut self, origin: impl Into<String>) -> Self {
        self.cors.push(origin.into());
        self
    }

    /// Rejects an address that anyone on the network could use, as [`Server::bind`](crate::Server::bind) does.
    ///
    /// # Errors
    ///
    /// [`ServeError::Exposed`].
    pub fn check(&self) -> Result<(), ServeError> {
        let is_open = self.keys.is_none() && !self.is_insecure;
        if is_open && !self.listen.ip().is_loopback() {
            Err(ServeError::Exposed {
                listen: self.listen,
            })
        } else {
            Ok(())
        }
    }

    pub(crate) fn region_name(&self) -> &str {
        self.region.as_deref().unwrap_or(REGION)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
