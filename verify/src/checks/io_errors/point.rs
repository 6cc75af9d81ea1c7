//! One call that fails, and what must hold after it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::super::audit::look_over;
use super::super::child::{self, Child, Ending, Heard};
use super::super::directory::Settings;
use super::super::findings::Findings;
use super::super::ledger::Ledger;
use super::super::record::Record;
use super::super::replay::Replay;
use super::{Plan, ROLE};
use crate::Failure;
use crate::disk::{DirModel, Disk, Loss, Trace};
use crate::shim::{Counts, Fault, FaultKind, SHIM_EXIT, Shim};

/// A process that says nothing for so long hangs.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The directory that the process finds, and what is known of it.
pub(super) struct Base {
    /// Its content; none for an empty directory.
    folder: Option<PathBuf>,
    ledger: Ledger,
}

impl Base {
    /// An empty directory: the failure may hit while the store is made.
    pub(super) fn empty() -> Self {
        Self {
            folder: None,
            ledger: Ledger::default(),
        }
    }

    /// A directory of which the last process was killed: the failure may hit while it is recovered.
    pub(super) fn used(folder: &Path, plan: Plan) -> Result<Self, Failure> {
        std::fs::create_dir(folder)?;
        let child = Child::start(endure(plan, folder, 1)?)?;
        let mut ledger = Ledger::default();
        loop {
            match child.hear(Instant::now() + SILENCE_MAX) {
                // Killed before it can close the directory.
                Heard::Record(Record::Done) => break,
                Heard::Record(record) => ledger.take(&record),
                Heard::Nothing | Heard::End => {
                    return Err(Failure::broken(
                        "the process to start from did not end well",
                    ));
                }
            }
        }
        child.kill()?;
        Ok(Self {
            folder: Some(folder.to_owned()),
            ledger,
        })
    }

    fn copy_to(&self, target: &Path) -> Result<(), Failure> {
        std::fs::create_dir(target)?;
        match &self.folder {
            Some(folder) => Ok(copy(folder, target)?),
            None => Ok(()),
        }
    }

    const fn round(&self) -> u64 {
        if self.folder.is_some() { 2 } else { 1 }
    }
}

fn copy(source: &Path, target: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(source)? {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            std::fs::create_dir(&to)?;
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// The process.
pub(super) fn endure(plan: Plan, folder: &Path, round: u64) -> std::io::Result<Command> {
    let mut command = child::command_on(ROLE, folder, plan.planted)?;
    command.arg("--seed").arg(plan.seed.to_string());
    command.arg("--round").arg(round.to_string());
    command.arg("--operations").arg(plan.operations.to_string());
    let settings = Settings {
        is_small: true,
        ..Settings::default()
    };
    command.args(settings.flags());
    Ok(command)
}

/// What a process did wrong, counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// It acknowledged a write after one had failed.
    pub(super) resumed: u64,
    /// A failure was told as something else than a failure of the storage.
    pub(super) unclear: u64,
    /// It panicked or died.
    pub(super) panicked: u64,
    /// It did not come to an end.
    pub(super) hung: u64,
    /// Its directory could not be opened afterwards.
    pub(super) unopened: u64,
}

impl Faults {
    pub(super) const fn is_clean(&self) -> bool {
        self.resumed == 0
            && self.unclear == 0
            && self.panicked == 0
            && self.hung == 0
            && self.unopened == 0
    }

    pub(super) const fn add(&mut self, other: &Self) {
        self.resumed += other.resumed;
        self.unclear += other.unclear;
        self.panicked += other.panicked;
        self.hung += other.hung;
        self.unopened += other.unopened;
    }
}

/// What one point has come to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) is_injected: bool,
    /// The process refused to write or to open.
    pub(super) is_refused: bool,
    /// Whether a write was refused until the directory is opened again.
    is_final: bool,
    pub(super) faults: Faults,
    pub(super) findings: Findings,
}

/// Where points are run.
pub(super) struct Bench<'a> {
    pub(super) plan: Plan,
    pub(super) shim: &'a Shim,
    pub(super) base: &'a Base,
}

