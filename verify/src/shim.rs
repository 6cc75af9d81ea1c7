//! Builds the I/O shim and prepares commands to run under it.
//!
//! The shim is a small C library, preloaded into a process, that watches one
//! directory: it makes chosen calls fail ([`Fault`]), counts the calls that
//! could fail ([`Counts`]), and records every change and sync in one order (a
//! trace, which [`crate::disk`] replays). This module knows nothing of what the
//! process does. The C side is described in `verify/shim/shim.h`.

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

/// Exit status of a watched process in which the shim gave up; the reason
/// stands on its standard error.
pub(crate) const SHIM_EXIT: i32 = 97;

/// The built library.
#[derive(Debug, Clone)]
pub(crate) struct Shim {
    library: PathBuf,
}

impl Shim {
    /// Builds the library into cargo's target directory, unless it lies there
    /// already for these sources.
    ///
    /// # Errors
    ///
    /// When the platform is not Linux, no C compiler is found, or it fails.
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
        // Builders may run side by side, in processes or threads: each works in
        // its own directory, and the last rename wins with equal content.
        static BUILDS: AtomicU32 = AtomicU32::new(0);
        let build = BUILDS.fetch_add(1, Ordering::Relaxed);
        let scratch = dir.join(format!("build-{}-{build}", std::process::id()));
        fs::create_dir_all(&scratch)?;
        let built = compile(&scratch, compiler)
            .and_then(|()| fs::rename(scratch.join("shim.so"), &library));
        fs::remove_dir_all(&scratch)?;
        built.map(|()| Self { library })
    }

    /// Watches `dir`, which must exist when the command starts. It counts as
    /// durable itself; all that happens below it is seen.
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
        let message = format!("the I/O shim needs {why} os={os} arch={arch}");
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
        "the I/O shim does not compile compiler={} {status}\n{stderr}",
        compiler.display()
    )))
}

fn explain_missing(compiler: &OsStr, error: &io::Error) -> io::Error {
    let message = format!(
        "cannot run the C compiler that builds the I/O shim; install one or name it in CC compiler={} cause={error}",
        compiler.display()
    );
    io::Error::new(error.kind(), message)
}

/// Where cargo put the running binary; tests lie one level deeper.
fn target_dir() -> io::Result<PathBuf> {
    let mut dir = std::env::current_exe()?;
    dir.pop();
    if dir.ends_with("deps") {
        dir.pop();
    }
    Ok(dir)
}

/// What to do with one watched process; made by [`Shim::watch`].
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
    /// Makes calls fail. Together with [`Watch::trace`], a failed sync also
    /// leaves its mark in the trace: what it should have made durable counts
    /// as lost, even if a later sync succeeds.
    pub(crate) fn fail(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Counts calls into `file`, to be read with [`Counts::read`] at any time,
    /// also after the process was killed.
    pub(crate) fn count(mut self, file: impl Into<PathBuf>) -> Self {
        self.counts = Some(file.into());
        self
    }

    /// Records the directory's content at the start and every change and sync
    /// since into `file`, to be read with [`crate::disk::Trace::read`].
    pub(crate) fn trace(mut self, file: impl Into<PathBuf>) -> Self {
        self.trace = Some(file.into());
        self
    }

    /// Records each write that the process makes to `file` as one mark of the
    /// trace: this is how acknowledgements enter its order. The file is created.
    pub(crate) fn marks(mut self, file: impl Into<PathBuf>) -> Self {
        self.marks = Some(file.into());
        self
    }

    /// Sets the environment of `command`. The process must not execute other
    /// programs: they would be killed by the shim's filter, which they inherit.
    ///
    /// # Errors
    ///
    /// When the watched directory does not exist, or one of the shim's own
    /// files would lie inside it.
    pub(crate) fn apply(&self, command: &mut Command) -> io::Result<()> {
        let dir = self.dir.canonicalize().map_err(|error| {
            let message = format!(
                "the watched directory must exist dir={} cause={error}",
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

/// The absolute path of `file`, which must not lie below `dir`.
fn outside(dir: &Path, file: &Path) -> io::Result<PathBuf> {
    let file = std::path::absolute(file)?;
    let parent = file.parent().unwrap_or(Path::new("/")).canonicalize()?;
    if parent.starts_with(dir) {
        let message = format!(
            "the shim's own file lies in the watched directory file={}",
            file.display()
        );
        return Err(io::Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(file)
}

/// Which call fails: the `nth` of its kind, counted from 1 over the process,
/// and if `sticky` all later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// What fails and how.
    pub(crate) kind: FaultKind,
    /// Which call, counted from 1.
    pub(crate) nth: u64,
    /// Whether later calls fail as well.
    pub(crate) sticky: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sticky = if self.sticky { ":sticky" } else { "" };
        write!(out, "{}:{}{sticky}", self.kind.name(), self.nth)
    }
}

/// The ways in which calls on watched files can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FaultKind {
    /// A write in any form, or fallocate, answers EIO and writes nothing.
    WriteEio,
    /// The same with ENOSPC.
    WriteEnospc,
    /// A write of two bytes or more writes its first half and says so; when
    /// sticky, all later writes answer ENOSPC.
    WriteShort,
    /// fsync or fdatasync, of a file or a directory, answers EIO.
    SyncEio,
    /// Opening for writing or creating answers EIO.
    OpenEio,
    /// A rename answers EIO and does nothing.
    RenameEio,
    /// truncate or ftruncate answers EIO.
    TruncateEio,
    /// unlink or rmdir answers EIO.
    UnlinkEio,
    /// mkdir answers EIO.
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

/// How often a watched process made calls that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Writes in any form, and fallocate.
    pub(crate) writes: u64,
    /// Those of them that can be cut short.
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
    /// Calls that the shim made fail.
    pub(crate) injected: u64,
}

impl Counts {
    /// Reads the file given to [`Watch::count`].
    ///
    /// # Errors
    ///
    /// When the file is not the shim's, which also means that the process did
    /// not load it.
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
                format!("not the shim's counts file={}", file.display()),
            )),
        }
    }

    /// The order is that of `enum class` in `shim.h`.
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

    /// How many points there are for a fault of this kind: `nth` is worth
    /// trying from 1 to this.
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
