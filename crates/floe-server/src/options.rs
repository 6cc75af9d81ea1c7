//! The settings of a server.

use std::net::{Ipv4Addr, SocketAddr};

use floe_store::Env;

use crate::limits::Limits;
use crate::serve_error::ServeError;
use crate::sigv4::Keys;

/// The region that a server is in by default.
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

/// Setters that do nothing but set: the option, what it takes, and what becomes of it.
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
    /// The defaults: a free port of this machine, every credential accepted, no web pages.
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
        /// Where to listen. An address that other machines can reach is refused without [`keys`](Self::keys), unless
        /// it is said to be [insecure](Self::insecure).
        listen: SocketAddr = listen;

        /// The region of the server. With [`keys`](Self::keys), a signature for another one is refused; without this,
        /// every region is accepted, and the server says that it is in us-east-1.
        region: impl Into<String> = Some(region.into());

        /// Lets in only requests that are signed with one of these.
        keys: Keys = Some(keys);

        /// What keeps one client from taking the server away from the others.
        limits: Limits = limits;

        /// Where time and ids come from.
        env: Env = env;
    }

    /// Lets everybody in who can reach the server, also from other machines.
    #[must_use]
    pub const fn insecure(mut self, on: bool) -> Self {
        self.is_insecure = on;
        self
    }

    /// A name under which clients reach the server, in addition to addresses and `localhost`: a name, all names
    /// below one (`*.example.com`), or all (`*`).
    #[must_use]
    pub fn allow_host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into());
        self
    }

    /// Lets the web pages of an origin use the server (`https://app.example.com`), or those of all (`*`).
    #[must_use]
    pub fn cors(mut self, origin: impl Into<String>) -> Self {
        self.cors.push(origin.into());
        self
    }

    /// Refuses an address that everybody could use, as [`Server::bind`](crate::Server::bind) does.
    ///
    /// # Errors
    ///
    /// [`ServeError::Exposed`].
    pub fn check(&self) -> Result<(), ServeError> {
        let is_open = self.keys.is_none() && !self.is_insecure;
        match is_open && !self.listen.ip().is_loopback() {
            true => Err(ServeError::Exposed {
                listen: self.listen,
            }),
            false => Ok(()),
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
