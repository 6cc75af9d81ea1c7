//! One failing call, and the expectations after it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::super::audit::audit_directory;
use super::super::audit_report::AuditReport;
use super::super::child::{self, Child, ChildEvent, ChildExit};
use super::super::directory::Settings;
use super::super::ledger::Ledger;
use super::super::record::Record;
use super::super::replay::Replay;
use super::{Plan, ROLE};
use crate::Failure;
use crate::disk::{DirModel, Disk, Loss, Trace};
use crate::shim::{Counts, Fault, FaultKind, SHIM_EXIT, Shim};

/// A process that prints nothing for this long counts as hanging.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The initial directory of the process, and its ledger.
pub(super) struct Base {
    /// The content; `None` for an empty directory.
    folder: Option<PathBuf>,
    ledger: Ledger,
}

impl Base {
    /// An empty directory: the failure may occur while the store is created.
    pub(super) fn empty() -> Self {
        Self {
            folder: None,
            ledger: Ledger::default(),
        }
    }

    /// A directory whose last process was killed: the failure may occur during recovery.
    pub(super) fn used(folder: &Path, plan: Plan) -> Result<Self, Failure> {
        std::fs::create_dir(folder)?;
        let child = Child::start(process_command(plan, folder, 1)?)?;
        let mut ledger = Ledger::default();
        loop {
            match child.receive(Instant::now() + SILENCE_MAX) {
                // The process is killed before it closes the directory.
                ChildEvent::Record(Record::Done) => break,
                ChildEvent::Record(record) => ledger.apply(&record),
                ChildEvent::Timeout | ChildEvent::Closed => {
                    return Err(Failure::broken(
                        "the process that prepares the directory failed",
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

/// Returns the command of the process.
pub(super) fn process_command(plan: Plan, folder: &Path, round: u64) -> std::io::Result<Command> {
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

/// Wrong behavior of a process, counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// A write was acknowledged after one had failed.
    pub(super) resumed: u64,
    /// A failure was not reported as a storage error.
    pub(super) unclear: u64,
    /// The process panicked or died.
    pub(super) panicked: u64,
    /// The process did not end.
    pub(super) hung: u64,
    /// The directory could not be opened afterwards.
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

/// The result of one failure.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) is_injected: bool,
    /// The process rejected writes, or failed to open the directory.
    pub(super) is_refused: bool,
    /// Whether writes must be rejected until the directory is opened again.
    is_final: bool,
    pub(super) faults: Faults,
    pub(super) findings: AuditReport,
}

/// Runs processes with failures.
pub(super) struct Runner<'a> {
    pub(super) plan: Plan,
    pub(super) shim: &'a Shim,
    pub(super) base: &'a Base,
}

impl Runner<'_> {
    /// Counts the system calls of a process without a failure.
    pub(super) fn count(&self, scratch: &Path) -> Result<Counts, Failure> {
        let work_dir = tempfile::tempdir_in(scratch)?;
        let (data, counts) = (work_dir.path().join("data"), work_dir.path().join("counts"));
        self.base.copy_to(&data)?;
        let mut command = process_command(self.plan, &data, self.base.round())?;
        self.shim.watch(&data).count(&counts).apply(&mut command)?;
        let mut outcome = Outcome::default();
        let mut ledger = self.base.ledger.clone();
        outcome.watch(command, &mut ledger)?;
        if outcome.is_refused || !outcome.faults.is_clean() {
            let notes = outcome.findings.notes.join("; ");
            return Err(Failure::broken(format!(
                "the run without an injected failure failed: {notes}"
            )));
        }
        Ok(Counts::read(&counts)?)
    }

    /// Runs the process with a failure, and audits its directory.
    pub(super) fn run(&self, fault: Fault, scratch: &Path) -> Result<Outcome, Failure> {
        let work_dir = tempfile::tempdir_in(scratch)?;
        let file = |name| work_dir.path().join(name);
        let (data, counts, trace) = (file("data"), file("counts"), file("trace"));
        self.base.copy_to(&data)?;
        let mut command = process_command(self.plan, &data, self.base.round())?;
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
        outcome.audit(&data, &ledger);
        let trace = is_sync.then(|| Trace::read(&trace)).transpose()?;
        if let Some(trace) = trace.filter(|trace| trace.first_fault().is_some()) {
            // After a failed sync, cache and disk may differ, which only a power cut shows.
            let cut = file("cut");
            let disk = Disk::replay(&trace, DirModel::Ext4, trace.len())?;
            disk.materialise(&cut, fault.nth, Loss::All)?;
            outcome.audit(&cut, &ledger);
        }
        Ok(outcome)
    }
}

impl Outcome {
    /// Runs a process to its end.
    pub(super) fn watch(&mut self, command: Command, ledger: &mut Ledger) -> Result<(), Failure> {
        let mut child = Child::start(command)?;
        loop {
            match child.receive(Instant::now() + SILENCE_MAX) {
                ChildEvent::Record(record) => {
                    ledger.apply(&record);
                    self.record(record);
                }
                ChildEvent::Closed => break,
                ChildEvent::Timeout => {
                    self.faults.hung += 1;
                    self.findings.note("the process hangs".to_owned());
                    child.kill()?;
                    return Ok(());
                }
            }
        }
        let exit = child.end()?;
        let ChildExit { status, stderr } = &exit;
        if status.code() == Some(SHIM_EXIT) {
            return Err(Failure::broken(stderr.clone()));
        }
        if !status.success() || exit.panicked() {
            self.faults.panicked += 1;
            self.findings
                .note(format!("the process died or panicked: {status} {stderr}"));
        }
        Ok(())
    }

    fn record(&mut self, record: Record) {
        match record {
            // After a temporary failure, the store resumes by itself; after any other it must not.
            Record::Acked(stamp) if self.is_final => {
                self.faults.resumed += 1;
                self.findings
                    .note(format!("acknowledged after a failure: stamp={stamp}"));
            }
            Record::Failed(_, why) | Record::ReadFailed(why) => {
                // The failed operation may have been applied; operations rejected later were not.
                self.is_final |= why.starts_with("Storage(");
                let is_clear = ["Storage(", "Unavailable(", "OutcomeUnknown("]
                    .iter()
                    .any(|kind| why.starts_with(kind));
                self.is_refused = true;
                if !is_clear {
                    self.faults.unclear += 1;
                    self.findings.note(format!("not a storage error: {why}"));
                }
            }
            Record::Broken(what) => {
                self.findings.phantom += 1;
                self.findings.note(what);
            }
            _ => {}
        }
    }

    /// Opens the directory without failures and audits it.
    pub(super) fn audit(&mut self, folder: &Path, ledger: &Ledger) {
        match audit_directory(folder, ledger, &mut Replay::default()) {
            Ok((findings, _)) => self.findings.add(findings),
            Err(Failure::Usage(why) | Failure::Broken(why)) => {
                self.faults.unopened += 1;
                self.findings
                    .note(format!("cannot open the directory: {why}"));
            }
        }
    }
}
