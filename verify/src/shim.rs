//! Builds the I/O shim, and prepares commands that run under it.
//!
//! The shim is a small C library that is preloaded into a process and watches one directory: it makes chosen calls fail
//! ([`Fault`]), counts the calls that can fail ([`Counts`]), and records every change and sync in order (a trace, which
//! [`crate::disk`] replays). This module is independent of the work of the process. The C side is described in
//! `verify/shim/shim.h`.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(test)]
mod tests;

const SOURCES: [(&str, &str); 8] = [
    ("shim.h", include_str!("../shim/shim.h")),
    ("shim.c", include_str!("../shim/shim.c")),
    ("gate.c", include_str!("../shim/gate.c")),
    ("filter.c", include_str!("../shim/filter.c")),
    ("calls.c", include_str!("../shim/calls.c")),
    ("files.c", include_str!("../shim/files.c")),
    ("fault.c", include_str!("../shim/fault.c")),
    ("trace.c", include_str!("../shim/trace.c")),
];

const FLAGS: [&str; 7] = [
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-shared",
];

/// Exit status of a watched process in which the shim failed; standard error has the reason.
pub(crate) const SHIM_EXIT: i32 = 97;

/// The built library.
#[derive(Debug, Clone)]
pub(crate) struct Shim {
    library: PathBuf,
}

impl Shim {
    /// Builds the library in cargo's target directory, unless it exists there for these sources.
    ///
    /// # Errors
    ///
    /// When the platform is not Linux, no C compiler is found, or the compiler fails.
    pub(crate) fn build() -> io::Result<Self> {
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        Self::build_in(&target_dir()?.join("floe-shim"), &compiler)
    }

    fn build_in(dir: &Path, compiler: &OsStr) -> io::Result<Self> {
        check_platform()?;
        let digest = digest(compiler);
        let library = dir.join(format!("floe-shim-{digest:016x}.so"));
        if library.exists() {
            return Ok(Self { library });
        }
        // Builds may run in parallel, in processes or threads: each works in its own directory, and the last rename
        // wins with equal content.
        static BUILDS: AtomicU32 = AtomicU32::new(0);
        let build = BUILDS.fetch_add(1, Ordering::Relaxed);
        let scratch = dir.join(format!("build-{}-{build}", std::process::id()));
        fs::create_dir_all(&scratch)?;
        let built = compile(&scratch, compiler)
            .and_then(|()| fs::rename(scratch.join("shim.so"), &library));
        fs::remove_dir_all(&scratch)?;
        built.map(|()| Self { library })
    }

    /// Watches everything below `dir`, which must exist when the command starts. The directory itself counts as
    /// durable.
    pub(crate) fn watch(&self, dir: impl Into<PathBuf>) -> Watch {
        Watch {
            library: self.library.clone(),
            dir: dir.into(),
            fault: None,
            counts: None,
            trace: None,
            marks: None,
        }
    }
}

fn check_platform() -> io::Result<()> {
    let refuse = |why: &str| {
        let os = std::env::consts::OS;
        let arch = std::env::consts::ARCH;
        let message = format!("the I/O shim needs {why}: os={os} arch={arch}");
        Err(io::Error::new(ErrorKind::Unsupported, message))
    };
    if !cfg!(target_os = "linux") {
        return refuse("Linux");
    }
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return refuse("x86_64 or aarch64");
    }
    if cfg!(target_feature = "crt-static") {
        return refuse("a dynamically linked libc to be preloaded");
    }
    Ok(())
}

fn digest(compiler: &OsStr) -> u64 {
    let mut hasher = DefaultHasher::new();
    (SOURCES, FLAGS, compiler).hash(&mut hasher);
    hasher.finish()
}

