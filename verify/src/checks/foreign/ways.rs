//! The ways of opening a directory, and what must hold after each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::Args;
use floe_local::LocalEngine;
use floe_store::Engine;
use floe_store::op::Scan;

use super::super::planted::Bug;
use super::super::program::{Ended, Process, Program};
use super::super::tool::last_lines;
use super::super::tree::{self, Tree};
use super::super::{child, runtime};
use super::kinds::{Expect, Kind, Site};
use super::{ITEMS, TABLE};
use crate::checks::role::Role;
use crate::{Failure, out};

/// The role of the process that opens a directory with the library.
pub(crate) const ROLE: &str = "foreign-open";

/// A process that has neither refused nor opened the directory by then hangs.
const DEADLINE: Duration = Duration::from_secs(10);
/// How many of the paths that differ are named.
const NAMED_MAX: usize = 4;
/// What the opening process prints when it has a store, before the number of its items.
const OPENED: &str = "opened items=";

/// A way of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// `LocalEngine::open`, in a process of its own.
    Open,
    /// `floe serve`.
    Serve,
    /// `floe import --new`.
    Import,
    /// `floe doctor`.
    Doctor,
    /// `floe backup` of another store to it.
    Backup,
    /// `floe backup` to a name of which it has the place of the unfinished copy.
    BackupBeside,
}

impl Way {
    pub(super) const ALL: [Self; 6] = [
        Self::Open,
        Self::Serve,
        Self::Import,
        Self::Doctor,
        Self::Backup,
        Self::BackupBeside,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Serve => "serve",
            Self::Import => "import",
            Self::Doctor => "doctor",
            Self::Backup => "backup",
            Self::BackupBeside => "backup-beside",
        }
    }

    /// Whether it makes a store where there is none.
    const fn makes_stores(self) -> bool {
        matches!(self, Self::Open | Self::Serve | Self::Import)
    }
}

/// What must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Something in the directory is not as before.
    Changed,
    /// It was taken for a store.
    Accepted,
    /// A process panicked or aborted.
    Panics,
    /// A process neither refused nor opened it.
    Hangs,
    /// The message does not name what was found.
    Unnamed,
    /// A store with a stray file has lost items.
    Lost,
    /// A directory that can become a store was refused.
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

/// What one run has come to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What was wrong, each with facts for the reader.
    pub(super) faults: Vec<(Fault, String)>,
}

impl Outcome {
    fn fault(&mut self, fault: Fault, what: impl Into<String>) {
        self.faults.push((fault, what.into()));
    }
}

/// Where runs take place.
pub(super) struct Bench<'a> {
    pub(super) floe: Program,
    /// A closed store with items.
    pub(super) store: &'a Path,
    pub(super) scratch: &'a Path,
    pub(super) planted: Option<Bug>,
}

