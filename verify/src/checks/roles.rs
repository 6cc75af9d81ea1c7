//! The roles that there are.

use std::process::ExitCode;

use clap::{ArgMatches, Command};

use super::role::Role;
use super::{bit_rot, expiry, feed, foreign, graph, hostile, io_errors, soak, tables, writer};
use crate::Failure;

/// A role, whatever its flags.
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
    AnyRole::of::<bit_rot::Examining>(),
    AnyRole::of::<bit_rot::Making>(),
    AnyRole::of::<bit_rot::Salvaging>(),
    AnyRole::of::<expiry::Routing>(),
    AnyRole::of::<feed::Indexing>(),
    AnyRole::of::<feed::Member>(),
    AnyRole::of::<feed::Serving>(),
    AnyRole::of::<feed::View>(),
    AnyRole::of::<feed::Writing>(),
    AnyRole::of::<foreign::Opening>(),
    AnyRole::of::<graph::Deleting>(),
    AnyRole::of::<graph::Playing>(),
    AnyRole::of::<hostile::Serving>(),
    AnyRole::of::<io_errors::Enduring>(),
    AnyRole::of::<soak::Loading>(),
    AnyRole::of::<tables::Cycling>(),
    AnyRole::of::<writer::Writing>(),
];

/// The command that starts a role.
pub(crate) fn command(name: &'static str) -> Command {
    let roles = ROLES.iter();
    let roles = roles.map(|role| (role.flags)(Command::new(role.name)));
    Command::new(name)
        .hide(true)
        .subcommand_required(true)
        .subcommands(roles)
}

/// Runs a process that a check has started.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (name, flags) = matches.subcommand().unwrap_or(("", matches));
    let role = ROLES.iter().find(|role| role.name == name);
    let role = role.ok_or_else(|| Failure::usage(format!("no such role: {name}")))?;
    (role.run)(flags)
}
