//! `dynoxide-rs`, served by this program in another role, in the same way as its own program.
//!
//! In a directory, its database has its defaults: SQLite with a write-ahead log, synced before each commit is
//! acknowledged.

use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use ::dynoxide::Database;
use ::dynoxide::server::serve_on;
use clap::Args;

use crate::{Benchmark, Fallible, parsed};

/// The flags of the role.
#[derive(Debug, Args)]
struct Flags {
    #[arg(long)]
    data: Option<String>,
}

/// The role: prints its address, then serves until it is killed.
pub(crate) const ROLE: Benchmark = Benchmark {
    name: "serve-dynoxide",
    about: "Serve dynoxide-rs for the wire benchmark.",
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

/// The command that starts this program in that role, in memory or in a directory.
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
