//! The server of DynamoDB's protocol, compared with `dynoxide-rs` or another server, each in its own process.
//!
//! | module | content |
//! |---|---|
//! | `plan` | flags and plan |
//! | `data`, `request` | items, the bodies of requests, and their bytes on the wire |
//! | `process`, [`dynoxide`] | the servers |
//! | `client` | sends requests and records latencies |
//! | `agree` | verifies that both servers respond with the same content |
//! | `start` | start time and memory of an idle server |
//! | `sum` | the results of a server in all rounds of a case |

mod agree;
mod client;
mod data;
pub(crate) mod dynoxide;
mod plan;
mod process;
mod request;
mod start;
mod sum;

use std::path::Path;
use std::rc::Rc;

use clap::Args;

use crate::measure::{ratio, shown};
use crate::{Benchmark, Fallible, parsed};
use client::{Connection, send_for};
use data::Operation;
use plan::{Flags, Plan};
use process::{Server, Side};
use request::{Fresh, Pool};
use start::megabytes;
use sum::Sum;

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "wire",
    about: plan::ABOUT,
    details: plan::DETAILS,
    flags: Flags::augment_args,
    prepare: |flags| {
        let plan = Plan::of(parsed(flags)?)?;
        plan.cases.check(case_names())?;
        Ok(Box::new(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(run(&plan))
        }))
    },
};

/// Maximum CPU time of a request in memory, relative to the other server.
const CPU_MAX: f64 = 0.4;
/// Goal of the same.
const CPU_GOAL: f64 = 0.25;
/// Minimum throughput of durable writes on 16 connections, relative to the other server.
const TIMES_MIN: f64 = 8.0;

/// Where the items are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Memory,
    Durable,
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Durable => "durable",
        }
    }
}

/// A measured combination.
#[derive(Clone, Copy)]
struct Case {
    store: Store,
    operation: Operation,
    connections: usize,
}

impl Case {
    /// All cases of a store.
    fn all(store: Store) -> impl Iterator<Item = Self> {
        Operation::ALL.into_iter().flat_map(move |operation| {
            [1, 16, 64].map(|connections| Self {
                store,
                operation,
                connections,
            })
        })
    }

    fn name(self) -> String {
        let (store, operation) = (self.store.name(), self.operation.name());
        format!("{store}_{operation}_{}", self.connections)
    }

    fn cpu_max(self) -> Option<f64> {
        (self.store == Store::Memory).then_some(CPU_MAX)
    }

    fn times_min(self) -> Option<f64> {
        use Operation::{Put, Transact, Update};
        let is_write = [Put, Update, Transact].contains(&self.operation);
        let counts = self.store == Store::Durable && self.connections == 16;
        (is_write && counts).then_some(TIMES_MIN)
    }
}

/// The names of all cases.
fn case_names() -> impl Iterator<Item = String> {
    let stores = [Store::Memory, Store::Durable].into_iter();
    let cases = stores.flat_map(Case::all).map(Case::name);
    [start::START_MS, start::IDLE_MB]
        .map(str::to_owned)
        .into_iter()
        .chain(cases)
}

/// Runs the plan. Returns whether every floor was reached.
async fn run(plan: &Plan) -> Fallible<bool> {
    let mut ok = true;
    let has_pair = plan.only.is_none() && plan.beside.is_none();
    if has_pair && (plan.cases.wants(start::START_MS) || plan.cases.wants(start::IDLE_MB)) {
        ok &= start::run(plan).await?;
    }
    for store in plan.stores() {
        let cases: Vec<_> = Case::all(store)
            .filter(|case| plan.cases.wants(&case.name()))
            .collect();
        if cases.is_empty() {
            continue;
        }
        let folder = tempfile::tempdir()?;
        let fixture = Fixture::load(plan, store, folder.path()).await?;
        for case in cases {
            ok &= fixture.run_case(plan, case).await?;
        }
        fixture.print_resident(store);
    }
    Ok(ok)
}

/// The loaded servers.
struct Fixture {
    servers: Vec<(Side, Server)>,
    fresh: Rc<Fresh>,
}

impl Fixture {
    async fn load(plan: &Plan, store: Store, folder: &Path) -> Fallible<Self> {
        let (mut servers, mut connections) = (Vec::new(), Vec::new());
        for side in plan.sides() {
            eprintln!("loading: store={} side={side:?}", store.name());
            let own = folder.join(format!("{side:?}"));
            std::fs::create_dir(&own)?;
            let own = (store == Store::Durable).then_some(own.as_path());
            let server = plan.start(side, own).await?;
            let mut connection = Connection::open(server.address).await?;
            agree::load(&mut connection).await?;
            connections.push(connection);
            servers.push((side, server));
        }
        if plan.beside.is_none() {
            agree::check(&mut connections).await?;
        }
        let fresh = Rc::default();
        Ok(Self { servers, fresh })
    }

