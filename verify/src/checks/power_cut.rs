//! `verify power-cut`: acknowledged writes survive a power cut.
//!
//! Two models of durable names in directories are tried, see [`DirModel`]: that of common file systems, which order
//! changes of names in one journal, and that of POSIX, by which a name is durable only after its directory was synced.
//! The floor applies to both.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};

use super::audit::audit_directory;
use super::audit_report::{AuditReport, Items};
use super::child::{Child, ChildEvent, ChildExit};
use super::directory::Settings;
use super::figures::{Figures, ProgressPrinter, Verdict};
use super::ledger::Ledger;
use super::planted::Bug;
use super::record::Record;
use super::replay::Replay;
use super::writer::Writer;
use super::{Check, CheckRun, Common, test_table};
use crate::disk::{Damage, DirModel, Disk, Loss, Trace};
use crate::shim::Shim;
use crate::{Failure, out};

pub(super) const CHECK: Check = Check {
    name: "power-cut",
    proves: "acknowledged writes survive a power cut, whole, with their indexes",
    how: "A process writes to a directory with buffers so small that files are constantly flushed, merged and \
          removed,\nand every change and sync is recorded. For random moments the directory is then reconstructed in a \
          state that a\nmachine could find after a power cut, with unsynced changes lost or torn, opened and audited.",
    flags: Flags::augment_args,
    planted: &[Bug::Relaxed],
    prepare,
};

/// A process that prints nothing for this long counts as hanging.
const SILENCE_MAX: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    cuts: usize,
    operations: u64,
    clients: u64,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Number of power cuts per directory model [default: 600; quick: 200]
    #[arg(long, value_name = "N")]
    cuts: Option<usize>,

    /// Number of operations in each of the two recorded runs [default: 1600; quick: 800]
    #[arg(long, value_name = "N")]
    operations: Option<u64>,

    /// Concurrent clients
    #[arg(long, value_name = "N", default_value_t = 8)]
    clients: u64,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        cuts: flags.cuts.unwrap_or(if common.quick { 200 } else { 600 }),
        operations: flags.operations.unwrap_or(common.pick(800, 1600)),
        clients: flags.clients,
    };
    Ok(Box::new(move || run(plan)))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let recorded = record(plan)?;
    let runs = &recorded.runs;
    let (usual, strict) = std::thread::scope(|scope| {
        let strict = scope.spawn(|| cut_all(plan, DirModel::Strict, runs));
        (cut_all(plan, DirModel::Ext4, runs), strict.join())
    });
    let strict = strict.map_err(|_| Failure::broken("the strict model panicked"))?;
    let outcomes = [("ext4", usual?), ("strict", strict?)];
    Ok(verdict(plan, &recorded, &outcomes, started))
}

fn verdict(
    plan: Plan,
    recorded: &RecordedRuns,
    outcomes: &[(&str, Outcome)],
    started: Instant,
) -> Verdict {
    let traces = || recorded.runs.iter().map(|run| &run.trace);
    let refused: Vec<&str> = traces().flat_map(Trace::refused).collect();
    for call in &refused {
        out::note(&format!("system call not traced: {call}"));
    }
    let mut figures = Figures::new(CHECK.name)
        .put("seed", plan.seed)
        .put("trace_records", traces().map(Trace::len).sum::<usize>())
        .put("journals", recorded.journals)
        .put("untraced", refused.len());
    for (model, outcome) in outcomes {
        figures = outcome.put(figures, model);
        let notes = outcome.findings.notes.iter();
        for note in notes.filter(|_| plan.planted.is_none()) {
            out::note(&format!("{model} {note}"));
        }
    }
    let figures = figures.put("seconds", started.elapsed().as_secs());
    let is_clean = |outcome: &Outcome| outcome.is_clean() && outcome.cuts >= plan.cuts;
    let is_lost = |outcome: &Outcome| outcome.findings.lost > 0;
    let is_clean = outcomes.iter().all(|(_, outcome)| is_clean(outcome));
    let is_found = outcomes.iter().all(|(_, outcome)| is_lost(outcome));
    let found = plan.planted.map(|_| is_found);
    Verdict::new(figures, is_clean && refused.is_empty(), found)
}

/// The recorded runs.
struct RecordedRuns {
    runs: Vec<Run>,
    /// Number of journals that the key-value store created.
    journals: usize,
}

/// The trace of one process, and the state before it started.
struct Run {
    trace: Trace,
    before: Ledger,
    replay: Replay,
}

/// Records one run on an empty directory, which exits without closing it, and one that opens that directory.
fn record(plan: Plan) -> Result<RecordedRuns, Failure> {
    let shim = Shim::build()?;
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    std::fs::create_dir(&data)?;
    let mut known = (Ledger::default(), Replay::default());
    let mut runs = Vec::new();
    for round in 1..=2 {
        let trace = record_run(plan, &shim, folder.path(), &data, round)?;
        let (before, replay) = known.clone();
        let run = Run {
            trace,
            before,
            replay,
        };
        known = settle(&run, &data)?;
        runs.push(run);
    }
    let journals = newest_journal(&data.join("data"))? + 1;
    Ok(RecordedRuns { runs, journals })
}

/// The number of the newest journal; journals are numbered from 0.
fn newest_journal(folder: &Path) -> std::io::Result<usize> {
    let mut newest = 0;
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_suffix(".jnl")?.parse().ok());
        newest = newest.max(number.unwrap_or(0));
    }
    Ok(newest)
}

