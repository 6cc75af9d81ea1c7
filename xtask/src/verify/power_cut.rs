//! `verify power-cut`: what was acknowledged survives the loss of power.
//!
//! Two answers to the question when a name in a directory is durable are tried, see
//! [`DirModel`]. The floor is on the file systems in use, which keep the name of a file that was
//! synced (ext4, XFS and Btrfs order changes of names in one journal); what POSIX alone would allow is
//! measured and told besides.

use std::path::Path;
use std::time::{Duration, Instant};

use super::audit::{Audit, Findings, Scope};
use super::child::{Child, Ending, Heard};
use super::directory::{self, Settings};
use super::figures::{Figures, Progress, Verdict};
use super::ledger::Ledger;
use super::planted::Bug;
use super::preload::Preload;
use super::record::Record;
use super::replay::Replay;
use super::writer::Writer;
use super::{Check, Common, Work, runtime, stage};
use crate::args::Args;
use crate::disk::{DirModel, Disk, Loss, Trace};
use crate::shim::Shim;
use crate::{Failure, out};

pub(super) const CHECK: Check = Check {
    name: "power-cut",
    proves: "acknowledged writes survive the loss of power, whole, with their indexes",
    how: "A process writes to a directory with buffers so small that files are flushed, merged and \
          removed all\nthe time, and every change and sync is recorded. For random moments the \
          directory is then made anew as a\nmachine could find it, with everything lost or torn \
          that was not synced, opened and looked over.",
    flags: &[
        ("--cuts N", "moments to cut the power at, per model (200; full: 1000)"),
        ("--operations N", "operations in each of the two recorded runs (600; full: 3000)"),
        ("--clients N", "clients at once (8)"),
    ],
    planted: &[Bug::Relaxed],
    prepare,
};

/// A process that says nothing for so long hangs.
const SILENCE_MAX: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    cuts: usize,
    operations: u64,
    clients: u64,
}

fn prepare(common: &Common, args: &mut Args) -> Result<Work, Failure> {
    let cuts: Option<usize> = args.value("--cuts")?;
    let operations = args.value("--operations")?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        cuts: cuts.unwrap_or(if common.quick { 200 } else { 1000 }),
        operations: operations.unwrap_or(common.pick(600, 3000)),
        clients: args.value("--clients")?.unwrap_or(8),
    };
    Ok(Box::new(move || run(plan)))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let runs = record_runs(plan)?;
    let each = |model| cut_all(plan, model, &runs);
    let (usual, strict) = std::thread::scope(|scope| {
        let strict = scope.spawn(|| each(DirModel::Strict));
        (each(DirModel::Ext4), strict.join())
    });
    let strict = strict.map_err(|_| Failure::broken("the strict model panicked"))?;
    let (usual, strict) = (usual?, strict?);
    if plan.planted.is_none() {
        usual.findings.notes.iter().for_each(|note| out::note(note));
    }
    let records: usize = runs.iter().map(|run| run.trace.len()).sum();
    let refused: Vec<&str> = runs.iter().flat_map(|run| run.trace.refused()).collect();
    refused.iter().for_each(|call| out::note(&format!("a call could not be traced: {call}")));
    let figures = Figures::new(CHECK.name)
        .put("seed", plan.seed)
        .put("cuts", usual.cuts)
        .put("trace_records", records)
        .put("untraced", refused.len())
        .put("acked", usual.acked)
        .put("lost_edits", usual.damage)
        .put("lost", usual.findings.lost)
        .put("torn", usual.findings.torn)
        .put("phantom", usual.findings.phantom)
        .put("index_mismatch", usual.findings.index_mismatch)
        .put("log_gaps", usual.findings.log_gaps)
        .put("unopened", usual.unopened)
        .put("strict_cuts", strict.cuts)
        .put("strict_lost", strict.findings.lost)
        .put("strict_torn", strict.findings.torn)
        .put("strict_unopened", strict.unopened)
        .put("seconds", started.elapsed().as_secs());
    let is_clean = usual.is_clean() && usual.cuts >= plan.cuts;
    let found = plan.planted.map(|_| usual.findings.lost > 0);
    Ok(Verdict::new(figures, is_clean, found))
}

/// What one process did, and what was known when it began.
struct Recorded {
    trace: Trace,
    before: Ledger,
    replay: Replay,
}

/// One run on an empty directory, and one that opens what the first has left, which dies at its end.
fn record_runs(plan: Plan) -> Result<Vec<Recorded>, Failure> {
    let shim = Shim::build()?;
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    std::fs::create_dir(&data)?;
    let mut known = (Ledger::default(), Replay::default());
    let mut runs = Vec::new();
    for round in 1..=2 {
        let trace = record_run(plan, &shim, folder.path(), &data, round)?;
        let (before, replay) = known.clone();
        let recorded = Recorded {
            trace,
            before,
            replay,
        };
        known = settle(&recorded, &data)?;
        runs.push(recorded);
    }
    Ok(runs)
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
        seed: stage::mixed(plan.seed ^ round),
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
    shim.watch(data).trace(&trace).marks(&marks).apply(&mut command)?;
    let mut child = Child::start(command)?;
    if let Heard::Record(record) = child.hear(Instant::now() + SILENCE_MAX) {
        let message = format!("the writing process reports to the wrong place: {record}");
        return Err(Failure::Broken(message));
    }
    let Ending { status, stderr } = child.end()?;
    if !status.success() {
        return Err(Failure::broken(format!("the writing process failed: {status} {stderr}")));
    }
    Ok(Trace::read(&trace)?)
}

