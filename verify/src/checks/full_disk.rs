//! `verify full-disk`: a full disk loses no acknowledged write and needs no restart.
//!
//! | file | contents |
//! |---|---|
//! | `round` | one round: the disk fills up and is freed |
//! | `client` | clients that write over HTTP |
//! | `ledger` | the outcomes of all writes, and the states allowed at the end |

mod client;
mod ledger;
mod round;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use clap::{ArgMatches, Args, FromArgMatches};
use floe_store::op::Scan;

use super::directory::{self, Settings};
use super::figures::{Figures, ProgressPrinter, Verdict};
use super::planted::Bug;
use super::program::{Choice, FloeFlags};
use super::tmpfs::Tmpfs;
use super::{Check, CheckRun, Common, runtime, tool};
use crate::{Failure, out};
use client::Writers;
use ledger::{Ledger, LedgerReport, TABLE};
use round::{Faults, Fill, ServerProcess};

pub(super) const CHECK: Check = Check {
    name: "full-disk",
    proves: "a full disk loses no acknowledged write, and writes are accepted again without a restart once there is room",
    how: "Serves a store on a small disk in memory while clients write to it. In each round the disk fills up: by the\n\
          clients themselves, by a file of another program that leaves a part of the reserve, or by one that takes\n\
          everything. Writes must be rejected with an error in DynamoDB's format without paths or type names, deletes\n\
          accepted while only the reserve is reached, reads served, /healthz must return 503, and the standard error must\n\
          name the cause. Then the file is removed, and the same process must accept writes again. At the end it is killed,\n\
          and every acknowledged write must be stored. Needs the permission to mount, or user namespaces.",
    flags: Flags::augment_args,
    planted: &[Bug::AckFailed],
    prepare,
};

/// The size of the disk. It holds the server's journals and buffers several times, plus its reserve of an eighth.
const DISK_BYTES: u64 = 512 << 20;
/// Set in a process that was started in its own mount namespace.
const UNSHARED: &str = "FLOE_VERIFY_UNSHARED";

#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    rounds: u64,
    clients: u64,
    floe: Choice,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Number of rounds [default: 20; quick: 3]
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,

    /// Number of writing clients
    #[arg(long, value_name = "N", default_value_t = 4)]
    clients: u64,

    #[command(flatten)]
    floe: FloeFlags,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        rounds: flags.rounds.unwrap_or(common.pick(3, 20)),
        clients: flags.clients,
        floe: flags.floe.into(),
    };
    Ok(Box::new(move || run(&plan)))
}

fn run(plan: &Plan) -> Result<Verdict, Failure> {
    let folder = tempfile::tempdir()?;
    match Tmpfs::mount(folder.path(), DISK_BYTES) {
        Some(disk) => run_on(plan, &disk),
        None if std::env::var_os(UNSHARED).is_none() => run_unshared(plan),
        None => Err(Failure::broken(
            "cannot mount a tmpfs: run as root, or allow user namespaces",
        )),
    }
}

/// Runs the check again in a user namespace, where it may mount.
fn run_unshared(plan: &Plan) -> Result<Verdict, Failure> {
    let mut command = Command::new("unshare");
    command.env(UNSHARED, "1").args(["-r", "-m"]);
    command.arg(std::env::current_exe()?);
    command.args(["verify", CHECK.name]);
    command.arg("--seed").arg(plan.seed.to_string());
    command.arg("--rounds").arg(plan.rounds.to_string());
    command.arg("--clients").arg(plan.clients.to_string());
    match &plan.floe {
        Choice::Inside => drop(command.arg("--inside")),
        Choice::Path(path) => drop(command.arg("--floe").arg(path)),
        Choice::Build => {}
    }
    if let Some(bug) = plan.planted {
        command.arg("--planted").arg(bug.name());
    }
    let output = tool::run(&mut command)?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    stderr.lines().for_each(out::note);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let Some(line) = stdout.lines().last() else {
        return Err(tool::failed(&command, &output));
    };
    Ok(Verdict {
        figures: Figures::of_line(line.to_owned()),
        is_met: output.status.success(),
    })
}

