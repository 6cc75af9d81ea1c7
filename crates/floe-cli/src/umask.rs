//! The permissions of files that the program makes.

/// Makes files and directories from here on private to the user: stores, backups and exports hold what others may not
/// read.
#[cfg(unix)]
pub(super) fn restrict() {
    use rustix::fs::Mode;

    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Permissions are inherited from the directory.
#[cfg(not(unix))]
pub(super) fn restrict() {}
