//! The program `floe` as the checks run it: built for release, given by `--floe`, or with `--inside` the same code in
//! this binary, without a second build.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::Args;

use super::figures::ProgressPrinter;
use super::tool;
use crate::Failure;

/// The flags of every check that runs the program.
#[derive(Debug, Args)]
pub(super) struct FloeFlags {
    /// Run this binary instead of building it
    #[arg(long, value_name = "PATH")]
    floe: Option<PathBuf>,

    /// Run the same code inside this binary
    #[arg(long)]
    inside: bool,
}

/// The argument zero with which this binary behaves as the program `floe`.
const NAME: &str = "floe";
/// The interval at which a process is polled.
const POLL: Duration = Duration::from_millis(2);
/// Time limit for a server to become ready.
const READY_MAX: Duration = Duration::from_secs(30);

/// Runs the program `floe` if this binary was started by its name.
pub(crate) fn run_as_floe() -> Option<std::process::ExitCode> {
    let name = std::env::args_os().next()?;
    (name.as_os_str() == OsStr::new(NAME)).then(floe_cli::main)
}

/// The program to run.
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
    /// Returns the program, after building it if necessary.
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

/// The path of the program, and how it is started.
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

    /// Returns a command for the program, without settings from the environment.
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

    /// Returns the command for `floe serve` on a directory, on a port chosen by the system.
    pub(super) fn serve(&self, data: &Path) -> Command {
        let mut command = self.command();
        command.arg("serve").arg("--data").arg(data);
        command.args(["--listen", "127.0.0.1:0"]);
        command
    }
}

/// A running process. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// The output so far.
    stdout: Captured,
    stderr: Captured,
}

/// Exit status and output of a process.
#[derive(Debug)]
pub(super) struct ProcessOutput {
    /// `None` if the check killed the process.
    pub(super) status: Option<ExitStatus>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl ProcessOutput {
    /// Whether a thread panicked, or a signal not sent by the check ended the process.
    pub(super) fn panicked(&self) -> bool {
        let is_signaled = self.status.is_some_and(|status| status.code().is_none());
        is_signaled || self.stderr.contains("panicked at")
    }

    /// Returns the first panic message, in one line.
    pub(super) fn panic_message(&self) -> String {
        let lines = self.stderr.lines();
        let mut lines = lines.skip_while(|line| !line.contains("panicked at"));
        let (at, what) = (lines.next(), lines.next());
        format!("{} {}", at.unwrap_or("a signal"), what.unwrap_or_default())
    }

    /// Whether the process ended with success.
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

    /// Runs a process of a check that must succeed, with its last line of output as progress. A panic, an exit code
    /// other than 0, or exceeding the deadline fails the check.
    pub(super) fn run(
        command: Command,
        check: &'static str,
        deadline: Instant,
    ) -> Result<ProcessOutput, Failure> {
        let mut progress = ProgressPrinter::new(check);
        let output = Self::start(command)?.end_by(deadline, |printed| {
            progress.tick(|| printed.lines().last().unwrap_or("opening").to_owned());
            false
        })?;
        if output.is_success() && !output.panicked() {
            return Ok(output);
        }
        Err(Failure::broken(format!(
            "a process of the check failed: status={:?} {}",
            output.status,
            tool::last_lines(&output.stderr)
        )))
    }

    /// Waits until the process ends. Kills it at the deadline, or when `enough` returns true for its standard output.
    pub(super) fn end_by(
        mut self,
        deadline: Instant,
        mut enough: impl FnMut(&str) -> bool,
    ) -> io::Result<ProcessOutput> {
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
        Ok(ProcessOutput {
            status,
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
        })
    }

    /// Waits until a server prints its address, and returns host and port.
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

    /// Whether the process is running.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the standard error so far.
    pub(super) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Kills the process with SIGKILL.
    pub(super) fn kill(&mut self) {
        // Both fail only if the process has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The output of a pipe, read in the background.
#[derive(Debug)]
struct Captured {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Captured {
    /// Maximum number of bytes kept. The rest is read and dropped, so that the process never blocks on a full pipe.
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

    /// Returns all output, after the process has ended.
    fn finish(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            // If the reader panicked, the bytes read so far are kept.
            drop(reader.join());
        }
        self.text()
    }
}

/// The resources that a process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resources {
    /// Open descriptors.
    pub(super) descriptors: u64,
    /// Resident memory.
    pub(super) memory_bytes: u64,
}

impl Resources {
    /// Measures this process.
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