/// What is known after a run, when nothing is lost.
fn settle(run: &Recorded, data: &Path) -> Result<(Ledger, Replay), Failure> {
    let disk = Disk::replay(&run.trace, DirModel::Ext4, run.trace.len())?;
    let mut ledger = run.before.clone();
    for mark in disk.marks() {
        take(&mut ledger, mark.bytes)?;
    }
    let mut replay = run.replay.clone();
    let (findings, items) = look_over(data, &ledger, &mut replay)?;
    if !findings.is_clean() {
        let notes = findings.notes.join("; ");
        return Err(Failure::broken(format!("the run itself went wrong: {notes}")));
    }
    ledger.settle(&items);
    Ok((ledger, replay))
}

/// What all cuts under one model have come to.
#[derive(Debug, Default)]
struct Outcome {
    cuts: usize,
    /// Acknowledged operations before the cuts, over all cuts.
    acked: u64,
    /// Changes that the cuts lost or tore.
    damage: usize,
    /// Directories that could not be opened.
    unopened: u64,
    findings: Findings,
}

impl Outcome {
    const fn is_clean(&self) -> bool {
        self.findings.is_clean() && self.unopened == 0
    }
}

fn cut_all(plan: Plan, model: DirModel, runs: &[Recorded]) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut progress = Progress::new(CHECK.name);
    let folder = tempfile::tempdir()?;
    for (number, run) in runs.iter().enumerate() {
        let share = (plan.cuts + number) / runs.len();
        let seed = stage::mixed(plan.seed ^ (number as u64 + 1));
        let mut disk = Disk::new(&run.trace, model);
        let mut ledger = run.before.clone();
        let mut marks_taken = 0;
        for cut in run.trace.cuts(seed, share) {
            disk.advance(cut)?;
            for mark in disk.marks().iter().skip(marks_taken) {
                take(&mut ledger, mark.bytes)?;
            }
            marks_taken = disk.marks().len();
            let target = folder.path().join("cut");
            outcome.cut(&disk, cut, &target, seed, &ledger, &run.replay)?;
            std::fs::remove_dir_all(&target)?;
            let (cuts, of) = (outcome.cuts, plan.cuts);
            progress.tick(|| format!("model={model:?} cuts={cuts} of={of}"));
        }
    }
    Ok(outcome)
}

impl Outcome {
    fn cut(
        &mut self,
        disk: &Disk<'_>,
        cut: usize,
        target: &Path,
        seed: u64,
        ledger: &Ledger,
        replay: &Replay,
    ) -> Result<(), Failure> {
        // The two plainest cases are tried as well.
        let loss = match cut % 8 {
            0 | 1 => Loss::All,
            2 => Loss::None,
            _ => Loss::Random,
        };
        let damage = disk.materialise(target, stage::mixed(seed ^ cut as u64), loss)?;
        self.cuts += 1;
        self.acked += ledger.tally.acked;
        self.damage += damage.edits_lost + damage.edits_torn + damage.names_lost;
        match look_over(target, ledger, &mut replay.clone()) {
            Ok((mut findings, _)) => {
                for note in &mut findings.notes {
                    *note = format!("cut={cut} loss={loss:?} {note}");
                }
                self.findings.add(findings);
            }
            Err(Failure::Usage(why) | Failure::Broken(why)) => {
                self.unopened += 1;
                self.findings.note(format!("cut={cut} loss={loss:?} not opened: {why}"));
            }
        }
        Ok(())
    }
}

fn look_over(
    folder: &Path,
    ledger: &Ledger,
    replay: &mut Replay,
) -> Result<(Findings, super::audit::Items), Failure> {
    let settings = Settings {
        is_idle: true,
        ..Settings::default()
    };
    let opened = directory::open(folder, settings)?;
    let engine = opened.engine();
    let audit = Audit {
        engine: &engine,
        ledger,
        preload: Preload::default(),
        scope: Scope::Everything,
    };
    let seen = runtime()?.block_on(audit.run(replay))?;
    drop(engine);
    opened.close()?;
    Ok(seen)
}

/// Takes in what the process reported in one write.
fn take(ledger: &mut Ledger, bytes: &[u8]) -> Result<(), Failure> {
    for line in String::from_utf8_lossy(bytes).lines() {
        let record: Record = line.parse().map_err(Failure::Broken)?;
        ledger.take(&record);
    }
    Ok(())
}
