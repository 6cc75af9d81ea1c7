//! `verify kill`: acknowledged writes survive the death of the process.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};
use floe_store::env::SeededRandom;

use super::audit::{Audit, Scope};
use super::audit_report::AuditReport;
use super::child::{Child, ChildEvent};
use super::directory::{self, Settings};
use super::figures::{Figures, ProgressPrinter, Verdict, median};
use super::ledger::Ledger;
use super::planted::{Bug, FlawedEngine};
use super::preload::Preload;
use super::record::Record;
use super::replay::Replay;
use super::{Check, CheckRun, Common, runtime, test_table, writer};
use crate::{Failure, out};

pub(super) const CHECK: Check = Check {
    name: "kill",
    proves: "acknowledged writes survive SIGKILL, whole, with their indexes and change records",
    how: "A process writes to a directory from many concurrent clients: conditional puts, updates and deletes,\n\
          transactions of three items, on a table with a global and a local index, a stream and expiry. It is killed at\n\
          a random moment, the directory is opened again and audited, and the next cycle continues with it. The median\n\
          time to reopen must be less than a second.",
    flags: Flags::augment_args,
    planted: &[
        Bug::EarlyAck,
        Bug::SplitTransaction,
        Bug::SkippedIndex,
        Bug::LogGap,
    ],
    prepare,
};

/// Maximum of the median time to reopen after a kill.
const REOPEN_MS_MAX: u64 = 1000;
/// Time limit for the first acknowledgement of a process.
const FIRST_ACK_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    cycles: u64,
    clients: u64,
    preload: Preload,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Number of kills
    #[arg(long, value_name = "N", default_value_t = 50)]
    cycles: u64,

    /// Number of items in the table before the first cycle [default: 1000000; quick: 20000]
    #[arg(long, value_name = "N")]
    items: Option<u64>,

    /// Concurrent clients
    #[arg(long, value_name = "N", default_value_t = 32)]
    clients: u64,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        cycles: flags.cycles,
        clients: flags.clients,
        preload: Preload {
            items: flags.items.unwrap_or(common.pick(20_000, 1_000_000)),
        },
    };
    Ok(Box::new(move || run(plan)))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    let folder = tempfile::tempdir()?;
    let started = Instant::now();
    let mut progress = ProgressPrinter::new(CHECK.name);
    load(folder.path(), plan.preload, &mut progress)?;
    let mut run = Run {
        plan,
        random: SeededRandom::new(plan.seed),
        ledger: Ledger::default(),
        replay: Replay::new(plan.preload),
        findings: AuditReport::default(),
        broken: 0,
        reopen_us: Vec::new(),
    };
    for cycle in 1..=plan.cycles {
        run.cycle(folder.path(), cycle)?;
        let acked = run.ledger.tally.acked;
        progress.tick(|| format!("cycle={cycle} of={} acked={acked}", plan.cycles));
        if run.found() == Some(true) {
            break;
        }
    }
    Ok(run.verdict(started.elapsed()))
}

/// Creates the table and fills it.
fn load(folder: &Path, preload: Preload, progress: &mut ProgressPrinter) -> Result<(), Failure> {
    let settings = Settings {
        is_relaxed: true,
        ..Settings::default()
    };
    let opened = directory::open(folder, settings)?;
    let engine = opened.engine();
    runtime()?.block_on(async {
        engine.create_table(test_table::table()?.into()).await?;
        let mut loaded = 0;
        while loaded < preload.items {
            loaded = preload.load(&engine, loaded).await?;
            progress.tick(|| format!("loaded={loaded} of={}", preload.items));
        }
        Ok::<(), Failure>(())
    })?;
    drop(engine);
    Ok(opened.close()?)
}

struct Run {
    plan: Plan,
    random: SeededRandom,
    ledger: Ledger,
    replay: Replay,
    findings: AuditReport,
    /// Errors that the writing processes reported, including failed operations.
    broken: u64,
    reopen_us: Vec<u64>,
}