fn compile(dir: &Path, compiler: &OsStr) -> io::Result<()> {
    for (name, text) in SOURCES {
        fs::write(dir.join(name), text)?;
    }
    let units = SOURCES.iter().map(|(name, _)| *name);
    let output = Command::new(compiler)
        .current_dir(dir)
        .args(FLAGS)
        .args(["-o", "shim.so"])
        .args(units.filter(|name| name.ends_with(".c")))
        .arg("-lpthread")
        .output()
        .map_err(|error| explain_missing(compiler, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let status = output.status;
    Err(io::Error::other(format!(
        "the I/O shim does not compile: compiler={} {status}\n{stderr}",
        compiler.display()
    )))
}

fn explain_missing(compiler: &OsStr, error: &io::Error) -> io::Error {
    let message = format!(
        "cannot run the C compiler for the I/O shim: install one or set CC: compiler={} cause={error}",
        compiler.display()
    );
    io::Error::new(error.kind(), message)
}

/// Returns cargo's output directory of the running binary; tests are one level deeper.
fn target_dir() -> io::Result<PathBuf> {
    let mut dir = std::env::current_exe()?;
    dir.pop();
    if dir.ends_with("deps") {
        dir.pop();
    }
    Ok(dir)
}

/// The configuration of one watched process, created by [`Shim::watch`].
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    library: PathBuf,
    dir: PathBuf,
    fault: Option<Fault>,
    counts: Option<PathBuf>,
    trace: Option<PathBuf>,
    marks: Option<PathBuf>,
}

impl Watch {
    /// Makes calls fail. With [`Watch::trace`], a failed sync is also recorded: changes before it count as not durable,
    /// even if a later sync succeeds.
    pub(crate) fn fail(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Counts calls in `file`, which [`Counts::read`] can read at any time, also after the process was killed.
    pub(crate) fn count(mut self, file: impl Into<PathBuf>) -> Self {
        self.counts = Some(file.into());
        self
    }

    /// Records the initial content of the directory and every later change and sync in `file`, which
    /// [`crate::disk::Trace::read`] reads.
    pub(crate) fn trace(mut self, file: impl Into<PathBuf>) -> Self {
        self.trace = Some(file.into());
        self
    }

    /// Records each write of the process to `file` as a mark in the trace, to order acknowledgements with the changes.
    /// The file is created.
    pub(crate) fn marks(mut self, file: impl Into<PathBuf>) -> Self {
        self.marks = Some(file.into());
        self
    }

    /// Sets the environment of `command`. The process must not execute other programs: they would inherit the shim's
    /// filter and be killed by it.
    ///
    /// # Errors
    ///
    /// When the watched directory does not exist, or contains one of the shim's own files.
    pub(crate) fn apply(&self, command: &mut Command) -> io::Result<()> {
        let dir = self.dir.canonicalize().map_err(|error| {
            let message = format!(
                "the watched directory must exist: path={} cause={error}",
                self.dir.display()
            );
            io::Error::new(error.kind(), message)
        })?;
        let files = [
            ("FLOE_SHIM_COUNT", &self.counts),
            ("FLOE_SHIM_TRACE", &self.trace),
            ("FLOE_SHIM_MARKS", &self.marks),
        ];
        for (name, file) in files {
            match file {
                Some(file) => command.env(name, outside(&dir, file)?),
                None => command.env_remove(name),
            };
        }
        match self.fault {
            Some(fault) => command.env("FLOE_SHIM_FAIL", fault.to_string()),
            None => command.env_remove("FLOE_SHIM_FAIL"),
        };
        command.env("FLOE_SHIM_DIR", dir);
        command.env("LD_PRELOAD", &self.library);
        Ok(())
    }
}

/// Returns the absolute path of `file`, which must not be below `dir`.
fn outside(dir: &Path, file: &Path) -> io::Result<PathBuf> {
    let file = std::path::absolute(file)?;
    let parent = file.parent().unwrap_or(Path::new("/")).canonicalize()?;
    if parent.starts_with(dir) {
        let message = format!(
            "a file of the shim is in the watched directory: path={}",
            file.display()
        );
        return Err(io::Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(file)
}

/// A failure to inject: the `nth` call of its kind in the process, counted from 1, and if `sticky` all later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The kind of call and of failure.
    pub(crate) kind: FaultKind,
    /// Which call, counted from 1.
    pub(crate) nth: u64,
    /// Whether later calls fail too.
    pub(crate) sticky: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sticky = if self.sticky { ":sticky" } else { "" };
        write!(out, "{}:{}{sticky}", self.kind.name(), self.nth)
    }
}

/// The kinds of failures of calls on watched files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FaultKind {
    /// Any kind of write, or fallocate, fails with EIO and writes nothing.
    WriteEio,
    /// The same with ENOSPC.
    WriteEnospc,
    /// A write of two or more bytes writes and returns its first half; if sticky, all later writes fail with ENOSPC.
    WriteShort,
    /// fsync or fdatasync of a file or directory fails with EIO.
    SyncEio,
    /// An open for writing or creating fails with EIO.
    OpenEio,
    /// A rename fails with EIO and has no effect.
    RenameEio,
    /// truncate or ftruncate fails with EIO.
    TruncateEio,
    /// unlink or rmdir fails with EIO.
    UnlinkEio,
    /// mkdir fails with EIO.
    MkdirEio,
}

impl FaultKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 9] = [
        Self::WriteEio,
        Self::WriteEnospc,
        Self::WriteShort,
        Self::SyncEio,
        Self::OpenEio,
        Self::RenameEio,
        Self::TruncateEio,
        Self::UnlinkEio,
        Self::MkdirEio,
    ];

    /// The name in the shim's environment and in figures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WriteEio => "write-eio",
            Self::WriteEnospc => "write-enospc",
            Self::WriteShort => "write-short",
            Self::SyncEio => "sync-eio",
            Self::OpenEio => "open-eio",
            Self::RenameEio => "rename-eio",
            Self::TruncateEio => "truncate-eio",
            Self::UnlinkEio => "unlink-eio",
            Self::MkdirEio => "mkdir-eio",
        }
    }
}

