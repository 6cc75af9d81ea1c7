//! The attacked program, and its memory use.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use floe_local::LocalEngine;
use floe_server::{Limits, Options, Server, Service};

use super::Plan;
use crate::checks::planted::{Bug, FlawedEngine};
use crate::checks::role::Role;
use crate::checks::tool;
use crate::{Failure, out};

/// The role of a server inside this binary.
pub(crate) const ROLE: &str = "hostile-server";

/// Enough for the connections of all kinds at once, on both sides.
const FILES: u64 = 20_000;

/// The attacked server; killed when dropped.
#[derive(Debug)]
pub(super) struct TargetServer {
    child: Child,
    address: SocketAddr,
}

impl TargetServer {
    pub(super) fn start(plan: &Plan) -> Result<Self, Failure> {
        let mut command = if plan.is_inside {
            inside(plan.planted)?
        } else {
            let mut command = Command::new(program(plan)?);
            command.args(["serve", "--memory", "--listen", "0"]);
            command
        };
        let mut child = command
            .env_remove("FLOE_ACCESS_KEY")
            .env_remove("FLOE_SECRET_KEY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let address = line.split("http://").nth(1);
        let address = address.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        match address {
            Some(address) => Ok(Self { child, address }),
            None => {
                // The server has not started, so there is nothing to lose.
                drop(child.kill());
                drop(child.wait());
                Err(Failure::Broken(format!(
                    "the server did not start: {line:?}"
                )))
            }
        }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The current memory use.
    pub(super) fn memory_mb(&self) -> Result<u64, Failure> {
        self.memory("VmRSS:")
    }

    /// The peak memory use.
    pub(super) fn memory_peak_mb(&self) -> Result<u64, Failure> {
        self.memory("VmHWM:")
    }

    pub(super) fn is_alive(&self) -> bool {
        self.memory_mb().is_ok_and(|mb| mb > 0)
    }

    /// The CPU time used.
    pub(super) fn cpu(&self) -> Result<Duration, Failure> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program, in parentheses, may contain spaces.
        let (_, rest) = text.rsplit_once(')').unwrap_or_default();
        let ticks = rest.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    fn memory(&self, name: &str) -> Result<u64, Failure> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        let kilobytes =
            kilobytes.ok_or_else(|| Failure::broken("cannot read the server's memory use"))?;
        Ok(kilobytes.div_ceil(1024))
    }
}

impl Drop for TargetServer {
    fn drop(&mut self) {
        // The server may have died already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns the path of the program `floe`.
fn program(plan: &Plan) -> Result<PathBuf, Failure> {
    if let Some(path) = &plan.floe {
        return Ok(path.clone());
    }
    out::note("building floe");
    tool::build_floe()
}

/// Returns the command of a server inside this binary, in which a bug can be planted.
fn inside(planted: Option<Bug>) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(crate::CHILD).arg(ROLE);
    if let Some(bug) = planted {
        command.arg("--planted").arg(bug.name());
    }
    Ok(command)
}

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct ServerRole {
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for ServerRole {
    const NAME: &str = ROLE;

    /// Runs the server of [`inside`].
    fn run(self) -> Result<ExitCode, Failure> {
        let planted = self.planted;
        raise_file_limit();
        let limits = match planted {
            Some(Bug::NoLimits) => no_limits(),
            _ => Limits::default(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let engine = FlawedEngine::plant(Arc::new(LocalEngine::memory()?), planted);
            let options = Options::new().limits(limits);
            let server = Server::bind(options, Service::new(engine)).await;
            let server = server.map_err(|error| Failure::broken(error.to_string()))?;
            out::figures(&format!("http://{}", server.local_addr()));
            server.serve_until(std::future::pending()).await;
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Limits that never apply.
const fn no_limits() -> Limits {
    let ever = Duration::from_secs(u32::MAX as u64);
    Limits {
        connections_max: usize::MAX,
        bodies_bytes_max: usize::MAX,
        responses_bytes_max: usize::MAX,
        head_deadline: ever,
        body_deadline: ever,
        response_deadline: ever,
        idle_deadline: ever,
        pace_bytes: 1,
        memory_deadline: ever,
        shutdown_deadline: ever,
    }
}

/// Raises this process's limit of open files as far as the system allows.
pub(super) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let granted = limit.maximum.unwrap_or(FILES).min(FILES);
    if limit.current.is_some_and(|current| current < granted) {
        let raised = Rlimit {
            current: Some(granted),
            maximum: limit.maximum,
        };
        // If it cannot be raised, fewer connections are opened, as the figures show.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}
