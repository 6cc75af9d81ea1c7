//! A client and the servers it talks to.

use std::path::Path;
use std::process::Command;

use super::super::planted::Bug;
use super::Plan;
use super::install::{self, Installed};
use super::program::{self, Outcome};
use super::proxy::{Change, Proxy};
use super::server::{Server, Setup, Store};
use crate::{Failure, out};

/// Scenarios that need our server: others are not killed and do not check keys.
const OURS_ONLY: [&str; 2] = ["acknowledged_writes_survive_a_kill", "keys_are_checked"];

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    Boto3,
    Awscli,
    Javascript,
}

impl Client {
    /// All clients.
    pub(super) const ALL: [Self; 3] = [Self::Boto3, Self::Awscli, Self::Javascript];

    /// The name in the figures.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Boto3 => "boto3",
            Self::Awscli => "awscli",
            Self::Javascript => "javascript",
        }
    }

    /// Returns the command that runs the client's program against a server.
    fn command(self, installed: &Installed, address: &str) -> Command {
        let mut command = match self {
            Self::Boto3 | Self::Awscli => {
                let program = format!("{}_client.py", self.name());
                let mut python = installed.python("python");
                python.arg(install::programs().join(program));
                python
            }
            Self::Javascript => {
                let mut node = Command::new("node");
                node.arg(installed.javascript().join("javascript_client.mjs"));
                node
            }
        };
        command.args(["--endpoint", &format!("http://{address}")]);
        command
    }

    /// The scenario that must find the bug, if it affects this client.
    const fn finder(self, bug: Bug) -> Option<&'static str> {
        match (bug, self) {
            (Bug::ForgetfulServer, _) => Some("acknowledged_writes_survive_a_kill"),
            (Bug::WrongAnswer, Self::Awscli) => Some("scans_return_pages_and_segments"),
            (Bug::WrongAnswer, _) => Some("queries_and_scans_are_paged"),
            // This SDK does not verify checksums.
            (Bug::WrongChecksum, Self::Javascript) => None,
            (Bug::WrongChecksum, _) => Some("values_of_every_type_round_trip"),
            _ => None,
        }
    }
}

/// Runs all clients in parallel, each with its own server, so that they do not see each other's tables.
pub(super) fn drive_all(
    plan: &Plan,
    floe: &Path,
    installed: &Installed,
) -> Result<Vec<(Client, Outcome)>, Failure> {
    std::thread::scope(|scope| {
        let run = |client| {
            let outcome = drive(client, plan, floe, installed)?;
            for failed in &outcome.failed {
                out::note(&format!("{}: {failed}", client.name()));
            }
            Ok((client, outcome))
        };
        let mut clients = Client::ALL.to_vec();
        clients.retain(|client| plan.planted.is_none_or(|bug| client.finder(bug).is_some()));
        let running: Vec<_> = clients
            .into_iter()
            .map(|client| scope.spawn(move || run(client)))
            .collect();
        let ended = running.into_iter().map(|client| {
            let ended = client.join();
            ended.map_err(|_| Failure::broken("a thread of the check panicked"))?
        });
        ended.collect()
    })
}

/// Runs all rounds of one client.
fn drive(
    client: Client,
    plan: &Plan,
    floe: &Path,
    installed: &Installed,
) -> Result<Outcome, Failure> {
    if let Some(endpoint) = &plan.endpoint {
        return drive_other(client, endpoint, installed);
    }
    let folder = tempfile::tempdir()?;
    let with_keys = Setup {
        floe,
        store: Store::Directory(folder.path()),
        has_keys: true,
    };
    if let Some(bug) = plan.planted {
        return drive_flawed(client, with_keys, bug, installed);
    }
    let mut total = Outcome::default();
    for _ in 0..plan.rounds {
        total.add(drive_server(client, with_keys.clone(), installed)?);
    }
    let without_keys = Setup {
        floe,
        store: Store::Memory,
        has_keys: false,
    };
    total.add(drive_server(client, without_keys, installed)?);
    Ok(total)
}

/// Runs a client against our server.
fn drive_server(
    client: Client,
    setup: Setup<'_>,
    installed: &Installed,
) -> Result<Outcome, Failure> {
    let has_keys = setup.has_keys;
    let mut server = Server::start(setup)?;
    let mut command = client.command(installed, server.address());
    command.args((!has_keys).then_some("--without-keys"));
    program::run(command, || server.kill_and_restart())
}

/// Runs a client against a server with a planted bug.
fn drive_flawed(
    client: Client,
    mut setup: Setup<'_>,
    bug: Bug,
    installed: &Installed,
) -> Result<Outcome, Failure> {
    if bug == Bug::ForgetfulServer {
        setup.store = Store::Memory;
    }
    let change = match bug {
        Bug::WrongAnswer => Some(Change::LastPage),
        Bug::WrongChecksum => Some(Change::Checksum),
        _ => None,
    };
    let mut server = Server::start(setup)?;
    let proxy = change.map(|change| Proxy::start(server.address(), change));
    let proxy = proxy.transpose()?;
    let address = proxy.as_ref().map_or(server.address(), Proxy::address);
    let mut command = client.command(installed, address);
    command.args(client.finder(bug).map(|name| format!("--only={name}")));
    program::run(command, || server.kill_and_restart())
}

/// Runs a client against a server that is not ours.
fn drive_other(client: Client, endpoint: &str, installed: &Installed) -> Result<Outcome, Failure> {
    let address = endpoint.trim_start_matches("http://");
    let mut command = client.command(installed, address.trim_end_matches('/'));
    command.args(OURS_ONLY.map(|name| format!("--except={name}")));
    let refuse = || {
        Err(Failure::broken(
            "a server that is not ours cannot be killed",
        ))
    };
    program::run(command, refuse)
}
