//! The cost of graph reads: requests of an include and of a lookup, pages of a long list compared with a short one, and
//! the deletion of a node with many edges.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use floe::Db;
use floe::graph::{Graph, GraphSchema, Include, IndexDef, IndexKey, Node};
use floe_local::LocalEngine;
use floe_testkit::record::RecordingEngine;
use tokio::runtime::Runtime;

use crate::cases::Cases;
use crate::measure::{Rate, median, ratio, repeat, time};
use crate::rounds::runtime;
use crate::{Benchmark, Fallible, parsed};

const ABOUT: &str = "\
Measure the cost of graph reads, and the deletion of a node with many edges.";

const DETAILS: &str = "\
Cases
  include_100          an entity with 100 related ones: a get, one query and one batch
    lookup_50            50 entities by an index key: one query and one batch
    page_list            50 edges with their objects, from a list of 1,000,000 compared with one of 10,000
    page_type            50 entities of a type with 1,000,000 entities, compared with one with 10,000
    delete               a node with 100,000 incoming edges, in steps; nothing may remain

  All in memory. Each case is one line of key=value. `requests` are those of one call. For pages, `times` is the ratio of the
  times for a page of the large and of the small set, and `ceiling_times` is its maximum. The exit code is 1 if a number of
  requests or a ceiling is missed, 2 for a usage error.";

/// Maximum time for a page of the large set, relative to the small one.
const PAGE_CEILING_TIMES: f64 = 1.25;
/// Number of edges appended in one transaction.
const APPENDED: u64 = 45;
/// Number of entities created in one transaction.
const CREATED: u64 = 90;
/// Number of distinct objects in the long lists.
const OBJECTS: u64 = 50;

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "graph",
    about: ABOUT,
    details: DETAILS,
    flags: Flags::augment_args,
    prepare: |flags| {
        let plan = Plan::of(parsed(flags)?)?;
        Ok(Box::new(move || run(&plan)))
    },
};

/// The flags of the benchmark.
#[derive(Debug, Args)]
struct Flags {
    /// Run short rounds with short lists, for a first look
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    cases: Cases,

    /// Number of rounds of each side [default: 21]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,

    /// Length of a round, in milliseconds [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    round_ms: Option<u64>,
}

struct Plan {
    cases: Cases,
    rounds: u64,
    round: Duration,
    long: u64,
    short: u64,
    hub: u64,
}

impl Plan {
    fn of(flags: Flags) -> Result<Self, String> {
        let is_quick = flags.quick;
        let pick = |quick, full| if is_quick { quick } else { full };
        let plan = Self {
            cases: flags.cases,
            rounds: flags.rounds.unwrap_or(pick(5, 21)),
            round: Duration::from_millis(flags.round_ms.unwrap_or(pick(100, 200))),
            long: pick(20_000, 1_000_000),
            short: pick(1000, 10_000),
            hub: pick(2000, 100_000),
        };
        let names = [
            "include_100",
            "lookup_50",
            "page_list",
            "page_type",
            "delete",
        ];
        plan.cases.check(names)?;
        Ok(plan)
    }
}

struct Fixture {
    db: Db,
    graph: Graph<'static>,
    engine: Arc<RecordingEngine>,
    runtime: Runtime,
}

fn run(plan: &Plan) -> Fallible<bool> {
    let fixture = Fixture::new()?;
    let mut ok = true;
    if plan.cases.wants("include_100") {
        ok &= fixture.include(plan)?;
    }
    if plan.cases.wants("lookup_50") {
        ok &= fixture.lookup(plan)?;
    }
    if plan.cases.wants("page_list") {
        ok &= fixture.page_list(plan)?;
    }
    if plan.cases.wants("page_type") {
        ok &= fixture.page_type(plan)?;
    }
    if plan.cases.wants("delete") {
        ok &= fixture.delete(plan)?;
    }
    Ok(ok)
}

fn key(of: &str, number: u64) -> (String, u64) {
    (of.to_owned(), number)
}

