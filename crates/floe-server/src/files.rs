//! How many files this process may open. A connection is a file, and so is everything that the engine writes to.

use crate::limits::FILES_RESERVED;

/// The most that is asked for: more than any limit on connections, and within what all systems grant.
#[cfg(unix)]
const FILES_MAX: u64 = 65_536;

/// Raises the number of files that the process may open to what the system grants without asking.
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
        // Where it cannot be raised, fewer connections are taken.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// There is no such limit.
#[cfg(not(unix))]
pub fn raise_limit() {}

/// The connections for which there are files, with enough left over for the engine.
pub(crate) fn connections_max() -> usize {
    let reserved = |files: u64| files.saturating_sub(FILES_RESERVED).max(files / 4);
    files_max().map_or(usize::MAX, |files| {
        usize::try_from(reserved(files)).unwrap_or(usize::MAX)
    })
}

/// The files that the process may open; none if there is no limit.
#[cfg(unix)]
fn files_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn files_max() -> Option<u64> {
    None
}