impl Bench<'_> {
    /// Counts the calls of a process that meets no failure.
    pub(super) fn count(&self, scratch: &Path) -> Result<Counts, Failure> {
        let place = tempfile::tempdir_in(scratch)?;
        let (data, counts) = (place.path().join("data"), place.path().join("counts"));
        self.base.copy_to(&data)?;
        let mut command = endure(self.plan, &data, self.base.round())?;
        self.shim.watch(&data).count(&counts).apply(&mut command)?;
        let mut outcome = Outcome::default();
        let mut ledger = self.base.ledger.clone();
        outcome.watch(command, &mut ledger)?;
        if outcome.is_refused || !outcome.faults.is_clean() {
            let notes = outcome.findings.notes.join("; ");
            return Err(Failure::broken(format!(
                "the run without a failure failed: {notes}"
            )));
        }
        Ok(Counts::read(&counts)?)
    }

    /// Runs the process with a failure, and looks its directory over.
    pub(super) fn run(&self, fault: Fault, scratch: &Path) -> Result<Outcome, Failure> {
        let place = tempfile::tempdir_in(scratch)?;
        let file = |name| place.path().join(name);
        let (data, counts, trace) = (file("data"), file("counts"), file("trace"));
        self.base.copy_to(&data)?;
        let mut command = endure(self.plan, &data, self.base.round())?;
        let is_sync = fault.kind == FaultKind::SyncEio;
        let mut watch = self.shim.watch(&data).fail(fault).count(&counts);
        if is_sync {
            watch = watch.trace(&trace);
        }
        watch.apply(&mut command)?;
        let mut outcome = Outcome::default();
        let mut ledger = self.base.ledger.clone();
        outcome.watch(command, &mut ledger)?;
        outcome.is_injected = Counts::read(&counts)?.injected > 0;
        outcome.look_over(&data, &ledger);
        let trace = is_sync.then(|| Trace::read(&trace)).transpose()?;
        if let Some(trace) = trace.filter(|trace| trace.first_fault().is_some()) {
            // After a failed sync the cache and the disk differ, and only a cut of the power shows it.
            let cut = file("cut");
            let disk = Disk::replay(&trace, DirModel::Ext4, trace.len())?;
            disk.materialise(&cut, fault.nth, Loss::All)?;
            outcome.look_over(&cut, &ledger);
        }
        Ok(outcome)
    }
}

impl Outcome {
    /// Runs a process to its end.
    pub(super) fn watch(&mut self, command: Command, ledger: &mut Ledger) -> Result<(), Failure> {
        let mut child = Child::start(command)?;
        loop {
            match child.hear(Instant::now() + SILENCE_MAX) {
                Heard::Record(record) => {
                    ledger.take(&record);
                    self.take(record);
                }
                Heard::End => break,
                Heard::Nothing => {
                    self.faults.hung += 1;
                    self.findings.note("the process hangs".to_owned());
                    child.kill()?;
                    return Ok(());
                }
            }
        }
        let ending = child.end()?;
        let Ending { status, stderr } = &ending;
        if status.code() == Some(SHIM_EXIT) {
            return Err(Failure::broken(stderr.clone()));
        }
        if !status.success() || ending.panicked() {
            self.faults.panicked += 1;
            self.findings
                .note(format!("the process died or panicked: {status} {stderr}"));
        }
        Ok(())
    }

    fn take(&mut self, record: Record) {
        match record {
            // After a failure that passes, the store goes on by itself; after any other it must not.
            Record::Acked(stamp) if self.is_final => {
                self.faults.resumed += 1;
                self.findings
                    .note(format!("acknowledged after a failure: stamp={stamp}"));
            }
            Record::Failed(_, why) | Record::ReadFailed(why) => {
                // The operation that the failure hit may have been applied; those refused later were not.
                self.is_final |= why.starts_with("Storage(");
                let is_clear = ["Storage(", "Unavailable(", "OutcomeUnknown("]
                    .iter()
                    .any(|kind| why.starts_with(kind));
                self.is_refused = true;
                if !is_clear {
                    self.faults.unclear += 1;
                    self.findings
                        .note(format!("not a failure of the storage: {why}"));
                }
            }
            Record::Broken(what) => {
                self.findings.phantom += 1;
                self.findings.note(what);
            }
            _ => {}
        }
    }

    /// Opens the directory without any failure and compares it with what is known.
    pub(super) fn look_over(&mut self, folder: &Path, ledger: &Ledger) {
        match look_over(folder, ledger, &mut Replay::default()) {
            Ok((findings, _)) => self.findings.add(findings),
            Err(Failure::Usage(why) | Failure::Broken(why)) => {
                self.faults.unopened += 1;
                self.findings.note(format!("not opened: {why}"));
            }
        }
    }
}