impl Fixture {
    fn new() -> Fallible<Self> {
        let runtime = runtime()?;
        let engine = Arc::new(RecordingEngine::new(Arc::new(LocalEngine::memory()?)));
        let by_tag = IndexDef::new("by_tag", "page", 1, |_, emit| {
            emit.key(IndexKey::text("tag"));
        });
        let schema = GraphSchema::new().index_def(by_tag);
        let db = Db::with_engine(engine.clone()).with_graph(schema);
        runtime.block_on(db.ensure_graph())?;
        let graph = db.graph("bench");
        runtime.block_on(async {
            for number in 0..OBJECTS {
                let page = Node::new("page", number).with("title", "x".repeat(100));
                graph.create(&page).await?;
            }
            Ok::<_, floe::Error>(())
        })?;
        Ok(Self {
            db,
            graph,
            engine,
            runtime,
        })
    }

    /// Creates a list with a number of edges to the pages.
    fn fill(&self, id: &str, edges: u64) -> Fallible<()> {
        self.runtime.block_on(async {
            self.graph.create(&Node::new("book", id)).await?;
            let list = self.graph.related_by(&("book", id), "pages");
            let mut number = 0;
            while number < edges {
                let end = (number + APPENDED).min(edges);
                let pages = (number..end).map(|number| key("page", number % OBJECTS));
                list.append(pages).await?;
                number = end;
                // The recorded requests are not needed.
                self.engine.take();
            }
            Ok::<_, floe::Error>(())
        })?;
        Ok(())
    }

    /// Returns the requests of one call, its result, and the number of calls per second.
    fn measure(
        &self,
        plan: &Plan,
        call: impl AsyncFn() -> Result<usize, floe::Error>,
    ) -> Fallible<(Vec<String>, usize, f64)> {
        self.runtime.block_on(call())?;
        self.engine.take();
        let found = self.runtime.block_on(call())?;
        let requests = self.engine.take().into_iter();
        let names = requests.filter_map(|request| Some(request.split(' ').next()?.to_owned()));
        let names = names.collect();
        let mut rates = Vec::new();
        for _ in 0..plan.rounds {
            rates.push(self.round(plan, &call)?.per_second());
        }
        Ok((names, found, median(rates)))
    }

    fn round(
        &self,
        plan: &Plan,
        call: impl AsyncFn() -> Result<usize, floe::Error>,
    ) -> Fallible<Rate> {
        let rate = repeat(plan.round, || {
            black_box(self.runtime.block_on(call())?);
            self.engine.take();
            Ok::<_, floe::Error>(1)
        })?;
        Ok(rate)
    }

    fn include(&self, plan: &Plan) -> Fallible<bool> {
        // A hundred distinct objects.
        self.runtime.block_on(async {
            self.graph.create(&Node::new("shelf", "s")).await?;
            let list = self.graph.related_by(&("shelf", "s"), "holds");
            for number in 0..100 {
                self.graph.create(&Node::new("volume", number)).await?;
                list.link(&key("volume", number)).await?;
            }
            Ok::<_, floe::Error>(())
        })?;
        let follow = [Include::predicate("holds")];
        let shelf = ("shelf", "s");
        let call = async || {
            let included = self.graph.include(&shelf, &follow).await?;
            Ok(included.map_or(0, |shelf| shelf.edges("holds").len()))
        };
        let (requests, found, rate) = self.measure(plan, call)?;
        let ok = found == 100 && requests == ["Query", "GetItem", "BatchGetItem"];
        println!(
            "bench=graph case=include_100 found={found} requests={} per_s={rate:.0} ok={ok}",
            requests.join(",")
        );
        Ok(ok)
    }

