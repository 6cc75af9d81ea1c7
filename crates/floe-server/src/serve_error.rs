//! Why a server could not be started.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why a server could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// Everybody on the network could read and write. Set [keys](crate::Options::keys), or say that it is meant
    /// ([`Options::insecure`](crate::Options::insecure)).
    Exposed {
        /// The address.
        listen: SocketAddr,
    },
    /// The address cannot be had: another program has it, or this machine does not.
    Bind {
        /// The address.
        listen: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exposed { listen } => write!(
                f,
                "other machines can reach this address, and without keys everybody would be let in: listen={listen}"
            ),
            Self::Bind { listen, source } => {
                write!(
                    f,
                    "the address cannot be listened on: {source}: listen={listen}"
                )
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