fn run_on(plan: &Plan, disk: &Tmpfs) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let store = disk.path().join("store");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let acks_failed = plan.planted == Some(Bug::AckFailed);
    let ledger = Arc::new(Ledger::new(acks_failed));
    let mut server = ServerProcess::start(plan.floe.prepare()?, &store)?;
    let mut progress = ProgressPrinter::new(CHECK.name);
    let faults = runtime.block_on(async {
        client::create_table(&server.address()).await?;
        let mut writers = Writers::start(plan.clients, plan.seed, &server.address(), &ledger);
        let mut faults = Faults::default();
        for round in 0..plan.rounds {
            let fill = Fill::of_round(plan.seed + round);
            faults.run(round, fill, disk, &mut server, &ledger).await?;
            if !server.is_alive() || faults.needs_restart {
                faults.restarts += 1;
                faults.needs_restart = false;
                writers.stop().await;
                server.restart()?;
                writers = Writers::start(
                    plan.clients,
                    plan.seed ^ (round << 32),
                    &server.address(),
                    &ledger,
                );
            }
            progress.tick(|| format!("rounds={} of={}", round + 1, plan.rounds));
        }
        writers.stop().await;
        Ok::<_, Failure>(faults)
    })?;
    drop(server);
    let report = audit(&store, &ledger)?;
    Ok(verdict(plan, &faults, &ledger, &report, started))
}

/// Opens the store after the server was killed, and audits it.
fn audit(store: &Path, ledger: &Ledger) -> Result<LedgerReport, Failure> {
    let opened = directory::open(store, Settings::IDLE)?;
    let engine = opened.engine();
    let items = runtime()?.block_on(async {
        let mut items = Vec::new();
        let mut from = None;
        loop {
            let page = engine.scan(Scan::new(TABLE).start_key(from)).await?;
            items.extend(page.items);
            from = page.last_key;
            if from.is_none() {
                return Ok::<_, Failure>(items);
            }
        }
    })?;
    let mut report = ledger.audit(&items);
    let mut findings = super::audit_report::AuditReport::default();
    opened.run_doctor(&mut findings)?;
    report.doctor = findings.doctor;
    report.notes.extend(findings.notes);
    drop(engine);
    opened.close()?;
    Ok(report)
}

fn verdict(
    plan: &Plan,
    faults: &Faults,
    ledger: &Ledger,
    report: &LedgerReport,
    started: Instant,
) -> Verdict {
    if plan.planted.is_none() {
        let notes = faults.notes.iter().chain(&report.notes);
        notes.for_each(|note| out::note(note));
        ledger.notes().iter().for_each(|note| out::note(note));
    }
    let tally = ledger.tally();
    let figures = Figures::new(CHECK.name)
        .put("seed", plan.seed)
        .put("rounds", plan.rounds)
        .put("acked", tally.acked)
        .put("refused", tally.refused)
        .put("unknown", tally.unknown)
        .put("lost", report.lost)
        .put("phantom", report.phantom)
        .put("doctor", report.doctor)
        .put("restarts", faults.restarts)
        .put("unfilled", faults.unfilled)
        .put("misshapen", tally.misshapen)
        .put("unanswered", tally.unanswered)
        .put("health_wrong", faults.health)
        .put("reads_failed", faults.reads)
        .put("deletes_refused", faults.deletes)
        .put("cause_unnamed", faults.unnamed)
        .put("recover_ms_max", faults.recover_ms_max)
        .put("seconds", started.elapsed().as_secs());
    let is_clean = report.is_clean()
        && faults.is_clean()
        && tally.misshapen == 0
        && tally.unanswered == 0
        && tally.acked > 0
        && tally.refused + tally.unknown > 0;
    let found = plan.planted.map(|_| report.lost > 0);
    Verdict::new(figures, is_clean, found)
}
