//! `verify kill`: what was acknowledged survives the death of the process.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};
use floe_store::env::SeededRandom;

use super::audit::{Audit, Scope};
use super::child::{Child, Heard};
use super::directory::{self, Settings};
use super::figures::{Figures, Progress, Verdict, median};
use super::findings::Findings;
use super::ledger::Ledger;
use super::planted::{Bug, Flawed};
use super::preload::Preload;
use super::record::Record;
use super::replay::Replay;
use super::{Check, Common, Work, runtime, stage, writer};
use crate::{Failure, out};

pub(super) const CHECK: Check = Check {
    name: "kill",
    proves: "acknowledged writes survive SIGKILL, whole, with their indexes and change records",
    how: "A process writes to a directory from many clients at once: conditional puts, updates and \
          deletes,\ntransactions of three items, on a table with a global and a local index, a \
          stream and expiry. It is\nkilled at a random moment, the directory is opened again and \
          looked over, and the next cycle goes on\nwith it. Reopening takes less than a second at \
          the median.",
    flags: Flags::augment_args,
    planted: &[
        Bug::EarlyAck,
        Bug::SplitTransaction,
        Bug::SkippedIndex,
        Bug::LogGap,
    ],
    prepare,
};

/// Reopening after a kill takes at most so long, at the median.
const REOPEN_MS_MAX: u64 = 1000;
/// A process that has not acknowledged anything by then hangs.
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
    /// How often to kill
    #[arg(long, value_name = "N", default_value_t = 50)]
    cycles: u64,

    /// Items in the table before the first cycle [default: 1000000; quick: 20000]
    #[arg(long, value_name = "N")]
    items: Option<u64>,

    /// Clients at once
    #[arg(long, value_name = "N", default_value_t = 32)]
    clients: u64,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<Work, Failure> {
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
    let mut progress = Progress::new(CHECK.name);
    load(folder.path(), plan.preload, &mut progress)?;
    let mut run = Run {
        plan,
        random: SeededRandom::new(plan.seed),
        ledger: Ledger::default(),
        replay: Replay::new(plan.preload),
        findings: Findings::default(),
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

/// Makes the table and fills it.
fn load(folder: &Path, preload: Preload, progress: &mut Progress) -> Result<(), Failure> {
    let settings = Settings {
        is_relaxed: true,
        ..Settings::default()
    };
    let opened = directory::open(folder, settings)?;
    let engine = opened.engine();
    runtime()?.block_on(async {
        engine.create_table(stage::table()?.into()).await?;
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
    findings: Findings,
    /// What the writing processes themselves found wrong, failed operations among it.
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
            // From the beginning once more, in one go.
            self.replay = Replay::new(self.plan.preload);
        }
        let engine = Flawed::plant(opened.engine(), self.plan.planted);
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
            opened.ask_doctor(&mut findings)?;
        }
        self.findings.add(findings);
        self.ledger.settle(&items);
        drop(engine);
        Ok(opened.close()?)
    }

    fn write_and_kill(&mut self, folder: &Path, cycle: u64) -> Result<(), Failure> {
        let command = writer::Writer {
            folder,
            seed: stage::mixed(self.plan.seed ^ cycle),
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
        // Some processes die while they open the directory, most while they write.
        let is_early = self.random.below(5) == 0;
        let mut deadline = Instant::now();
        if is_early {
            deadline += Duration::from_millis(self.random.below(100));
        } else {
            self.hear_until(&child, Instant::now() + FIRST_ACK_MAX, true)?;
            deadline = Instant::now() + Duration::from_millis(self.random.below(400));
        }
        self.hear_until(&child, deadline, false)?;
        let (told, ending) = child.kill()?;
        told.iter().for_each(|record| self.take(record));
        if ending.panicked() {
            self.broken += 1;
            self.findings
                .note(format!("the writing process panicked: {}", ending.stderr));
        }
        Ok(())
    }

    /// Listens until the deadline, or until the first acknowledgement if that is what to wait for.
    fn hear_until(&mut self, child: &Child, deadline: Instant, first: bool) -> Result<(), Failure> {
        loop {
            match child.hear(deadline) {
                Heard::Record(record) => {
                    self.take(&record);
                    if first && matches!(record, Record::Acked(_)) {
                        return Ok(());
                    }
                }
                Heard::Nothing if first => {
                    return Err(Failure::broken("the writing process acknowledges nothing"));
                }
                Heard::Nothing => return Ok(()),
                Heard::End => return Err(Failure::broken("the writing process ended by itself")),
            }
        }
    }

    fn take(&mut self, record: &Record) {
        self.ledger.take(record);
        if let Record::Failed(_, what) | Record::ReadFailed(what) | Record::Broken(what) = record {
            self.broken += 1;
            self.findings.note(what.clone());
        }
    }

    /// Whether the planted bug has shown; `None` if there is none.
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