    fn lookup(&self, plan: &Plan) -> Fallible<bool> {
        let tag = IndexKey::text("tag");
        let call = async || Ok(self.graph.find_by("by_tag").eq(&tag).load().await?.len());
        let (requests, found, rate) = self.measure(plan, call)?;
        let ok = found == 50 && requests == ["Query", "BatchGetItem"];
        println!(
            "bench=graph case=lookup_50 found={found} requests={} per_s={rate:.0} ok={ok}",
            requests.join(",")
        );
        Ok(ok)
    }

    fn page_list(&self, plan: &Plan) -> Fallible<bool> {
        self.fill("long", plan.long)?;
        self.fill("short", plan.short)?;
        self.pages(plan, "page_list", &async |id: &str| {
            let list = self.graph.related_by(&("book", id), "pages");
            Ok(list.page(50, None).await?.rows.len())
        })
    }

    fn page_type(&self, plan: &Plan) -> Fallible<bool> {
        self.create("long", plan.long)?;
        self.create("short", plan.short)?;
        self.pages(plan, "page_type", &async |of: &str| {
            let all = self.graph.all_of(of).newest_first().limit(50);
            Ok(all.page().await?.rows.len())
        })
    }

    /// Creates entities of a type.
    fn create(&self, of: &str, entities: u64) -> Fallible<()> {
        self.runtime.block_on(async {
            let mut number = 0;
            while number < entities {
                let end = (number + CREATED).min(entities);
                let created = self.db.transact(async |tx| {
                    let graph = tx.graph("bench");
                    for number in number..end {
                        let node = Node::new(of, number).with("title", "x".repeat(100));
                        graph.create(&node).await?;
                    }
                    Ok::<_, floe::Error>(())
                });
                created.await?;
                number = end;
                self.engine.take();
            }
            Ok::<_, floe::Error>(())
        })?;
        Ok(())
    }

    fn pages(
        &self,
        plan: &Plan,
        case: &str,
        page: &impl AsyncFn(&str) -> Result<usize, floe::Error>,
    ) -> Fallible<bool> {
        self.engine.take();
        let found = self.runtime.block_on(page("long"))?;
        let requests = self.engine.take().len();
        let (mut long, mut short) = (Vec::new(), Vec::new());
        for _ in 0..=plan.rounds {
            long.push(self.round(plan, async || page("long").await)?.per_second());
            short.push(self.round(plan, async || page("short").await)?.per_second());
        }
        // The first round warms caches and is not counted.
        long.remove(0);
        short.remove(0);
        let times = ratio(&short, &long);
        let ok = times <= PAGE_CEILING_TIMES && found == 50;
        println!(
            "bench=graph case={case} found={found} requests={requests} many={} few={} many_per_s={:.0} few_per_s={:.0} \
             times={times:.2} ceiling_times={PAGE_CEILING_TIMES} ok={ok}",
            plan.long,
            plan.short,
            median(long),
            median(short),
        );
        Ok(ok)
    }

    fn delete(&self, plan: &Plan) -> Fallible<bool> {
        self.runtime.block_on(async {
            self.graph.create(&Node::new("hub", "h")).await?;
            let subjects = plan.hub.div_ceil(APPENDED);
            for number in 0..subjects {
                self.graph.create(&Node::new("fan", number)).await?;
                let left = (plan.hub - number * APPENDED).min(APPENDED);
                let list = self.graph.related_by(&key("fan", number), "likes");
                list.append((0..left).map(|_| ("hub", "h"))).await?;
                self.engine.take();
            }
            Ok::<_, floe::Error>(())
        })?;
        let rate = time(|| {
            let deleted = self.graph.delete_with(&("hub", "h"), |_| {
                self.engine.take();
            });
            let deleted = self.runtime.block_on(deleted)?;
            Ok::<_, floe::Error>(deleted.edges)
        })?;
        let left = self.runtime.block_on(self.graph.check())?.differences.len();
        let ok = rate.operations == plan.hub && left == 0;
        println!(
            "bench=graph case=delete edges={} edges_per_s={:.0} left={left} ok={ok}",
            rate.operations,
            rate.per_second(),
        );
        Ok(ok)
    }
}
