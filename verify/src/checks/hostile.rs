//! `verify hostile`: clients that mean harm neither use up the server's memory nor slow the others down.
//!
//! | file | what it holds |
//! |---|---|
//! | `server` | the program `floe` that is attacked, and its memory |
//! | `attack` | the ways to do harm |
//! | `honest` | clients that behave well, and how long they wait |

mod attack;
mod honest;
mod server;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};

use super::figures::{Figures, Verdict};
use super::planted::Bug;
use super::{Check, Common, Work};
use crate::{Failure, out};
use attack::{Attack, Harm};
use honest::{Honest, Waits};
use server::Attacked;

pub(super) use server::Serving;

pub(super) const CHECK: Check = Check {
    name: "hostile",
    proves: "hostile connections neither exhaust the server's memory nor slow the others down",
    how: "Starts floe, and attacks it from this machine with connections of each kind in turn, and \
          of all kinds\ntogether: headers and bodies that drip, huge bodies, deep JSON, connections that say \
          nothing, answers that\nnobody reads. Meanwhile clients that behave well read and write, and must \
          all be answered, about as soon\nas before. The memory of the server must stay below its floor.",
    flags: Flags::augment_args,
    planted: &[Bug::NoLimits, Bug::NoAnswer],
    prepare,
};

/// The memory that an idle server may use.
const IDLE_MB_MAX: u64 = 25;

/// How much longer than before the slowest hundredth of requests may take.
const P99_RATIO_MAX: u32 = 10;

/// How the run is sized.
#[derive(Clone, Debug)]
struct Plan {
    planted: Option<Bug>,
    connections: usize,
    time: Duration,
    kind: Option<Harm>,
    memory_mb_max: u64,
    p99_fine: Duration,
    floe: Option<PathBuf>,
    is_inside: bool,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Hostile connections of each kind
    #[arg(long, value_name = "N", default_value_t = 1000)]
    connections: usize,

    /// How long each kind attacks [default: 10; quick: 2]
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,

    /// Only this kind (slow_headers, ...)
    #[arg(long, value_name = "NAME")]
    kind: Option<Harm>,

    /// The memory that the server may use
    #[arg(long, value_name = "N", default_value_t = 512)]
    memory_mb: u64,

    /// What nobody calls slow, whatever it was before
    #[arg(long, value_name = "N", default_value_t = 100)]
    p99_ms: u64,

    /// Attack this program instead of building one
    #[arg(long, value_name = "PATH")]
    floe: Option<PathBuf>,

    /// Attack the server inside this program
    #[arg(long)]
    inside: bool,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<Work, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        planted: common.planted,
        connections: flags.connections,
        time: Duration::from_secs(flags.seconds.unwrap_or(common.pick(2, 10))),
        kind: flags.kind,
        memory_mb_max: flags.memory_mb,
        p99_fine: Duration::from_millis(flags.p99_ms),
        floe: flags.floe,
        is_inside: flags.inside || common.planted.is_some(),
    };
    Ok(Box::new(move || run(&plan)))
}

fn run(plan: &Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    server::raise_file_limit();
    let server = Attacked::start(plan)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut report = Report {
        idle_mb: server.memory_mb()?,
        ..Report::default()
    };
    runtime.block_on(honest::prepare(server.address()))?;
    report.before = Honest::start(server.address())?.stop_after(plan.time)?;
    let kinds = plan
        .kind
        .as_ref()
        .map_or(&Harm::ALL[..], std::slice::from_ref);
    for harm in kinds {
        runtime.block_on(report.attack(plan, &server, harm.name(), &[*harm]))?;
    }
    if plan.kind.is_none() {
        runtime.block_on(report.attack(plan, &server, "mixed", &Harm::ALL))?;
    }
    report.memory_mb = server.memory_peak_mb()?;
    report.is_alive = server.is_alive();
    let figures = report
        .figures(plan)
        .put("seconds", started.elapsed().as_secs());
    let found = plan.planted.map(|bug| report.shows(plan, bug));
    Ok(Verdict::new(figures, report.is_clean(plan), found))
}

/// What a run came to.
#[derive(Debug, Default)]
struct Report {
    idle_mb: u64,
    memory_mb: u64,
    is_alive: bool,
    before: Waits,
    during: Vec<(&'static str, Waits)>,
    /// Connections that were opened to do harm, and those of them that the server has cut off.
    opened: u64,
    cut: u64,
}

impl Report {
    /// Does harm for a while, and measures those who do not.
    async fn attack(
        &mut self,
        plan: &Plan,
        server: &Attacked,
        name: &'static str,
        harms: &[Harm],
    ) -> Result<(), Failure> {
        let honest = Honest::start(server.address())?;
        let attack = Attack::start(server.address(), harms, plan.connections);
        let cpu = server.cpu()?;
        tokio::time::sleep(plan.time).await;
        let (opened, cut) = attack.stop().await;
        let waits = honest.stop()?;
        out::note(&format!(
            "{name}: {opened} connections, {cut} cut off; {waits}; {} MB, {:?} on cores",
            server.memory_mb()?,
            server.cpu()?.saturating_sub(cpu),
        ));
        self.opened += opened;
        self.cut += cut;
        self.during.push((name, waits));
        Ok(())
    }

    fn worst_p99(&self) -> Duration {
        let all = self.during.iter().map(|(_, waits)| waits.p99());
        all.max().unwrap_or_default()
    }

    fn unanswered(&self) -> u64 {
        let during = self.during.iter().map(|(_, waits)| waits.unanswered);
        self.before.unanswered + during.sum::<u64>()
    }

    fn is_clean(&self, plan: &Plan) -> bool {
        let p99_max = plan.p99_fine.max(self.before.p99() * P99_RATIO_MAX);
        let is_measured = self.during.iter().all(|(_, waits)| waits.answered() > 0);
        self.is_alive
            && is_measured
            && self.memory_mb < plan.memory_mb_max
            // The server inside of this program has all of it in its memory.
            && (plan.is_inside || self.idle_mb < IDLE_MB_MAX)
            && self.worst_p99() <= p99_max
            && self.unanswered() == 0
    }

    /// Whether it shows what the bug must lead to.
    fn shows(&self, plan: &Plan, bug: Bug) -> bool {
        match bug {
            Bug::NoLimits => self.memory_mb >= plan.memory_mb_max,
            Bug::NoAnswer => self.unanswered() > 0,
            _ => false,
        }
    }

    fn figures(&self, plan: &Plan) -> Figures {
        let mut figures = Figures::new(CHECK.name)
            .put("connections", plan.connections)
            .put("kinds", Harm::ALL.len())
            .put("hostile", self.opened)
            .put("cut_off", self.cut)
            .put("idle_mb", self.idle_mb)
            .put("memory_mb", self.memory_mb)
            .put("before_p99_us", self.before.p99().as_micros());
        let mut requests = self.before.answered();
        for (name, waits) in &self.during {
            figures = figures.put(&format!("{name}_p99_us"), waits.p99().as_micros());
            requests += waits.answered();
        }
        figures
            .put("worst_p99_us", self.worst_p99().as_micros())
            .put("answered", requests)
            .put("unanswered", self.unanswered())
            .put("alive", self.is_alive)
    }
}
