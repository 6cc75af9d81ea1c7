//! The program `floe`, as the checks run it: the one that is built for release, another that `--floe` names, or
//! with `--inside` the same code in this binary, which needs no second build.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;

use super::figures::Progress;
use super::tool;
use crate::Failure;

/// The flags of every check that runs the program.
#[derive(Debug, Args)]
pub(super) struct FloeFlags {
    /// Run this program instead of building it
    #[arg(long, value_name = "PATH")]
    floe: Option<PathBuf>,

    /// Run the program inside this one
    #[arg(long)]
    inside: bool,
}

/// The name under which this binary is the program `floe`.
const NAME: &str = "floe";
/// How often a process is asked whether it has ended.
const POLL: Duration = Duration::from_millis(2);
/// A server that is not ready by then hangs.
const READY_MAX: Duration = Duration::from_secs(30);

/// Runs the program `floe` if this binary was started under its name.
pub(crate) fn run_as_floe() -> Option<std::process::ExitCode> {
    let name = std::env::args_os().next()?;
    (name.as_os_str() == OsStr::new(NAME)).then(floe_cli::main)
}

/// Which program to run.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    Build,
    Path(PathBuf),
    Inside,
}

impl From<FloeFlags> for Choice {
    fn from(flags: FloeFlags) -> Self {
        match flags.floe {
            Some(path) => Self::Path(path),
            None if flags.inside => Self::Inside,
            None => Self::Build,
        }
    }
}

impl Choice {
    /// Builds the program if need be.
    pub(super) fn prepare(&self) -> Result<Program, Failure> {
        Ok(match self {
            Self::Build => Program::at(tool::build_floe()?),
            Self::Path(path) => Program::at(std::path::absolute(path)?),
            Self::Inside => Program {
                path: std::env::current_exe()?,
                is_inside: true,
            },
        })
    }
}

/// The program.
#[derive(Clone, Debug)]
pub(super) struct Program {
    path: PathBuf,
    is_inside: bool,
}

impl Program {
    const fn at(path: PathBuf) -> Self {
        Self {
            path,
            is_inside: false,
        }
    }

    /// A call of the program, without keys from the environment.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        if self.is_inside {
            command.arg0(NAME);
        }
        command
            .env_remove("FLOE_ACCESS_KEY")
            .env_remove("FLOE_SECRET_KEY")
            .env_remove("FLOE_ENDPOINT");
        command
    }

    /// `floe serve` on a directory, at a port that the system chooses.
    pub(super) fn serve(&self, data: &Path) -> Command {
        let mut command = self.command();
        command.arg("serve").arg("--data").arg(data);
        command.args(["--listen", "127.0.0.1:0"]);
        command
    }
}

/// A process that runs. It does not outlive this.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// What it has written so far.
    stdout: Captured,
    stderr: Captured,
}

