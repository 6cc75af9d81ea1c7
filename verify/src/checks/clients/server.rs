//! The server that the clients talk to: `floe serve`, on a port chosen by the system.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::Failure;

/// The region of the server: not the default of the clients.
pub(super) const REGION: &str = "eu-central-1";
/// The access key that a server with keys accepts.
pub(super) const ACCESS_KEY: &str = "AKIDCLIENTS";
/// The secret of the access key.
pub(super) const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYCLIENTS";

/// Time limit for a server to become ready.
const READY_MAX: Duration = Duration::from_secs(30);

/// The storage of a server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Store<'a> {
    /// A directory.
    Directory(&'a Path),
    /// Memory, lost when the process ends.
    Memory,
}

/// The configuration of a server, the same for each start.
#[derive(Clone, Debug)]
pub(super) struct Setup<'a> {
    pub(super) floe: &'a Path,
    pub(super) store: Store<'a>,
    /// Whether the server requires the access key.
    pub(super) has_keys: bool,
}

impl Setup<'_> {
    fn command(&self, listen: &str) -> Command {
        let mut command = Command::new(self.floe);
        command.args(["serve", "--region", REGION, "--listen", listen]);
        match self.store {
            Store::Directory(path) => command.arg("--data").arg(path),
            Store::Memory => command.arg("--memory"),
        };
        if self.has_keys {
            command.args(["--access-key", ACCESS_KEY]);
            command.env("FLOE_SECRET_KEY", SECRET_KEY);
        }
        command
    }
}

/// A server that can be killed and restarted.
#[derive(Debug)]
pub(super) struct Server<'a> {
    setup: Setup<'a>,
    running: Running,
}

impl<'a> Server<'a> {
    /// Starts a server and waits until it is ready.
    pub(super) fn start(setup: Setup<'a>) -> Result<Self, Failure> {
        let running = Running::start(setup.command("127.0.0.1:0"))?;
        Ok(Self { setup, running })
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        &self.running.address
    }

    /// Kills the server with SIGKILL and restarts it at the same address.
    pub(super) fn kill_and_restart(&mut self) -> Result<(), Failure> {
        self.running.kill();
        let deadline = Instant::now() + READY_MAX;
        loop {
            let started = Running::start(self.setup.command(&self.running.address));
            match started {
                Ok(running) => {
                    self.running = running;
                    return Ok(());
                }
                // A connecting client may briefly hold the port.
                Err(_) if Instant::now() < deadline => {}
                Err(failure) => return Err(failure),
            }
        }
    }
}

/// A server process. Dropping it kills the process.
#[derive(Debug)]
pub(in crate::checks) struct Running {
    process: Child,
    address: String,
}

impl Running {
    /// Starts a process and waits until it prints its address.
    pub(in crate::checks) fn start(mut command: Command) -> Result<Self, Failure> {
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        let cannot = |error| Failure::Broken(format!("cannot start the server: {error}"));
        let mut running = Self {
            process: process.map_err(cannot)?,
            address: String::new(),
        };
        let stdout = running.process.stdout.take();
        let stdout = stdout.ok_or_else(|| Failure::broken("the server has no output"))?;
        running.address = ready(stdout)?;
        Ok(running)
    }

    /// Host and port.
    pub(in crate::checks) fn address(&self) -> &str {
        &self.address
    }

    fn kill(&mut self) {
        // Both fail only if the process has ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until a server prints its address, and returns it.
fn ready(stdout: ChildStdout) -> Result<String, Failure> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        // The rest is read and dropped, so that the server never blocks on a full pipe.
        lines.by_ref().take(1).for_each(|line| {
            drop(sender.send(line));
        });
        lines.for_each(drop);
    });
    let line = receiver.recv_timeout(READY_MAX);
    let line = line.map_err(|_| Failure::broken("the server did not become ready"))?;
    address_in(&line).ok_or_else(|| {
        let message = format!("the server printed no address: line={line:?}");
        Failure::Broken(message)
    })
}

/// Returns host and port from the first line of a server's output.
fn address_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("http://")?;
    let address = rest.split_whitespace().next()?;
    address.contains(':').then(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_parsed_from_server_output() {
        let cases = [
            (
                "floe: serving DynamoDB on http://127.0.0.1:35971 (in memory)",
                Some("127.0.0.1:35971"),
            ),
            ("http://[::1]:8000", Some("[::1]:8000")),
            ("floe: cannot listen", None),
        ];
        for (line, address) in cases {
            assert_eq!(address_in(line).as_deref(), address, "{line}");
        }
    }
}
