//! The processes of a run: who there is, and who is killed and started again.

use std::fs::OpenOptions;
use std::process::{Child, Stdio};

use floe_store::env::SeededRandom;

use super::consume::{GROUP_ROLE, MEMBERS, VIEW_ROLE, VIEWS};
use super::index::{self, INDEXERS};
use super::server::Served;
use super::setting::{Files, Orders};
use super::{Plan, write};
use crate::Failure;
use crate::checks::planted::Bug;
use crate::checks::stage::mixed;

/// How many processes write.
const WRITERS: u64 = 2;

/// Who a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Writer,
    Indexer,
    Member,
    View,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Writer => write::ROLE,
            Self::Indexer => index::ROLE,
            Self::Member => GROUP_ROLE,
            Self::View => VIEW_ROLE,
        }
    }
}

/// Who is killed in a round; `None` is the server.
const DECK: [Option<Role>; 8] = [
    None,
    Some(Role::Indexer),
    Some(Role::Indexer),
    Some(Role::Indexer),
    Some(Role::Member),
    Some(Role::Member),
    Some(Role::View),
    Some(Role::View),
];

/// How many of each were killed.
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
pub(super) struct Cast {
    plan: Plan,
    files: Files,
    server: Served,
    actors: Vec<Actor>,
    random: SeededRandom,
    deck: Vec<Option<Role>>,
    pub(super) kills: Kills,
    /// How many processes were started.
    started: u64,
}

/// A process that talks to the server. It does not outlive this.
struct Actor {
    role: Role,
    number: u64,
    process: Child,
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Cast {
    /// Starts all of them.
    pub(super) fn start(plan: Plan, files: &Files, server: Served) -> Result<Self, Failure> {
        let mut cast = Self {
            plan,
            files: files.clone(),
            server,
            actors: Vec::new(),
            random: SeededRandom::new(plan.seed),
            deck: Vec::new(),
            kills: Kills::default(),
            started: 0,
        };
        let indexers = match plan.planted {
            // What it loses, another one would find.
            Some(Bug::EarlyPosition) => 1,
            _ => INDEXERS,
        };
        for (role, count) in [
            (Role::Writer, WRITERS),
            (Role::Indexer, indexers),
            (Role::Member, MEMBERS),
            (Role::View, VIEWS),
        ] {
            for number in 0..count {
                let actor = cast.enter(role, number)?;
                cast.actors.push(actor);
            }
        }
        Ok(cast)
    }

    /// Kills somebody who does not write, or the server, and starts him again.
    pub(super) fn kill_one(&mut self) -> Result<(), Failure> {
        let Some(role) = self.draw() else {
            self.server.kill();
            self.kills.servers += 1;
            return self.server.restart();
        };
        match role {
            Role::Indexer => self.kills.indexers += 1,
            Role::Member => self.kills.members += 1,
            _ => self.kills.views += 1,
        }
        let of_role = |actor: &Actor| actor.role == role;
        let count = self.actors.iter().filter(|actor| of_role(actor)).count() as u64;
        let number = self.random.below(count.max(1));
        self.actors
            .retain(|actor| !(of_role(actor) && actor.number == number));
        let actor = self.enter(role, number)?;
        self.actors.push(actor);
        Ok(())
    }

    /// Who is next, or the server. All have their turn in each round, in another order each time.
    fn draw(&mut self) -> Option<Role> {
        if self.deck.is_empty() {
            self.deck.extend(DECK);
        }
        let place = self.random.below(self.deck.len() as u64);
        self.deck
            .swap_remove(usize::try_from(place).unwrap_or_default())
    }

    /// Whether somebody still writes. Who else has ended has failed, and says why.
    pub(super) fn is_writing(&mut self) -> Result<bool, Failure> {
        let mut is_writing = false;
        for actor in &mut self.actors {
            let (role, ended) = (actor.role, actor.process.try_wait()?);
            match ended {
                None => is_writing |= role == Role::Writer,
                Some(status) if role == Role::Writer && status.success() => {}
                Some(status) => {
                    let said = std::fs::read_to_string(self.files.stderr()).unwrap_or_default();
                    let said = said.trim_end();
                    return Err(Failure::Broken(format!(
                        "a process ended by itself: role={} {status}\n{said}",
                        role.name()
                    )));
                }
            }
        }
        Ok(is_writing)
    }

    /// Kills all of them.
    pub(super) fn end(self) -> Kills {
        self.kills
    }

    fn enter(&mut self, role: Role, number: u64) -> Result<Actor, Failure> {
        self.started += 1;
        let orders = Orders {
            files: self.files.clone(),
            address: self.server.address().to_owned(),
            seed: mixed(self.plan.seed ^ self.started),
            number,
            planted: self.plan.planted,
        };
        let mut command = orders.command(role.name())?;
        if role == Role::Writer {
            let events = self.plan.events.div_ceil(WRITERS);
            command.arg("--events").arg(events.to_string());
            command.arg("--streams").arg(self.plan.streams.to_string());
        }
        let said = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.files.stderr())?;
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()?;
        Ok(Actor {
            role,
            number,
            process,
        })
    }
}