impl Run {
    fn cycle(&mut self, folder: &Path, cycle: u64) -> Result<(), Failure> {
        self.write_and_kill(folder, cycle)?;
        let opening = Instant::now();
        let opened = directory::open(folder, Settings::IDLE)?;
        let micros = opening.elapsed().as_micros();
        self.reopen_us
            .push(u64::try_from(micros).unwrap_or(u64::MAX));

        let is_last = cycle == self.plan.cycles;
        if is_last {
            // The last cycle replays the whole log again.
            self.replay = Replay::new(self.plan.preload);
        }
        let engine = FlawedEngine::plant(opened.engine(), self.plan.planted);
        let audit = Audit {
            engine: &engine,
            ledger: &self.ledger,
            preload: self.plan.preload,
            scope: if is_last {
                Scope::Everything
            } else {
                Scope::Named
            },
        };
        let (mut findings, items) = runtime()?.block_on(audit.run(&mut self.replay))?;
        if is_last {
            opened.run_doctor(&mut findings)?;
        }
        self.findings.add(findings);
        self.ledger.settle(&items);
        drop(engine);
        Ok(opened.close()?)
    }

    fn write_and_kill(&mut self, folder: &Path, cycle: u64) -> Result<(), Failure> {
        let command = writer::Writer {
            folder,
            seed: test_table::splitmix64(self.plan.seed ^ cycle),
            round: cycle,
            clients: self.plan.clients,
            is_bulky: false,
            operations: None,
            is_closed: false,
            marks: None,
            planted: self.plan.planted,
            settings: Settings::default(),
        };
        let child = Child::start(command.command()?)?;
        // Some processes die while they open the directory, most during writes.
        let is_early = self.random.below(5) == 0;
        let mut deadline = Instant::now();
        if is_early {
            deadline += Duration::from_millis(self.random.below(100));
        } else {
            self.receive_until(&child, Instant::now() + FIRST_ACK_MAX, true)?;
            deadline = Instant::now() + Duration::from_millis(self.random.below(400));
        }
        self.receive_until(&child, deadline, false)?;
        let (remaining, exit) = child.kill()?;
        remaining.iter().for_each(|record| self.record(record));
        if exit.panicked() {
            self.broken += 1;
            self.findings
                .note(format!("the writing process panicked: {}", exit.stderr));
        }
        Ok(())
    }

    /// Receives records until the deadline or, if `first`, until the first acknowledgement.
    fn receive_until(
        &mut self,
        child: &Child,
        deadline: Instant,
        first: bool,
    ) -> Result<(), Failure> {
        loop {
            match child.receive(deadline) {
                ChildEvent::Record(record) => {
                    self.record(&record);
                    if first && matches!(record, Record::Acked(_)) {
                        return Ok(());
                    }
                }
                ChildEvent::Timeout if first => {
                    return Err(Failure::broken("the writing process acknowledged nothing"));
                }
                ChildEvent::Timeout => return Ok(()),
                ChildEvent::Closed => {
                    return Err(Failure::broken("the writing process ended unexpectedly"));
                }
            }
        }
    }

    fn record(&mut self, record: &Record) {
        self.ledger.apply(record);
        if let Record::Failed(_, what) | Record::ReadFailed(what) | Record::Broken(what) = record {
            self.broken += 1;
            self.findings.note(what.clone());
        }
    }

    /// Whether the planted bug was detected; `None` without a planted bug.
    fn found(&self) -> Option<bool> {
        let findings = &self.findings;
        self.plan.planted.map(|bug| match bug {
            Bug::EarlyAck => findings.lost > 0,
            Bug::SplitTransaction => findings.torn > 0,
            Bug::SkippedIndex => findings.index_mismatch > 0,
            _ => findings.log_gaps > 0,
        })
    }

    fn verdict(self, elapsed: Duration) -> Verdict {
        let findings = &self.findings;
        if self.plan.planted.is_none() {
            findings.notes.iter().for_each(|note| out::note(note));
        }
        let tally = self.ledger.tally;
        let reopen_ms = median(&self.reopen_us) / 1000;
        let reopen_ms_max = self.reopen_us.iter().max().copied().unwrap_or_default() / 1000;
        let figures = Figures::new(CHECK.name)
            .put("seed", self.plan.seed)
            .put("cycles", self.plan.cycles)
            .put("clients", self.plan.clients)
            .put("items", self.plan.preload.items)
            .put("writes", tally.intents)
            .put("acked", tally.acked)
            .put("refused", tally.refused)
            .put("log_records", self.replay.records);
        let figures = findings
            .put(figures, "")
            .put("doubled", tally.doubled)
            .put("broken", self.broken)
            .put("reopen_ms_p50", reopen_ms)
            .put("reopen_ms_max", reopen_ms_max)
            .put("seconds", elapsed.as_secs());
        let found = self.found();
        let is_clean = findings.is_clean()
            && self.broken == 0
            && tally.doubled == 0
            && tally.acked > 0
            && reopen_ms < REOPEN_MS_MAX;
        Verdict::new(figures, is_clean, found)
    }
}
