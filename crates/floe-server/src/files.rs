//! The file descriptor limit of this process. Each connection needs a descriptor, and so do the files of the engine.

use crate::limits::FILES_RESERVED;

/// The highest limit requested: more than any limit on connections, and allowed on all systems.
#[cfg(unix)]
const FILES_MAX: u64 = 65_536;

/// Raises the file descriptor limit of this process as far as the system permits.
#[cfg(unix)]
pub fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let granted = limit.maximum.unwrap_or(FILES_MAX).min(FILES_MAX);
    if limit.current.is_some_and(|current| current < granted) {
        let raised = Rlimit {
            current: Some(granted),
            maximum: limit.maximum,
        };
        // If this fails, fewer connections are accepted.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Does nothing: this system has no such limit.
#[cfg(not(unix))]
pub fn raise_limit() {}

/// Returns the number of connections for which there are descriptors, leaving enough for the engine.
pub(crate) fn connections_max() -> usize {
    let reserved = |files: u64| files.saturating_sub(FILES_RESERVED).max(files / 4);
    files_max().map_or(usize::MAX, |files| {
        usize::try_from(reserved(files)).unwrap_or(usize::MAX)
    })
}

/// Returns the file descriptor limit; `None` if there is none.
#[cfg(unix)]
fn files_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn files_max() -> Option<u64> {
    None
}
