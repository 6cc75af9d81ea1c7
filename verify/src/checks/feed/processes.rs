//! The processes of a run: starts them, kills some and starts them again.

use std::fs::OpenOptions;
use std::process::{Child, Stdio};

use floe_store::env::SeededRandom;

use super::config::{Files, ProcessArgs};
use super::consume::{GROUP_ROLE, MEMBERS, VIEW_ROLE, VIEWS};
use super::index::{self, INDEXERS};
use super::server::ServerProcess;
use super::{Plan, write};
use crate::Failure;
use crate::checks::planted::Bug;
use crate::checks::test_table::splitmix64;

/// Number of writer processes.
const WRITERS: u64 = 2;

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessRole {
    Writer,
    Indexer,
    Member,
    View,
}

impl ProcessRole {
    const fn name(self) -> &'static str {
        match self {
            Self::Writer => write::ROLE,
            Self::Indexer => index::ROLE,
            Self::Member => GROUP_ROLE,
            Self::View => VIEW_ROLE,
        }
    }
}

/// The targets of a round of kills; `None` is the server.
const KILL_ROUND: [Option<ProcessRole>; 8] = [
    None,
    Some(ProcessRole::Indexer),
    Some(ProcessRole::Indexer),
    Some(ProcessRole::Indexer),
    Some(ProcessRole::Member),
    Some(ProcessRole::Member),
    Some(ProcessRole::View),
    Some(ProcessRole::View),
];

/// Number of kills of each role.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kills {
    pub(super) indexers: u64,
    pub(super) members: u64,
    pub(super) views: u64,
    pub(super) servers: u64,
}

impl Kills {
    pub(super) const fn total(self) -> u64 {
        self.indexers + self.members + self.views + self.servers
    }
}

/// All processes.
pub(super) struct ProcessSet {
    plan: Plan,
    files: Files,
    server: ServerProcess,
    clients: Vec<ClientProcess>,
    random: SeededRandom,
    pending_targets: Vec<Option<ProcessRole>>,
    pub(super) kills: Kills,
    /// Number of processes started so far.
    started: u64,
}

/// A client process of the server. Dropping it kills the process.
struct ClientProcess {
    role: ProcessRole,
    number: u64,
    child: Child,
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl ProcessSet {
    /// Starts all processes.
    pub(super) fn start(plan: Plan, files: &Files, server: ServerProcess) -> Result<Self, Failure> {
        let mut processes = Self {
            plan,
            files: files.clone(),
            server,
            clients: Vec::new(),
            random: SeededRandom::new(plan.seed),
            pending_targets: Vec::new(),
            kills: Kills::default(),
            started: 0,
        };
        let indexers = match plan.planted {
            // A second indexer would find the events that this one loses.
            Some(Bug::EarlyPosition) => 1,
            _ => INDEXERS,
        };
        for (role, count) in [
            (ProcessRole::Writer, WRITERS),
            (ProcessRole::Indexer, indexers),
            (ProcessRole::Member, MEMBERS),
            (ProcessRole::View, VIEWS),
        ] {
            for number in 0..count {
                let client = processes.spawn(role, number)?;
                processes.clients.push(client);
            }
        }
        Ok(processes)
    }

    /// Kills a process that does not write, or the server, and restarts it.
    pub(super) fn kill_one(&mut self) -> Result<(), Failure> {
        let Some(role) = self.next_target() else {
            self.server.kill();
            self.kills.servers += 1;
            return self.server.restart();
        };
        match role {
            ProcessRole::Indexer => self.kills.indexers += 1,
            ProcessRole::Member => self.kills.members += 1,
            _ => self.kills.views += 1,
        }
        let of_role = |client: &ClientProcess| client.role == role;
        let count = self.clients.iter().filter(|client| of_role(client)).count() as u64;
        let number = self.random.below(count.max(1));
        self.clients
            .retain(|client| !(of_role(client) && client.number == number));
        let client = self.spawn(role, number)?;
        self.clients.push(client);
        Ok(())
    }

    /// Returns the next target; `None` is the server. Each round contains all targets in a random order.
    fn next_target(&mut self) -> Option<ProcessRole> {
        if self.pending_targets.is_empty() {
            self.pending_targets.extend(KILL_ROUND);
        }
        let position = self.random.below(self.pending_targets.len() as u64);
        self.pending_targets
            .swap_remove(usize::try_from(position).unwrap_or_default())
    }

    /// Whether a writer is still running. Any other process that has ended is an error.
    pub(super) fn is_writing(&mut self) -> Result<bool, Failure> {
        let mut is_writing = false;
        for client in &mut self.clients {
            let (role, ended) = (client.role, client.child.try_wait()?);
            match ended {
                None => is_writing |= role == ProcessRole::Writer,
                Some(status) if role == ProcessRole::Writer && status.success() => {}
                Some(status) => {
                    let stderr = std::fs::read_to_string(self.files.stderr()).unwrap_or_default();
                    let stderr = stderr.trim_end();
                    return Err(Failure::Broken(format!(
                        "a process ended unexpectedly: role={} {status}\n{stderr}",
                        role.name()
                    )));
                }
            }
        }
        Ok(is_writing)
    }

    /// Kills all processes.
    pub(super) fn end(self) -> Kills {
        self.kills
    }

    fn spawn(&mut self, role: ProcessRole, number: u64) -> Result<ClientProcess, Failure> {
        self.started += 1;
        let args = ProcessArgs {
            files: self.files.clone(),
            address: self.server.address().to_owned(),
            seed: splitmix64(self.plan.seed ^ self.started),
            number,
            planted: self.plan.planted,
        };
        let mut command = args.command(role.name())?;
        if role == ProcessRole::Writer {
            let events = self.plan.events.div_ceil(WRITERS);
            command.arg("--events").arg(events.to_string());
            command.arg("--streams").arg(self.plan.streams.to_string());
        }
        let stderr = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.files.stderr())?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()?;
        Ok(ClientProcess {
            role,
            number,
            child,
        })
    }
}
