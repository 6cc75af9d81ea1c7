//! The process that serves the store, killed and started again at the same address on the same directory.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use floe_local::LocalEngine;
use floe_server::{Options, Server, Service};

use super::setting::{Files, runtime};
use crate::args::Args;
use crate::verify::child;
use crate::verify::clients::server::Running;
use crate::verify::planted::{Bug, Flawed};
use crate::{Failure, out};

/// The name of the role.
pub(crate) const ROLE: &str = "feed-serve";

/// A server that cannot be started again by then never will.
const RESTART_MAX: Duration = Duration::from_secs(30);

/// A server that can be killed.
#[derive(Debug)]
pub(super) struct Served {
    files: Files,
    planted: Option<Bug>,
    address: String,
    running: Option<Running>,
}

impl Served {
    pub(super) fn start(files: &Files, planted: Option<Bug>) -> Result<Self, Failure> {
        let mut served = Self {
            files: files.clone(),
            planted,
            address: "127.0.0.1:0".to_owned(),
            running: None,
        };
        let running = served.run()?;
        running.address().clone_into(&mut served.address);
        served.running = Some(running);
        Ok(served)
    }

    /// Host and port, the same for good.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Kills it with SIGKILL.
    pub(super) fn kill(&mut self) {
        self.running = None;
    }

    /// Starts it again.
    pub(super) fn restart(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + RESTART_MAX;
        loop {
            match self.run() {
                Ok(running) => {
                    self.running = Some(running);
                    return Ok(());
                }
                // For a moment, a client that tries to connect may have the port.
                Err(_) if Instant::now() < deadline => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    fn run(&self) -> Result<Running, Failure> {
        let mut command = child::command(ROLE)?;
        command.arg("--folder").arg(&self.files.0);
        command.arg("--listen").arg(&self.address);
        if let Some(bug) = self.planted {
            command.arg("--planted").arg(bug.name());
        }
        Running::start(command)
    }
}

/// Runs the role.
pub(crate) fn run_child(mut args: Args) -> Result<ExitCode, Failure> {
    let files = Files(args.required("--folder")?);
    let listen: SocketAddr = args.required("--listen")?;
    let planted: Option<Bug> = args.value("--planted")?;
    args.finish("cargo xtask child")?;
    runtime()?.block_on(async {
        let engine = Arc::new(LocalEngine::open(files.data())?);
        let engine = Flawed::plant(engine, planted);
        let server = Server::bind(Options::new().listen(listen), Service::new(engine)).await;
        let server = server.map_err(|error| Failure::broken(error.to_string()))?;
        out::figures(&format!("http://{}", server.local_addr()));
        server.serve_until(std::future::pending()).await;
        Ok(ExitCode::SUCCESS)
    })
}
