//! The methods of opening a directory, and the expectations of each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::Args;
use floe_local::LocalEngine;
use floe_store::Engine;
use floe_store::op::Scan;

use super::super::planted::Bug;
use super::super::program::{Process, ProcessOutput, Program};
use super::super::tool::last_lines;
use super::super::tree::{self, Tree};
use super::super::{child, runtime};
use super::kinds::{Expect, Kind, Site};
use super::{ITEMS, TABLE};
use crate::checks::role::Role;
use crate::{Failure, out};

/// The role of the process that opens a directory with the library.
pub(crate) const ROLE: &str = "foreign-open";

/// Time limit for a process to reject or open the directory.
const DEADLINE: Duration = Duration::from_secs(10);
/// Maximum number of differing paths in a message.
const NAMED_MAX: usize = 4;
/// Printed by the opening process before the number of items.
const OPENED: &str = "opened items=";

/// A method of opening a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenMethod {
    /// `LocalEngine::open`, in its own process.
    Open,
    /// `floe serve`.
    Serve,
    /// `floe import --new`.
    Import,
    /// `floe doctor`.
    Doctor,
    /// `floe backup` of another store to it.
    Backup,
    /// `floe backup` with the directory at the path of the unfinished copy.
    BackupToSibling,
}

impl OpenMethod {
    pub(super) const ALL: [Self; 6] = [
        Self::Open,
        Self::Serve,
        Self::Import,
        Self::Doctor,
        Self::Backup,
        Self::BackupToSibling,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Serve => "serve",
            Self::Import => "import",
            Self::Doctor => "doctor",
            Self::Backup => "backup",
            Self::BackupToSibling => "backup-to-sibling",
        }
    }

    /// Whether the method creates a store where there is none.
    const fn makes_stores(self) -> bool {
        matches!(self, Self::Open | Self::Serve | Self::Import)
    }
}

/// A violated expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The content of the directory changed.
    Changed,
    /// The directory was accepted as a store.
    Accepted,
    /// A process panicked or aborted.
    Panics,
    /// A process neither rejected nor opened the directory.
    Hangs,
    /// The message does not name what was found.
    Unnamed,
    /// A store with a stray file lost items.
    Lost,
    /// A directory that can become a store was rejected.
    Barred,
}

impl Fault {
    pub(super) const ALL: [Self; 7] = [
        Self::Changed,
        Self::Accepted,
        Self::Panics,
        Self::Hangs,
        Self::Unnamed,
        Self::Lost,
        Self::Barred,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Accepted => "accepted",
            Self::Panics => "panics",
            Self::Hangs => "hangs",
            Self::Unnamed => "unnamed",
            Self::Lost => "lost",
            Self::Barred => "barred",
        }
    }
}

/// The result of one run.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The faults, each with details.
    pub(super) faults: Vec<(Fault, String)>,
}

impl Outcome {
    fn fault(&mut self, fault: Fault, what: impl Into<String>) {
        self.faults.push((fault, what.into()));
    }
}

/// Runs trials.
pub(super) struct Runner<'a> {
    pub(super) floe: Program,
    /// A closed store with items.
    pub(super) store: &'a Path,
    pub(super) scratch: &'a Path,
    pub(super) planted: Option<Bug>,
}

