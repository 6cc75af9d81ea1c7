//! `dynoxide-rs`, served by this program started again in a role of its own, as its own program does it.
//!
//! In a directory it keeps a database with its defaults: SQLite with a write-ahead log, which syncs it
//! before each commit is answered.

use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use ::dynoxide::Database;
use ::dynoxide::server::serve_on;
use clap::Args;

use crate::{Benchmark, Fallible, parsed};

/// What the role is told.
#[derive(Debug, Args)]
struct Flags {
    #[arg(long)]
    data: Option<String>,
}

/// The role: it serves until it is killed, and tells its address first.
pub(crate) const ROLE: Benchmark = Benchmark {
    name: "serve-dynoxide",
    about: "Serves dynoxide-rs for the benchmark of the wire.",
    details: "",
    flags: Flags::augment_args,
    prepare: |flags| {
        let Flags { data: file } = parsed(flags)?;
        Ok(Box::new(move || {
            let database = match &file {
                Some(file) => Database::new(file)?,
                None => Database::memory()?,
            };
            serve(database).map(|()| true)
        }))
    },
};

/// This program in that role, in memory or on a directory.
pub(super) fn command(folder: Option<&Path>) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(ROLE.name);
    if let Some(folder) = folder {
        command.arg("--data").arg(folder.join("dynoxide.db"));
    }
    Ok(command)
}

fn serve(database: Database) -> Fallible<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        io::stdout().flush()?;
        serve_on(listener, database).await;
        Ok(())
    })
}
