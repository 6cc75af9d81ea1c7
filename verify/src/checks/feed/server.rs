//! The process that serves the store, killed and restarted at the same address on the same directory.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use floe_local::LocalEngine;
use floe_server::{Options, Server, Service};

use super::config::{Files, runtime};
use crate::checks::child;
use crate::checks::clients::server::Running;
use crate::checks::planted::{Bug, FlawedEngine};
use crate::checks::role::Role;
use crate::{Failure, out};

/// The name of the role.
pub(crate) const ROLE: &str = "feed-serve";

/// Time limit for a restart.
const RESTART_MAX: Duration = Duration::from_secs(30);

/// A server process that can be killed.
#[derive(Debug)]
pub(super) struct ServerProcess {
    files: Files,
    planted: Option<Bug>,
    address: String,
    running: Option<Running>,
}

impl ServerProcess {
    pub(super) fn start(files: &Files, planted: Option<Bug>) -> Result<Self, Failure> {
        let mut server = Self {
            files: files.clone(),
            planted,
            address: "127.0.0.1:0".to_owned(),
            running: None,
        };
        let running = server.run()?;
        running.address().clone_into(&mut server.address);
        server.running = Some(running);
        Ok(server)
    }

    /// Host and port, which never change.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Kills the process with SIGKILL.
    pub(super) fn kill(&mut self) {
        self.running = None;
    }

    /// Starts the process again.
    pub(super) fn restart(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + RESTART_MAX;
        loop {
            match self.run() {
                Ok(running) => {
                    self.running = Some(running);
                    return Ok(());
                }
                // A connecting client may briefly hold the port.
                Err(_) if Instant::now() < deadline => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    fn run(&self) -> Result<Running, Failure> {
        let mut command = child::command_on(ROLE, &self.files.0, self.planted)?;
        command.arg("--listen").arg(&self.address);
        Running::start(command)
    }
}

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct ServerRole {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for ServerRole {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let files = Files(self.folder);
        runtime()?.block_on(async {
            let engine = Arc::new(LocalEngine::open(files.data())?);
            let engine = FlawedEngine::plant(engine, self.planted);
            let server =
                Server::bind(Options::new().listen(self.listen), Service::new(engine)).await;
            let server = server.map_err(|error| Failure::broken(error.to_string()))?;
            out::figures(&format!("http://{}", server.local_addr()));
            server.serve_until(std::future::pending()).await;
            Ok(ExitCode::SUCCESS)
        })
    }
}
