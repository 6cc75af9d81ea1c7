//! Errors of starting a server.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// The server could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// Anyone on the network could read and write. Set [keys](crate::Options::keys), or confirm it with
    /// [`Options::insecure`](crate::Options::insecure).
    Exposed {
        /// The address.
        listen: SocketAddr,
    },
    /// The address cannot be bound: another program uses it, or this machine does not have it.
    Bind {
        /// The address.
        listen: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exposed { listen } => write!(
                f,
                "other machines can reach this address, and no keys are set: listen={listen}"
            ),
            Self::Bind { listen, source } => {
                write!(f, "cannot listen on the address: {source}: listen={listen}")
            }
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Exposed { .. } => None,
            Self::Bind { source, .. } => Some(source),
        }
    }
}