    async fn run_case(&self, plan: &Plan, case: Case) -> Fallible<bool> {
        let requests = (Rc::new(Pool::new(case.operation)), Rc::clone(&self.fresh));
        let mut clients = Vec::new();
        for (side, server) in &self.servers {
            let mut client_set = Client::open(server, case.connections).await?;
            // The first round warms caches and is not counted.
            match client_set.round(plan, &requests).await {
                Ok(_) => clients.push(client_set),
                Err(error) if *side == Side::Other => {
                    println!(
                        "bench=wire case={} other=rejected reason={error}",
                        case.name()
                    );
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        let sums = measure(plan, &requests, &mut clients).await?;
        match sums.as_slice() {
            [floe, other] if plan.beside.is_some() => {
                print_beside(case, floe, other);
                return Ok(true);
            }
            [floe, dynoxide] => return Ok(print_pair(case, floe, dynoxide)),
            _ => {}
        }
        for ((side, _), sum) in self.servers.iter().zip(&sums) {
            println!("bench=wire case={} {}", case.name(), sum.shown(*side));
        }
        Ok(true)
    }

    fn print_resident(&self, store: Store) {
        let mut line = format!("bench=wire case={}_rss_mb", store.name());
        for (side, server) in &self.servers {
            line += &format!(" {}={:.0}", side.name(), megabytes(server.resident_bytes()));
        }
        println!("{line}");
    }
}

/// The requests of the connections, and the source of new numbers in them.
type Requests = (Rc<Pool>, Rc<Fresh>);

/// The connections to one server.
struct Client<'a> {
    server: &'a Server,
    connections: Vec<Connection>,
}

impl<'a> Client<'a> {
    async fn open(server: &'a Server, count: usize) -> Fallible<Self> {
        let mut connections = Vec::new();
        for _ in 0..count {
            connections.push(Connection::open(server.address).await?);
        }
        Ok(Self {
            server,
            connections,
        })
    }

    async fn round(&mut self, plan: &Plan, (pool, fresh): &Requests) -> Fallible<client::Round> {
        let connections = std::mem::take(&mut self.connections);
        let (connections, round) = send_for(connections, (pool, fresh), plan.round).await?;
        self.connections = connections;
        Ok(round)
    }
}

/// Runs all counted rounds, alternating between the servers.
async fn measure(
    plan: &Plan,
    requests: &Requests,
    clients: &mut [Client<'_>],
) -> Fallible<Vec<Sum>> {
    let before: Vec<_> = clients.iter().map(|p| p.server.cpu_time()).collect();
    let mut sums: Vec<_> = clients.iter().map(|_| Sum::default()).collect();
    for _ in 0..plan.rounds {
        for (client_set, sum) in clients.iter_mut().zip(&mut sums) {
            sum.add(client_set.round(plan, requests).await?);
        }
    }
    for ((client_set, sum), before) in clients.iter().zip(&mut sums).zip(before) {
        sum.finish(client_set.server.cpu_time().saturating_sub(before));
    }
    Ok(sums)
}

fn print_beside(case: Case, floe: &Sum, other: &Sum) {
    println!(
        "bench=wire case={} {} {} times={:.2} cpu={:.3}",
        case.name(),
        floe.shown(Side::Floe),
        other.shown(Side::Other),
        ratio(&floe.rates, &other.rates),
        floe.cpu_micros() / other.cpu_micros(),
    );
}

fn print_pair(case: Case, floe: &Sum, dynoxide: &Sum) -> bool {
    let times = ratio(&floe.rates, &dynoxide.rates);
    let cpu = floe.cpu_micros() / dynoxide.cpu_micros();
    let (cpu_max, times_min) = (case.cpu_max(), case.times_min());
    let ok = cpu_max.is_none_or(|max| cpu <= max) && times_min.is_none_or(|min| times >= min);
    println!(
        "bench=wire case={} {} {} times={times:.2} cpu={cpu:.2} floor_times={} floor_cpu={} goal_cpu={} ok={ok}",
        case.name(),
        floe.shown(Side::Floe),
        dynoxide.shown(Side::Dynoxide),
        shown(times_min),
        shown(cpu_max),
        shown(cpu_max.map(|_| CPU_GOAL)),
    );
    ok
}