impl Runner<'_> {
    /// Creates a directory of this kind, opens it with this method, and compares it.
    pub(super) fn run(&self, kind: &Kind, method: OpenMethod) -> Result<Outcome, Failure> {
        let work_dir = tempfile::tempdir_in(self.scratch)?;
        // A short path: the message must name what was found, and a path that happens to contain the name does not
        // count.
        let root = work_dir.path().join("root");
        let name = match method {
            OpenMethod::BackupToSibling => "x.tmp",
            _ => "x",
        };
        let site = Site {
            dir: root.join(name),
            elsewhere: root.join("elsewhere"),
            store: self.store,
        };
        fs::create_dir_all(&site.elsewhere)?;
        (kind.make)(&site)?;
        let source = work_dir.path().join("source");
        if matches!(method, OpenMethod::Backup | OpenMethod::BackupToSibling) {
            tree::copy(self.store, &source)?;
        }
        let before = self.snapshot(kind, &site, &root, method)?;
        let process = Process::start(self.command(method, &site, &source, work_dir.path())?)?;
        let output = process.end_by(Instant::now() + DEADLINE, is_opened)?;
        let mut outcome = Outcome::default();
        check_output(&mut outcome, kind, method, &site, &output);
        let after = self.snapshot(kind, &site, &root, method)?;
        if kind.expect != Expect::Accepted && before != after {
            let differences = before.differences(&after);
            let named: Vec<_> = differences.iter().take(NAMED_MAX).cloned().collect();
            let what = format!("paths={} {}", differences.len(), named.join(" "));
            outcome.fault(Fault::Changed, what);
        }
        Ok(outcome)
    }

    /// Takes a snapshot of what must not change.
    fn snapshot(
        &self,
        kind: &Kind,
        site: &Site<'_>,
        root: &Path,
        method: OpenMethod,
    ) -> Result<Tree, Failure> {
        let watched: PathBuf = match (kind.expect, method) {
            // A store may change its own files, but not the stray one.
            (Expect::Kept, _) => match kind.stray(site)? {
                Some(stray) => stray,
                None => return Ok(Tree::default()),
            },
            // The copy may be created, at another path.
            (_, OpenMethod::BackupToSibling) => site.dir.clone(),
            _ => root.to_owned(),
        };
        Ok(Tree::of_existing(&watched)?)
    }

    fn command(
        &self,
        method: OpenMethod,
        site: &Site<'_>,
        source: &Path,
        work_dir: &Path,
    ) -> Result<Command, Failure> {
        let mut command = self.floe.command();
        match method {
            OpenMethod::Open => {
                command = child::command_on(ROLE, &site.dir, self.planted)?;
            }
            OpenMethod::Serve => command = self.floe.serve(&site.dir),
            OpenMethod::Import => {
                let lines = work_dir.join("lines");
                fs::write(&lines, "")?;
                command.args(["import", "--new", "--json", "--from"]);
                command.arg(lines).arg("--data").arg(&site.dir);
            }
            OpenMethod::Doctor => {
                command.arg("doctor").arg("--data").arg(&site.dir);
            }
            OpenMethod::Backup | OpenMethod::BackupToSibling => {
                // `x`; for the directory `x.tmp` also `x`.
                let target = site.dir.with_extension("");
                command.arg("backup").arg(target).arg("--data").arg(source);
            }
        }
        Ok(command)
    }
}

/// Whether a process reports that it has opened the directory.
fn is_opened(stdout: &str) -> bool {
    stdout.contains(OPENED) || stdout.contains("http://")
}

/// Checks how the process ended.
fn check_output(
    outcome: &mut Outcome,
    kind: &Kind,
    method: OpenMethod,
    site: &Site<'_>,
    output: &ProcessOutput,
) {
    let is_opened = is_opened(&output.stdout);
    let is_accepted = is_opened || output.is_success();
    let message = || format!("message={:?}", last_lines(&output.stderr));
    if output.panicked() {
        outcome.fault(Fault::Panics, output.panic_message());
        return;
    }
    if output.status.is_none() && !is_opened {
        outcome.fault(Fault::Hangs, message());
        return;
    }
    match kind.expect {
        // The backup may succeed if it does not touch the directory.
        Expect::Refused if method == OpenMethod::BackupToSibling => {}
        Expect::Refused if is_accepted => outcome.fault(Fault::Accepted, message()),
        Expect::Kept if method == OpenMethod::Open && is_opened => {
            let items = format!("{OPENED}{ITEMS}\n");
            if !output.stdout.contains(&items) {
                outcome.fault(Fault::Lost, output.stdout.trim().to_owned());
            }
        }
        Expect::Refused | Expect::Kept
            if method.makes_stores() && !is_accepted && !kind.is_named(site, &output.stderr) =>
        {
            outcome.fault(Fault::Unnamed, message());
        }
        Expect::Accepted if method.makes_stores() && !is_accepted => {
            outcome.fault(Fault::Barred, message());
        }
        _ => {}
    }
}

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct OpenRole {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for OpenRole {
    const NAME: &str = ROLE;

    /// Opens a directory, and prints the number of items in its table.
    fn run(self) -> Result<ExitCode, Failure> {
        let folder = self.folder;
        if self.planted == Some(Bug::ClearsForeign) {
            // An error means that there is no such directory.
            drop(fs::remove_dir_all(folder.join("data")));
        }
        let engine = LocalEngine::open(&folder)?;
        let items = runtime()?.block_on(async {
            let page = engine.scan(Scan::new(TABLE)).await;
            page.map_or(0, |page| page.count)
        });
        out::figures(&format!("{OPENED}{items}"));
        engine.close()?;
        Ok(ExitCode::SUCCESS)
    }
}
