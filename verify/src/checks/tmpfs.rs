//! Small disks in memory that can be filled up. They need the permission to mount.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;

/// A mounted file system, unmounted when dropped.
#[derive(Debug)]
pub(super) struct Tmpfs(PathBuf);

/// The space of a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) total: u64,
    pub(super) free: u64,
}

impl Tmpfs {
    /// Mounts a file system of this size, if the user may.
    pub(super) fn mount(at: &Path, bytes: u64) -> Option<Self> {
        let is_mounted = mount(&format!("size={bytes}"), at);
        is_mounted.then(|| Self(at.to_owned()))
    }

    /// Changes the size.
    pub(super) fn resize(&self, bytes: u64) -> Result<(), Failure> {
        if mount(&format!("remount,size={bytes}"), &self.0) {
            return Ok(());
        }
        Err(Failure::broken("cannot resize the tmpfs"))
    }

    /// The mount point.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Measures the space.
    pub(super) fn space(&self) -> io::Result<Space> {
        let found = rustix::fs::statvfs(&self.0)?;
        Ok(Space {
            total: found.f_blocks * found.f_frsize,
            free: found.f_bavail * found.f_frsize,
        })
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // If unmounting fails, so does the removal of the folder, which reports it.
        drop(quiet("umount").arg(&self.0).status());
    }
}

fn mount(options: &str, at: &Path) -> bool {
    let mut command = quiet("mount");
    command
        .args(["-t", "tmpfs", "-o", options, "tmpfs"])
        .arg(at);
    command.status().is_ok_and(|status| status.success())
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}
