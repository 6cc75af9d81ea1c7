//! Child processes of a check: this binary again, in a role.
//!
//! A role writes [`Record`]s to its standard output. It does not outlive the check: dropping a [`Child`] kills it.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Instant;

use super::planted::Bug;
use super::record::Record;

/// Maximum number of bytes kept of a process's standard error.
const STDERR_BYTES_MAX: u64 = 64 * 1024;

/// A running process.
pub(super) struct Child {
    process: std::process::Child,
    records: Receiver<Record>,
    stderr: Option<JoinHandle<String>>,
}

/// The next output of a process, up to a deadline.
#[derive(Debug)]
pub(super) enum ChildEvent {
    /// A record.
    Record(Record),
    /// No record before the deadline.
    Timeout,
    /// The process closed its output: it has ended or is about to end.
    Closed,
}

/// Exit status and standard error of a process.
#[derive(Debug)]
pub(super) struct ChildExit {
    pub(super) status: ExitStatus,
    pub(super) stderr: String,
}

impl ChildExit {
    /// Whether any thread of the process panicked.
    pub(super) fn panicked(&self) -> bool {
        self.stderr.contains("panicked at")
    }
}

/// Returns a command that runs this binary in a role.
pub(super) fn command(role: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(crate::CHILD).arg(role);
    Ok(command)
}

/// Returns a command for a role that works on a directory, optionally with a planted bug.
pub(super) fn command_on(role: &str, folder: &Path, planted: Option<Bug>) -> io::Result<Command> {
    let mut command = command(role)?;
    command.arg("--folder").arg(folder);
    if let Some(bug) = planted {
        command.arg("--planted").arg(bug.name());
    }
    Ok(command)
}

impl Child {
    /// Starts a process from a command of [`command`].
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (sender, records) = mpsc::channel();
        if let Some(stdout) = process.stdout.take() {
            std::thread::spawn(move || forward(BufReader::new(stdout), &sender));
        }
        let stderr = process.stderr.take().map(|stderr| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // Output read before the pipe broke is kept.
                drop(stderr.take(STDERR_BYTES_MAX).read_to_end(&mut bytes));
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        Ok(Self {
            process,
            records,
            stderr,
        })
    }

    /// Waits for the next record, until a deadline.
    pub(super) fn receive(&self, deadline: Instant) -> ChildEvent {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.records.recv_timeout(left) {
            Ok(record) => ChildEvent::Record(record),
            Err(RecvTimeoutError::Timeout) => ChildEvent::Timeout,
            Err(RecvTimeoutError::Disconnected) => ChildEvent::Closed,
        }
    }

    /// Kills the process with SIGKILL. Returns the records that were not received yet.
    pub(super) fn kill(mut self) -> io::Result<(Vec<Record>, ChildExit)> {
        self.process.kill()?;
        let remaining = self.records.iter().collect();
        let exit = self.end()?;
        Ok((remaining, exit))
    }

    /// Waits for the process to end, after [`ChildEvent::Closed`].
    pub(super) fn end(&mut self) -> io::Result<ChildExit> {
        let status = self.process.wait()?;
        let stderr = self.stderr.take().and_then(|reader| reader.join().ok());
        Ok(ChildExit {
            status,
            stderr: stderr.unwrap_or_default(),
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Forwards records until the output ends. A line without a line feed was cut off when the process died.
fn forward(mut stdout: impl BufRead, sender: &mpsc::Sender<Record>) {
    let mut line = String::new();
    while stdout.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        let Some(text) = line.strip_suffix('\n') else {
            return;
        };
        let record = text.parse().unwrap_or_else(Record::Broken);
        if sender.send(record).is_err() {
            return;
        }
        line.clear();
    }
}
