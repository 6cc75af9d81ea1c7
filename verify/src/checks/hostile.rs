//! `verify hostile`: hostile clients neither exhaust the server's memory nor slow down other clients.
//!
//! | file | contents |
//! |---|---|
//! | `server` | the attacked program `floe`, and its memory use |
//! | `attack` | the kinds of attack |
//! | `honest` | well-behaved clients, and their latencies |

mod attack;
mod honest;
mod server;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};

use super::figures::{Figures, Verdict};
use super::planted::Bug;
use super::{Check, CheckRun, Common};
use crate::{Failure, out};
use attack::{Attack, AttackKind};
use honest::{HonestClients, Latencies};
use server::TargetServer;

pub(super) use server::ServerRole;

pub(super) const CHECK: Check = Check {
    name: "hostile",
    proves: "hostile connections neither exhaust the server's memory nor slow down other clients",
    how: "Starts floe, and attacks it from this machine with connections of each kind in turn, and of all kinds \
          together:\nslow headers and bodies, huge bodies, deep JSON, idle connections, responses that are never \
          read. Meanwhile\nwell-behaved clients read and write; all their requests must be answered, about as fast \
          as before. The memory\nof the server must stay below a limit.",
    flags: Flags::augment_args,
    planted: &[Bug::NoLimits, Bug::NoAnswer],
    prepare,
};

/// Maximum memory of an idle server.
const IDLE_MB_MAX: u64 = 25;

/// Maximum ratio of the 99th percentile under attack to the one before.
const P99_RATIO_MAX: u32 = 10;

/// The size of the run.
#[derive(Clone, Debug)]
struct Plan {
    planted: Option<Bug>,
    connections: usize,
    time: Duration,
    kind: Option<AttackKind>,
    memory_mb_max: u64,
    p99_acceptable: Duration,
    floe: Option<PathBuf>,
    is_inside: bool,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Number of hostile connections of each kind
    #[arg(long, value_name = "N", default_value_t = 1000)]
    connections: usize,

    /// Duration of each attack in seconds [default: 10; quick: 2]
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,

    /// Run only this kind (slow_headers, ...)
    #[arg(long, value_name = "NAME")]
    kind: Option<AttackKind>,

    /// Maximum memory of the server
    #[arg(long, value_name = "N", default_value_t = 512)]
    memory_mb: u64,

    /// A 99th percentile that is always acceptable
    #[arg(long, value_name = "N", default_value_t = 100)]
    p99_ms: u64,

    /// Attack this binary instead of building it
    #[arg(long, value_name = "PATH")]
    floe: Option<PathBuf>,

    /// Attack the server inside this binary
    #[arg(long)]
    inside: bool,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        planted: common.planted,
        connections: flags.connections,
        time: Duration::from_secs(flags.seconds.unwrap_or(common.pick(2, 10))),
        kind: flags.kind,
        memory_mb_max: flags.memory_mb,
        p99_acceptable: Duration::from_millis(flags.p99_ms),
        floe: flags.floe,
        is_inside: flags.inside || common.planted.is_some(),
    };
    Ok(Box::new(move || run(&plan)))
}

fn run(plan: &Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    server::raise_file_limit();
    let server = TargetServer::start(plan)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut report = Report {
        idle_mb: server.memory_mb()?,
        ..Report::default()
    };
    runtime.block_on(honest::prepare(server.address()))?;
    report.before = HonestClients::start(server.address())?.stop_after(plan.time)?;
    let kinds = plan
        .kind
        .as_ref()
        .map_or(&AttackKind::ALL[..], std::slice::from_ref);
    for kind in kinds {
        runtime.block_on(report.attack(plan, &server, kind.name(), &[*kind]))?;
    }
    if plan.kind.is_none() {
        runtime.block_on(report.attack(plan, &server, "mixed", &AttackKind::ALL))?;
    }
    report.memory_mb = server.memory_peak_mb()?;
    report.is_alive = server.is_alive();
    let figures = report
        .figures(plan)
        .put("seconds", started.elapsed().as_secs());
    let found = plan.planted.map(|bug| report.shows(plan, bug));
    Ok(Verdict::new(figures, report.is_clean(plan), found))
}

/// The results of a run.
#[derive(Debug, Default)]
struct Report {
    idle_mb: u64,
    memory_mb: u64,
    is_alive: bool,
    before: Latencies,
    during: Vec<(&'static str, Latencies)>,
    /// Hostile connections that were opened, and those of them that the server closed.
    opened: u64,
    cut: u64,
}

impl Report {
    /// Attacks for a while, and measures the latency of well-behaved clients.
    async fn attack(
        &mut self,
        plan: &Plan,
        server: &TargetServer,
        name: &'static str,
        kinds: &[AttackKind],
    ) -> Result<(), Failure> {
        let honest = HonestClients::start(server.address())?;
        let attack = Attack::start(server.address(), kinds, plan.connections);
        let cpu = server.cpu()?;
        tokio::time::sleep(plan.time).await;
        let (opened, cut) = attack.stop().await;
        let latencies = honest.stop()?;
        out::note(&format!(
            "{name}: {opened} connections, {cut} cut off; {latencies}; {} MB, {:?} on cores",
            server.memory_mb()?,
            server.cpu()?.saturating_sub(cpu),
        ));
        self.opened += opened;
        self.cut += cut;
        self.during.push((name, latencies));
        Ok(())
    }

    fn worst_p99(&self) -> Duration {
        let all = self.during.iter().map(|(_, latencies)| latencies.p99());
        all.max().unwrap_or_default()
    }

    fn unanswered(&self) -> u64 {
        let during = self
            .during
            .iter()
            .map(|(_, latencies)| latencies.unanswered);
        self.before.unanswered + during.sum::<u64>()
    }

    fn is_clean(&self, plan: &Plan) -> bool {
        let p99_max = plan.p99_acceptable.max(self.before.p99() * P99_RATIO_MAX);
        let is_measured = self
            .during
            .iter()
            .all(|(_, latencies)| latencies.answered() > 0);
        self.is_alive
            && is_measured
            && self.memory_mb < plan.memory_mb_max
            // The server inside this binary shares its memory with the check.
            && (plan.is_inside || self.idle_mb < IDLE_MB_MAX)
            && self.worst_p99() <= p99_max
            && self.unanswered() == 0
    }

    /// Whether the results show the effect of the bug.
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
            .put("kinds", AttackKind::ALL.len())
            .put("hostile", self.opened)
            .put("cut_off", self.cut)
            .put("idle_mb", self.idle_mb)
            .put("memory_mb", self.memory_mb)
            .put("before_p99_us", self.before.p99().as_micros());
        let mut requests = self.before.answered();
        for (name, latencies) in &self.during {
            figures = figures.put(&format!("{name}_p99_us"), latencies.p99().as_micros());
            requests += latencies.answered();
        }
        figures
            .put("worst_p99_us", self.worst_p99().as_micros())
            .put("answered", requests)
            .put("unanswered", self.unanswered())
            .put("alive", self.is_alive)
    }
}