/// How a process ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Absent if it was killed because it ran on.
    pub(super) status: Option<ExitStatus>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ended {
    /// Whether a thread of it panicked, or a signal ended it that the check did not send.
    pub(super) fn panicked(&self) -> bool {
        let is_signaled = self.status.is_some_and(|status| status.code().is_none());
        is_signaled || self.stderr.contains("panicked at")
    }

    /// The message of the first panic, in one line.
    pub(super) fn panic_message(&self) -> String {
        let lines = self.stderr.lines();
        let mut lines = lines.skip_while(|line| !line.contains("panicked at"));
        let (at, what) = (lines.next(), lines.next());
        format!("{} {}", at.unwrap_or("a signal"), what.unwrap_or_default())
    }

    /// Whether it ended by itself and reports success.
    pub(super) fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

impl Process {
    /// Starts a process.
    pub(super) fn start(mut command: Command) -> Result<Self, Failure> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let name = tool::name(&command);
        let mut child =
            child.map_err(|error| Failure::broken(format!("cannot start {name}: {error}")))?;
        Ok(Self {
            stdout: Captured::read(child.stdout.take()),
            stderr: Captured::read(child.stderr.take()),
            child,
        })
    }

    /// Runs a process of a check until it succeeds, with its last line of output as progress. A panic, a failure or
    /// running on past the deadline is a failure of the check.
    pub(super) fn run(
        command: Command,
        check: &'static str,
        deadline: Instant,
    ) -> Result<Ended, Failure> {
        let mut progress = Progress::new(check);
        let ended = Self::start(command)?.end_by(deadline, |printed| {
            progress.tick(|| printed.lines().last().unwrap_or("opening").to_owned());
            false
        })?;
        if ended.is_success() && !ended.panicked() {
            return Ok(ended);
        }
        Err(Failure::broken(format!(
            "the process of the check failed: status={:?} {}",
            ended.status,
            tool::last_lines(&ended.stderr)
        )))
    }

    /// Waits until it ends, and kills it at the deadline, or when what it has written on its standard output is
    /// `enough`.
    pub(super) fn end_by(
        mut self,
        deadline: Instant,
        mut enough: impl FnMut(&str) -> bool,
    ) -> io::Result<Ended> {
        let mut status = None;
        while Instant::now() < deadline && status.is_none() {
            if enough(&self.stdout.text()) {
                break;
            }
            status = self.child.try_wait()?;
            if status.is_none() {
                std::thread::park_timeout(POLL);
            }
        }
        self.kill();
        Ok(Ended {
            status,
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
        })
    }

    /// Waits until a server prints where it listens, and returns host and port.
    pub(super) fn address(&mut self) -> Result<String, Failure> {
        let deadline = Instant::now() + READY_MAX;
        while Instant::now() < deadline && self.is_alive() {
            let printed = self.stdout.text();
            let rest = printed.split_once("http://").map(|(_, rest)| rest);
            let address = rest.and_then(|rest| rest.split_once(char::is_whitespace));
            if let Some((address, _)) = address {
                return Ok(address.to_owned());
            }
            std::thread::park_timeout(POLL);
        }
        let message = tool::last_lines(&self.stderr.text());
        Err(Failure::broken(format!(
            "the server did not start: {message}"
        )))
    }

    /// Whether it runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it has written on its standard error so far.
    pub(super) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Kills it with SIGKILL.
    pub(super) fn kill(&mut self) {
        // Both fail only when it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What comes out of a pipe, read as it comes.
#[derive(Debug)]
struct Captured {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Captured {
    /// How much is kept. The rest is read as well, so that the process never waits for a reader.
    const BYTES_MAX: usize = 4 << 20;

    fn read(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        let reader = pipe.map(|pipe| {
            std::thread::spawn(move || {
                let mut pipe = BufReader::new(pipe);
                while let Ok(part) = pipe.fill_buf()
                    && !part.is_empty()
                {
                    let length = part.len();
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    if kept.len() < Self::BYTES_MAX {
                        kept.extend_from_slice(part);
                    }
                    drop(kept);
                    pipe.consume(length);
                }
            })
        });
        Self { bytes, reader }
    }

    fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// All of it, once the process has ended.
    fn finish(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            // A reader that panicked has kept what it had read.
            drop(reader.join());
        }
        self.text()
    }
}

/// What a running process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resources {
    /// Open descriptors.
    pub(super) descriptors: u64,
    /// Resident memory.
    pub(super) memory_bytes: u64,
}

impl Resources {
    /// The resources of this process.
    pub(super) fn own() -> io::Result<Self> {
        let descriptors = std::fs::read_dir("/proc/self/fd")?.count() as u64;
        let pages = std::fs::read_to_string("/proc/self/statm")?;
        let pages = pages.split_whitespace().nth(1);
        let pages: u64 = pages.and_then(|pages| pages.parse().ok()).unwrap_or(0);
        Ok(Self {
            descriptors,
            memory_bytes: pages * rustix::param::page_size() as u64,
        })
    }
}
