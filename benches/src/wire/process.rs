//! The servers, as separate processes, so that their CPU time does not include that of the client.
//!
//! They do not outlive the benchmark, even if it fails: dropping a [`Server`] kills it.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::dynoxide;
use crate::Fallible;
use crate::measure;

/// Maximum time until a server that prints no address listens.
const LISTENS_WITHIN: Duration = Duration::from_secs(60);
/// Interval between checks whether it listens.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Placeholder for the port in the command of another server.
pub(super) const PORT: &str = "{port}";

/// The kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Side {
    Floe,
    Dynoxide,
    /// The server of `--beside`.
    #[value(skip)]
    Other,
}

impl Side {
    /// The default sides.
    pub(super) const ALL: [Self; 2] = [Self::Floe, Self::Dynoxide];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Floe => "floe",
            Self::Dynoxide => "dynoxide",
            Self::Other => "other",
        }
    }
}

/// A running server.
pub(super) struct Server {
    process: Child,
    pub(super) address: SocketAddr,
    /// Kept open, so that later output of the server does not fail with a broken pipe.
    _stdout: Option<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts a server in memory or in a directory, and waits until it prints its address. `other` is the command for
    /// the other side.
    pub(super) async fn start(
        side: Side,
        program: &Path,
        other: Option<&str>,
        folder: Option<&Path>,
    ) -> Fallible<Self> {
        let mut command = match side {
            Side::Floe => floe(program, folder),
            Side::Dynoxide => dynoxide::command(folder)?,
            Side::Other => return Self::start_other(other.unwrap_or_default()).await,
        };
        let spawned = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start the server: side={side:?} error={error}"))?;
        Self::listen(spawned, side)
    }

    /// Starts a server by a command on a free port, and waits until it listens.
    async fn start_other(command: &str) -> Fallible<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let command = command.replace(PORT, &address.port().to_string());
        // `exec` replaces the shell, so that the measured process is the server.
        let process = Command::new("sh")
            .args(["-c", &format!("exec {command}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut server = Self {
            process,
            address,
            _stdout: None,
        };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = server.process.try_wait()? {
                return Err(format!("the server exited: status={status} command={command}").into());
            }
            if start.elapsed() > LISTENS_WITHIN {
                return Err(format!("the server does not listen: command={command}").into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(server)
    }

    fn listen(mut process: Child, side: Side) -> Fallible<Self> {
        let stdout = process.stdout.take().ok_or("the server has no output")?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        let read = stdout.read_line(&mut line);
        match (read, address(&line)) {
            (Ok(_), Some(address)) => Ok(Self {
                process,
                address,
                _stdout: Some(stdout),
            }),
            (read, _) => {
                // Both fail only if the process has exited already.
                drop(process.kill());
                drop(process.wait());
                read?;
                Err(format!("the server printed no address: side={side:?} line={line:?}").into())
            }
        }
    }

    /// The CPU time of its threads.
    pub(super) fn cpu_time(&self) -> Duration {
        measure::cpu_time(self.process.id())
    }

    /// Its resident memory in bytes.
    pub(super) fn resident_bytes(&self) -> u64 {
        measure::resident_bytes(self.process.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process has exited already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn floe(program: &Path, folder: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    match folder {
        Some(folder) => command.arg("--data").arg(folder),
        None => command.arg("--memory"),
    };
    command
}

/// Finds the address in the first line of a server.
fn address(line: &str) -> Option<SocketAddr> {
    let mut words = line.split(|c: char| c.is_whitespace() || "/=".contains(c));
    words.find_map(|word| word.parse().ok())
}

/// The program `floe` in the directory of this program.
pub(super) fn program() -> Fallible<PathBuf> {
    let own = std::env::current_exe()?;
    let program = own.with_file_name(format!("floe{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(program);
    }
    Err(format!(
        "the program `floe` is missing: build it with `cargo build --release --package floe-cli`: path={}",
        program.display()
    )
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_found_in_the_ready_line() {
        let expected: SocketAddr = "127.0.0.1:8000".parse().unwrap();
        for line in [
            "127.0.0.1:8000\n",
            "floe: ready at http://127.0.0.1:8000\n",
            "listening address=127.0.0.1:8000 store=memory\n",
        ] {
            assert_eq!(address(line), Some(expected), "{line}");
        }
        assert_eq!(address("error: address in use\n"), None);
    }
}
