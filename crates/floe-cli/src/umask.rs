//! The permissions of new files.

/// Makes new files and directories private to the user: stores, backups and exports hold data that other users must not
/// read.
#[cfg(unix)]
pub(super) fn restrict() {
    use rustix::fs::Mode;

    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Does nothing: permissions are inherited from the directory.
#[cfg(not(unix))]
pub(super) fn restrict() {}