impl Bench<'_> {
    /// Makes a directory of this kind, opens it in this way, and compares.
    pub(super) fn run(&self, kind: &Kind, way: Way) -> Result<Outcome, Failure> {
        let place = tempfile::tempdir_in(self.scratch)?;
        // A short path: the message must name what was found, and a path that holds its name is no such thing.
        let root = place.path().join("root");
        let name = match way {
            Way::BackupBeside => "x.tmp",
            _ => "x",
        };
        let site = Site {
            dir: root.join(name),
            elsewhere: root.join("elsewhere"),
            store: self.store,
        };
        fs::create_dir_all(&site.elsewhere)?;
        (kind.make)(&site)?;
        let source = place.path().join("source");
        if matches!(way, Way::Backup | Way::BackupBeside) {
            tree::copy(self.store, &source)?;
        }
        let before = self.snapshot(kind, &site, &root, way)?;
        let process = Process::start(self.command(way, &site, &source, place.path())?)?;
        let ended = process.end_by(Instant::now() + DEADLINE, is_opened)?;
        let mut outcome = Outcome::default();
        judge(&mut outcome, kind, way, &site, &ended);
        let after = self.snapshot(kind, &site, &root, way)?;
        if kind.expect != Expect::Accepted && before != after {
            let differences = before.differences(&after);
            let named: Vec<_> = differences.iter().take(NAMED_MAX).cloned().collect();
            let what = format!("paths={} {}", differences.len(), named.join(" "));
            outcome.fault(Fault::Changed, what);
        }
        Ok(outcome)
    }

    /// What has to stay as it is.
    fn snapshot(
        &self,
        kind: &Kind,
        site: &Site<'_>,
        root: &Path,
        way: Way,
    ) -> Result<Tree, Failure> {
        let watched: PathBuf = match (kind.expect, way) {
            // A store may change its own files.
            (Expect::Kept, _) => match kind.stray(site)? {
                Some(stray) => stray,
                None => return Ok(Tree::default()),
            },
            // The copy may be made, elsewhere.
            (_, Way::BackupBeside) => site.dir.clone(),
            _ => root.to_owned(),
        };
        Ok(Tree::of_existing(&watched)?)
    }

    fn command(
        &self,
        way: Way,
        site: &Site<'_>,
        source: &Path,
        place: &Path,
    ) -> Result<Command, Failure> {
        let mut command = self.floe.command();
        match way {
            Way::Open => {
                command = child::command_on(ROLE, &site.dir, self.planted)?;
            }
            Way::Serve => command = self.floe.serve(&site.dir),
            Way::Import => {
                let lines = place.join("lines");
                fs::write(&lines, "")?;
                command.args(["import", "--new", "--json", "--from"]);
                command.arg(lines).arg("--data").arg(&site.dir);
            }
            Way::Doctor => {
                command.arg("doctor").arg("--data").arg(&site.dir);
            }
            Way::Backup | Way::BackupBeside => {
                // `x` or, beside `x.tmp`, also `x`.
                let target = site.dir.with_extension("");
                command.arg("backup").arg(target).arg("--data").arg(source);
            }
        }
        Ok(command)
    }
}

/// Whether a process reports that it has the directory open.
fn is_opened(stdout: &str) -> bool {
    stdout.contains(OPENED) || stdout.contains("http://")
}

/// Judges how the process ended.
fn judge(outcome: &mut Outcome, kind: &Kind, way: Way, site: &Site<'_>, ended: &Ended) {
    let is_opened = is_opened(&ended.stdout);
    let is_accepted = is_opened || ended.is_success();
    let message = || format!("message={:?}", last_lines(&ended.stderr));
    if ended.panicked() {
        outcome.fault(Fault::Panics, ended.panic_message());
        return;
    }
    if ended.status.is_none() && !is_opened {
        outcome.fault(Fault::Hangs, message());
        return;
    }
    match kind.expect {
        // The backup itself may succeed, as long as it leaves the directory alone.
        Expect::Refused if way == Way::BackupBeside => {}
        Expect::Refused if is_accepted => outcome.fault(Fault::Accepted, message()),
        Expect::Kept if way == Way::Open && is_opened => {
            let items = format!("{OPENED}{ITEMS}\n");
            if !ended.stdout.contains(&items) {
                outcome.fault(Fault::Lost, ended.stdout.trim().to_owned());
            }
        }
        Expect::Refused | Expect::Kept
            if way.makes_stores() && !is_accepted && !kind.is_named(site, &ended.stderr) =>
        {
            outcome.fault(Fault::Unnamed, message());
        }
        Expect::Accepted if way.makes_stores() && !is_accepted => {
            outcome.fault(Fault::Barred, message());
        }
        _ => {}
    }
}

/// What the process is told.
#[derive(Debug, Args)]
pub(in crate::checks) struct Opening {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for Opening {
    const NAME: &str = ROLE;

    /// Runs the role: opens a directory, and prints how many items its table has.
    fn run(self) -> Result<ExitCode, Failure> {
        let folder = self.folder;
        if self.planted == Some(Bug::ClearsForeign) {
            // It fails where there is no such directory.
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
