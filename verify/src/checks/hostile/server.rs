//! The program that is attacked, and its memory.

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
use crate::checks::planted::{Bug, Flawed};
use crate::checks::role::Role;
use crate::checks::tool;
use crate::{Failure, out};

/// The role of a server inside this program.
pub(crate) const ROLE: &str = "hostile-server";

/// Connections of all kinds at once, on both sides, and some.
const FILES: u64 = 20_000;

/// A server that is attacked; killed when it is dropped.
#[derive(Debug)]
pub(super) struct Attacked {
    child: Child,
    address: SocketAddr,
}

impl Attacked {
    pub(super) fn start(plan: &Plan) -> Result<Self, Failure> {
        let mut command = match plan.is_inside {
            true => inside(plan.planted)?,
            false => {
                let mut command = Command::new(program(plan)?);
                command.args(["serve", "--memory", "--listen", "0"]);
                command
            }
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
                // It has not begun, so there is nothing to lose.
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

    /// The memory that it uses now.
    pub(super) fn memory_mb(&self) -> Result<u64, Failure> {
        self.memory("VmRSS:")
    }

    /// The most that it has used.
    pub(super) fn memory_peak_mb(&self) -> Result<u64, Failure> {
        self.memory("VmHWM:")
    }

    pub(super) fn is_alive(&self) -> bool {
        self.memory_mb().is_ok_and(|mb| mb > 0)
    }

    /// The time that it has spent on cores.
    pub(super) fn cpu(&self) -> Result<Duration, Failure> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program may hold spaces, and stands in parentheses.
        let (_, rest) = text.rsplit_once(')').unwrap_or_default();
        let ticks = rest.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    fn memory(&self, name: &str) -> Result<u64, Failure> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        let kilobytes = kilobytes.ok_or_else(|| Failure::broken("the server has no memory"))?;
        Ok(kilobytes.div_ceil(1024))
    }
}

impl Drop for Attacked {
    fn drop(&mut self) {
        // It may have died.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The program `floe`.
fn program(plan: &Plan) -> Result<PathBuf, Failure> {
    if let Some(path) = &plan.floe {
        return Ok(path.clone());
    }
    out::note("building floe");
    tool::build_floe()
}

/// The server inside this program, which can be given a bug.
fn inside(planted: Option<Bug>) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(crate::CHILD).arg(ROLE);
    if let Some(bug) = planted {
        command.arg("--planted").arg(bug.name());
    }
    Ok(command)
}

/// What the process is told.
#[derive(Debug, Args)]
pub(in crate::checks) struct Serving {
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for Serving {
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
            let engine = Flawed::plant(Arc::new(LocalEngine::memory()?), planted);
            let options = Options::new().limits(limits);
            let server = Server::bind(options, Service::new(engine)).await;
            let server = server.map_err(|error| Failure::broken(error.to_string()))?;
            out::figures(&format!("http://{}", server.local_addr()));
            server.serve_until(std::future::pending()).await;
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// What a server without limits has.
const fn no_limits() -> Limits {
    let ever = Duration::from_secs(u32::MAX as u64);
    Limits {
        connections_max: usize::MAX,
        bodies_bytes_max: usize::MAX,
        answers_bytes_max: usize::MAX,
        head_deadline: ever,
        body_deadline: ever,
        answer_deadline: ever,
        idle_deadline: ever,
        pace_bytes: 1,
        memory_deadline: ever,
        shutdown_deadline: ever,
    }
}

/// Lets this process open as many files as the system grants.
pub(super) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let granted = limit.maximum.unwrap_or(FILES).min(FILES);
    if limit.current.is_some_and(|current| current < granted) {
        let raised = Rlimit {
            current: Some(granted),
            maximum: limit.maximum,
        };
        // Where it cannot be raised, fewer connections are opened, and the figures say so.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}
