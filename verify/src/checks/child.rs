//! Processes that a check starts: this binary again, in a role of its own.
//!
//! A role tells [`Record`]s on its standard output. Whatever happens to it, it does not outlive the
//! check: dropping a [`Child`] kills it.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Instant;

use super::planted::Bug;
use super::record::Record;

/// How much of what a process says on its standard error is kept.
const STDERR_BYTES_MAX: u64 = 64 * 1024;

/// A running process.
pub(super) struct Child {
    process: std::process::Child,
    records: Receiver<Record>,
    stderr: Option<JoinHandle<String>>,
}

/// What a process had to say by some moment.
#[derive(Debug)]
pub(super) enum Heard {
    /// A record.
    Record(Record),
    /// Nothing more until the deadline.
    Nothing,
    /// It has closed its output: it has ended or is about to.
    End,
}

/// How a process ended.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) status: ExitStatus,
    pub(super) stderr: String,
}

impl Ending {
    /// Whether a thread of it panicked, be it in the background.
    pub(super) fn panicked(&self) -> bool {
        self.stderr.contains("panicked at")
    }
}

/// This binary, to be run in a role.
pub(super) fn command(role: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(crate::CHILD).arg(role);
    Ok(command)
}

/// The same for a role that works on a directory, and perhaps with a planted bug.
pub(super) fn command_on(role: &str, folder: &Path, planted: Option<Bug>) -> io::Result<Command> {
    let mut command = command(role)?;
    command.arg("--folder").arg(folder);
    if let Some(bug) = planted {
        command.arg("--planted").arg(bug.name());
    }
    Ok(command)
}

impl Child {
    /// Starts a process that was made by [`command`].
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
                // What it said before the pipe broke is all there is to know.
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

    /// Waits for the next record until a deadline.
    pub(super) fn hear(&self, deadline: Instant) -> Heard {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.records.recv_timeout(left) {
            Ok(record) => Heard::Record(record),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::End,
        }
    }

    /// Kills it with SIGKILL, and returns what it had told by then and had not been heard yet.
    pub(super) fn kill(mut self) -> io::Result<(Vec<Record>, Ending)> {
        self.process.kill()?;
        let told = self.records.iter().collect();
        let ending = self.end()?;
        Ok((told, ending))
    }

    /// Waits until it has ended by itself, after [`Heard::End`].
    pub(super) fn end(&mut self) -> io::Result<Ending> {
        let status = self.process.wait()?;
        let stderr = self.stderr.take().and_then(|reader| reader.join().ok());
        Ok(Ending {
            status,
            stderr: stderr.unwrap_or_default(),
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Passes records on until the output ends. A line without an end was cut by the death of the process.
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
