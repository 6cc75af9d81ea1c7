//! The registry of roles.

use std::process::ExitCode;

use clap::{ArgMatches, Command};

use super::role::Role;
use super::{bit_rot, expiry, feed, foreign, graph, hostile, io_errors, soak, tables, writer};
use crate::Failure;

/// A role with its type erased.
struct AnyRole {
    name: &'static str,
    flags: fn(Command) -> Command,
    run: fn(&ArgMatches) -> Result<ExitCode, Failure>,
}

impl AnyRole {
    const fn of<R: Role>() -> Self {
        Self {
            name: R::NAME,
            flags: R::augment_args,
            run: |flags| R::from_arg_matches(flags)?.run(),
        }
    }
}

const ROLES: [AnyRole; 17] = [
    AnyRole::of::<bit_rot::ExamineRole>(),
    AnyRole::of::<bit_rot::MakeRole>(),
    AnyRole::of::<bit_rot::SalvageRole>(),
    AnyRole::of::<expiry::RouterRole>(),
    AnyRole::of::<feed::IndexerRole>(),
    AnyRole::of::<feed::GroupMemberRole>(),
    AnyRole::of::<feed::ServerRole>(),
    AnyRole::of::<feed::ViewRole>(),
    AnyRole::of::<feed::WriterRole>(),
    AnyRole::of::<foreign::OpenRole>(),
    AnyRole::of::<graph::DeleteHubRole>(),
    AnyRole::of::<graph::WorkerRole>(),
    AnyRole::of::<hostile::ServerRole>(),
    AnyRole::of::<io_errors::FaultedClientRole>(),
    AnyRole::of::<soak::LoadRole>(),
    AnyRole::of::<tables::TableCycleRole>(),
    AnyRole::of::<writer::WriterRole>(),
];

/// The hidden command that runs a role.
pub(crate) fn command(name: &'static str) -> Command {
    let roles = ROLES.iter();
    let roles = roles.map(|role| (role.flags)(Command::new(role.name)));
    Command::new(name)
        .hide(true)
        .subcommand_required(true)
        .subcommands(roles)
}

/// Runs the selected role.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (name, flags) = matches.subcommand().unwrap_or(("", matches));
    let role = ROLES.iter().find(|role| role.name == name);
    let role = role.ok_or_else(|| Failure::usage(format!("unknown role: {name}")))?;
    (role.run)(flags)
}