fn record_run(
    plan: Plan,
    shim: &Shim,
    folder: &Path,
    data: &Path,
    round: u64,
) -> Result<Trace, Failure> {
    let (trace, marks) = (folder.join("trace"), folder.join("marks"));
    let writer = Writer {
        folder: data,
        seed: test_table::splitmix64(plan.seed ^ round),
        round,
        clients: plan.clients,
        is_bulky: true,
        operations: Some(plan.operations),
        is_closed: round > 1,
        marks: Some(&marks),
        planted: None,
        settings: Settings {
            is_small: true,
            is_relaxed: plan.planted == Some(Bug::Relaxed),
            ..Settings::default()
        },
    };
    let mut command = writer.command()?;
    shim.watch(data)
        .trace(&trace)
        .marks(&marks)
        .apply(&mut command)?;
    let mut child = Child::start(command)?;
    if let ChildEvent::Record(record) = child.receive(Instant::now() + SILENCE_MAX) {
        let message = format!("the writing process reports to standard output: {record}");
        return Err(Failure::Broken(message));
    }
    let ChildExit { status, stderr } = child.end()?;
    if !status.success() {
        return Err(Failure::broken(format!(
            "the writing process failed: {status} {stderr}"
        )));
    }
    Ok(Trace::read(&trace)?)
}

/// Returns the state after a run without losses.
fn settle(run: &Run, data: &Path) -> Result<(Ledger, Replay), Failure> {
    let disk = Disk::replay(&run.trace, DirModel::Ext4, run.trace.len())?;
    let mut ledger = run.before.clone();
    for mark in disk.marks() {
        apply_mark(&mut ledger, mark.bytes)?;
    }
    let mut replay = run.replay.clone();
    let (findings, items) = audit_directory(data, &ledger, &mut replay)?;
    if !findings.is_clean() {
        let notes = findings.notes.join("; ");
        return Err(Failure::broken(format!(
            "the recorded run itself failed: {notes}"
        )));
    }
    ledger.settle(&items);
    Ok((ledger, replay))
}

/// The results of all cuts under one model.
#[derive(Debug, Default)]
struct Outcome {
    cuts: usize,
    /// Number of changes that were lost or torn.
    damage: usize,
    /// Number of directories that could not be opened.
    unopened: u64,
    findings: AuditReport,
}

impl Outcome {
    const fn is_clean(&self) -> bool {
        self.findings.is_clean() && self.unopened == 0
    }

    fn put(&self, figures: Figures, model: &str) -> Figures {
        let figures = figures
            .put(&format!("{model}_cuts"), self.cuts)
            .put(&format!("{model}_damage"), self.damage);
        let figures = self.findings.put(figures, &format!("{model}_"));
        figures.put(&format!("{model}_unopened"), self.unopened)
    }
}

fn cut_all(plan: Plan, model: DirModel, runs: &[Run]) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut progress = ProgressPrinter::new(CHECK.name);
    let folder = tempfile::tempdir()?;
    for (number, run) in runs.iter().enumerate() {
        let share = (plan.cuts + number) / runs.len();
        let seed = test_table::splitmix64(plan.seed ^ (number as u64 + 1));
        let mut disk = Disk::new(&run.trace, model);
        let mut ledger = run.before.clone();
        let mut marks_taken = 0;
        for cut in run.trace.cuts(seed, share) {
            disk.advance(cut)?;
            for mark in disk.marks().iter().skip(marks_taken) {
                apply_mark(&mut ledger, mark.bytes)?;
            }
            marks_taken = disk.marks().len();
            // The simplest cases, all or nothing lost, are tried as well.
            let loss = match cut % 8 {
                0 | 1 => Loss::All,
                2 => Loss::None,
                _ => Loss::Random,
            };
            let target = folder.path().join("cut");
            let damage =
                disk.materialise(&target, test_table::splitmix64(seed ^ cut as u64), loss)?;
            let found = audit_directory(&target, &ledger, &mut run.replay.clone());
            outcome.record(damage, found, &format!("cut={cut} loss={loss:?}"));
            std::fs::remove_dir_all(&target)?;
            let (cuts, of) = (outcome.cuts, plan.cuts);
            progress.tick(|| format!("model={model:?} cuts={cuts} of={of}"));
        }
    }
    Ok(outcome)
}

impl Outcome {
    fn record(&mut self, damage: Damage, found: Result<(AuditReport, Items), Failure>, cut: &str) {
        self.cuts += 1;
        self.damage += damage.edits_lost + damage.edits_torn + damage.names_lost;
        match found {
            Ok((mut findings, _)) => {
                for note in &mut findings.notes {
                    *note = format!("{cut} {note}");
                }
                self.findings.add(findings);
            }
            Err(Failure::Usage(why) | Failure::Broken(why)) => {
                self.unopened += 1;
                self.findings
                    .note(format!("{cut} cannot open the directory: {why}"));
            }
        }
    }
}

/// Applies the records that the process reported in one write.
fn apply_mark(ledger: &mut Ledger, bytes: &[u8]) -> Result<(), Failure> {
    for line in String::from_utf8_lossy(bytes).lines() {
        let record: Record = line.parse().map_err(Failure::Broken)?;
        ledger.apply(&record);
        // The process itself must not see any error.
        if let Record::Failed(_, what) | Record::ReadFailed(what) | Record::Broken(what) = record {
            return Err(Failure::Broken(what));
        }
    }
    Ok(())
}
