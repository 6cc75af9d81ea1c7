//! The stores to damage, and the process that creates one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::Args;
use floe_local::{Durability, LocalEngine, Options};
use floe_store::op::{DeleteItem, PutItem, WriteItem};
use floe_store::{Engine, Item};

use super::super::planted::Bug;
use super::super::program::Process;
use super::super::{child, runtime, tree};
use super::content::{self, Content, TABLES, Write};
use crate::checks::role::Role;
use crate::{Failure, out};

/// The role of the process that creates a store.
pub(super) const ROLE: &str = "bit-rot-base";

/// Time limit for creating a store.
const MAKE_MAX: Duration = Duration::from_secs(120);
/// Printed by the process after the last write.
const DONE: &str = "done";
/// Printed before the offset of the end of a batch in the journal.
const BOUNDARY: &str = "boundary=";

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Closed, and small enough to fit in its journal.
    Journal,
    /// Closed, with sorted files.
    Sorted,
    /// With sorted files, left by a killed process.
    Killed,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Journal, Self::Sorted, Self::Killed];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Sorted => "sorted",
            Self::Killed => "killed",
        }
    }

    pub(super) const fn content(self) -> Content {
        match self {
            Self::Journal => Content {
                items: 40,
                tail: 20,
                payload_bytes: 200,
            },
            Self::Sorted => Content {
                items: 500,
                tail: 20,
                payload_bytes: 1200,
            },
            Self::Killed => Content {
                items: 300,
                tail: 20,
                payload_bytes: 1200,
            },
        }
    }
}

impl FromStr for Kind {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or("unknown kind of store")
    }
}

/// A store to damage.
#[derive(Debug)]
pub(super) struct Base {
    kind: Kind,
    folder: PathBuf,
    files: Vec<PathBuf>,
    /// Offsets of the ends of batches in the newest journal.
    boundaries: Vec<u64>,
}

impl Base {
    /// Creates a store in a separate process.
    pub(super) fn make(kind: Kind, parent: &Path, planted: Option<Bug>) -> Result<Self, Failure> {
        let folder = parent.join(kind.name());
        let mut command = child::command_on(ROLE, &folder, planted)?;
        command.arg("--kind").arg(kind.name());
        let deadline = Instant::now() + MAKE_MAX;
        // A process of kind `Killed` is killed when it reports that it is done.
        let is_done = |printed: &str| kind == Kind::Killed && printed.contains(DONE);
        let output = Process::start(command)?.end_by(deadline, is_done)?;
        if !output.stdout.contains(DONE) || (kind != Kind::Killed && !output.is_success()) {
            return Err(Failure::broken(format!(
                "cannot create the store to damage: kind={} {}",
                kind.name(),
                output.stderr
            )));
        }
        let boundaries = output.stdout.lines();
        let boundaries = boundaries.filter_map(|line| line.strip_prefix(BOUNDARY)?.parse().ok());
        Ok(Self {
            kind,
            files: tree::files(&folder)?,
            boundaries: boundaries.collect(),
            folder,
        })
    }

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The files of the store, relative to its folder.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    pub(super) fn boundaries(&self) -> &[u64] {
        &self.boundaries
    }

    /// The journal written last.
    pub(super) fn newest_journal(&self) -> Option<&PathBuf> {
        newest(&self.files)
    }
}

/// The journal with the highest number.
fn newest(files: &[PathBuf]) -> Option<&PathBuf> {
    let journals = files
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    journals.max_by_key(|path| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        stem.parse::<u64>().unwrap_or_default()
    })
}

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct MakeRole {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    kind: Kind,
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for MakeRole {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let Self {
            folder,
            kind,
            planted,
        } = self;
        let mut options = Options::new().background(false);
        if kind != Kind::Journal {
            options = options.write_buffer_bytes(1 << 20);
        }
        let content = kind.content();
        let loading = options.clone().durability(Durability::Relaxed);
        let engine = LocalEngine::open_with(&folder, loading)?;
        runtime()?.block_on(async {
            for table in 0..TABLES {
                engine.create_table(content::table(table)?.into()).await?;
            }
            for write in content.writes() {
                apply(&engine, &content, write).await?;
            }
            if planted == Some(Bug::WrongAnswer) {
                let forged = content.item(0, 1, 1).with("payload", "never written");
                put(&engine, 0, forged).await?;
            }
            Ok::<(), Failure>(())
        })?;
        engine.close()?;
        drop(engine);

        // The last writes are synced one by one.
        let engine = LocalEngine::open_with(&folder, options)?;
        runtime()?.block_on(async {
            for write in content.tail() {
                apply(&engine, &content, write).await?;
                let files = tree::files(&folder)?;
                if let Some(journal) = newest(&files) {
                    let end = tree::data_end(&folder.join(journal))?;
                    out::figures(&format!("{BOUNDARY}{end}"));
                }
            }
            Ok::<(), Failure>(())
        })?;
        if kind == Kind::Killed {
            out::figures(DONE);
            // The process is killed during this pause.
            std::thread::park_timeout(MAKE_MAX);
        }
        engine.close()?;
        out::figures(DONE);
        Ok(ExitCode::SUCCESS)
    }
}

async fn apply(engine: &LocalEngine, content: &Content, write: Write) -> Result<(), Failure> {
    let Some(version) = write.version else {
        let key = content::key(write.number);
        let delete = DeleteItem::new(content::table_name(write.table), key);
        engine.write_item(WriteItem::Delete(delete)).await?;
        return Ok(());
    };
    let item = content.item(write.table, write.number, version);
    put(engine, write.table, item).await
}

async fn put(engine: &LocalEngine, table: u64, item: Item) -> Result<(), Failure> {
    let put = PutItem::new(content::table_name(table), item);
    engine.write_item(put.into()).await?;
    Ok(())
}