/// The numbers of calls of a watched process that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Writes of any kind, and fallocate.
    pub(crate) writes: u64,
    /// Writes that can be shortened.
    pub(crate) divisible_writes: u64,
    /// fsync and fdatasync.
    pub(crate) syncs: u64,
    /// Opens for writing or creating.
    pub(crate) opens: u64,
    /// Renames.
    pub(crate) renames: u64,
    /// truncate and ftruncate.
    pub(crate) truncates: u64,
    /// unlink and rmdir.
    pub(crate) unlinks: u64,
    /// mkdir.
    pub(crate) mkdirs: u64,
    /// Failures that the shim injected.
    pub(crate) injected: u64,
}

impl Counts {
    /// Reads the file given to [`Watch::count`].
    ///
    /// # Errors
    ///
    /// When the file is not the shim's, which also happens if the process did not load the shim.
    pub(crate) fn read(file: &Path) -> io::Result<Self> {
        let bytes = fs::read(file)?;
        let (magic, rest) = bytes.split_first_chunk::<8>().unzip();
        let words: Vec<u64> = rest
            .unwrap_or_default()
            .chunks_exact(8)
            .filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)))
            .collect();
        let words: Option<[u64; 9]> = words.try_into().ok();
        match (magic, words) {
            (Some(b"FLOECNT1"), Some(words)) => Ok(Self::from_words(words)),
            _ => Err(io::Error::new(
                ErrorKind::InvalidData,
                format!("not a counts file of the shim: path={}", file.display()),
            )),
        }
    }

    /// The order of the words is that of `enum class` in `shim.h`.
    fn from_words(words: [u64; 9]) -> Self {
        let [
            writes,
            divisible_writes,
            syncs,
            opens,
            renames,
            truncates,
            unlinks,
            mkdirs,
            injected,
        ] = words;
        Self {
            writes,
            divisible_writes,
            syncs,
            opens,
            renames,
            truncates,
            unlinks,
            mkdirs,
            injected,
        }
    }

    /// Returns the number of calls that a fault of this kind can hit: the largest useful `nth`.
    pub(crate) fn points(&self, kind: FaultKind) -> u64 {
        match kind {
            FaultKind::WriteEio | FaultKind::WriteEnospc => self.writes,
            FaultKind::WriteShort => self.divisible_writes,
            FaultKind::SyncEio => self.syncs,
            FaultKind::OpenEio => self.opens,
            FaultKind::RenameEio => self.renames,
            FaultKind::TruncateEio => self.truncates,
            FaultKind::UnlinkEio => self.unlinks,
            FaultKind::MkdirEio => self.mkdirs,
        }
    }
}
