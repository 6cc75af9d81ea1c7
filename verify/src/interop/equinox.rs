//! Event streams exchanged with equinox-js, and the feed of their events.
//!
//! Both sides maintain the same counters in four kinds of streams. Each describes a stream as a list of lines, and the
//! lists must be equal. The other side is `verify/interop/equinox.mjs`.

mod feed;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use floe::events::{Access, Compression, Decider, EventStore, EventStoreOptions, StreamName};
use floe::{Db, Event};
use floe_local::LocalEngine;
use floe_server::{Options, Server, Service};

use crate::checks::tool::{must_succeed, npm_ci, target_folder};
use crate::{Failure, out};

/// Number of events in each stream at the end.
const EVENTS: usize = 10;

/// Minimum number of spans in the feed at the end.
const SPANS: usize = 40;

#[derive(Clone, Debug, Event)]
enum Counted {
    Added { n: u64, note: String },
    Reset,
    Total { n: u64, count: u64 },
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    total: u64,
    count: u64,
}

enum Counter {}

impl Decider for Counter {
    const CATEGORY: &'static str = "Counter";
    type Id = str;
    type Event = Counted;
    type State = Count;

    fn initial() -> Count {
        Count::default()
    }

    fn evolve(state: Count, event: &Counted) -> Count {
        let count = state.count + 1;
        match event {
            Counted::Added { n, .. } => Count {
                total: state.total + n,
                count,
            },
            Counted::Reset => Count { total: 0, count },
            Counted::Total { n, count } => Count {
                total: *n,
                count: *count,
            },
        }
    }
}

/// A kind of stream.
struct Kind {
    name: &'static str,
    options: EventStoreOptions,
    has_snapshot: bool,
}

impl Kind {
    fn all() -> [Self; 4] {
        let options = || EventStoreOptions::default().page_items(2);
        let kind = |name, options, has_snapshot| Self {
            name,
            options,
            has_snapshot,
        };
        [
            kind("plain", options(), false),
            kind("calved", options().tip_events_max(3), false),
            kind("snapshot", options().tip_events_max(3), true),
            kind(
                "compressed",
                options().tip_events_max(2).compression(Compression::Brotli),
                true,
            ),
        ]
    }

    fn access(&self) -> Access<Counter> {
        if self.has_snapshot {
            Access::Snapshot {
                is_origin: |event| matches!(event, Counted::Total { .. }),
                to_snapshot: |state| Counted::Total {
                    n: state.total,
                    count: state.count,
                },
            }
        } else {
            Access::Unoptimized
        }
    }

    fn store(&self, db: &Db) -> EventStore {
        db.event_store(self.options.clone())
    }

    async fn decide(
        &self,
        db: &Db,
        prefix: &str,
        decide: impl Fn(&Count) -> Vec<Counted>,
    ) -> Result<(), Failure> {
        let stream = self
            .store(db)
            .stream::<Counter>(&self.id(prefix))
            .access(self.access());
        stream
            .transact(|state| Ok::<_, floe::Error>(decide(state)))
            .await?;
        Ok(())
    }

    fn id(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.name)
    }

    async fn write(&self, db: &Db, prefix: &str) -> Result<(), Failure> {
        for n in 1..=7 {
            self.decide(db, prefix, |_| vec![added(n, &long())]).await?;
        }
        self.decide(db, prefix, |_| vec![Counted::Reset, added(40, "äöü €")])
            .await
    }

    async fn append(&self, db: &Db, prefix: &str) -> Result<(), Failure> {
        self.decide(db, prefix, |state| vec![added(state.total, &long())])
            .await
    }

    /// Describes the events and the state of a stream.
    async fn read(&self, db: &Db, prefix: &str) -> Result<Vec<String>, Failure> {
        let (store, id) = (self.store(db), self.id(prefix));
        let name = StreamName::new(Counter::CATEGORY, id.as_str())?;
        let mut lines = Vec::new();
        for read in store.read(&name).collect().await? {
            let body = String::from_utf8_lossy(&read.event.data).into_owned();
            lines.push(format!(
                "event\t{name}\t{}\t{}\t{body}",
                read.index, read.event.event_type
            ));
        }
        let stream = store.stream::<Counter>(&id).access(self.access());
        let (state, version) = stream
            .query_versioned(|state, version| (*state, version))
            .await?;
        lines.push(format!(
            "state\t{name}\t{version}\t{}\t{}",
            state.total, state.count
        ));
        Ok(lines)
    }
}

fn long() -> String {
    "the same words again and again, ".repeat(8)
}

fn added(n: u64, note: &str) -> Counted {
    Counted::Added {
        n,
        note: note.to_owned(),
    }
}

/// The other implementation.
struct Equinox {
    folder: PathBuf,
    endpoint: String,
}

impl Equinox {
    fn prepare(endpoint: String) -> Result<Self, Failure> {
        let pinned = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop");
        let folder = target_folder()?.join("interop");
        npm_ci(&pinned, &folder, "equinox-js")?;
        for script in ["equinox.mjs", "feed.mjs"] {
            std::fs::copy(pinned.join(script), folder.join(script))?;
        }
        Ok(Self { folder, endpoint })
    }

    /// Runs an action on the streams with a prefix.
    async fn streams(&self, what: &str, prefix: &str) -> Result<Vec<String>, Failure> {
        self.run("equinox.mjs", &[what, prefix]).await
    }

    /// Runs a script and returns the lines that it prints.
    async fn run(&self, script: &str, arguments: &[&str]) -> Result<Vec<String>, Failure> {
        let mut node = Command::new("node");
        node.current_dir(&self.folder)
            .args([script, &self.endpoint])
            .args(arguments);
        let ran = tokio::task::spawn_blocking(move || must_succeed(&mut node)).await;
        let output = ran.map_err(|_| Failure::broken("a thread of the check panicked"))??;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().map(str::to_owned).collect())
    }
}

pub(super) fn run() -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(exchange())
}

async fn exchange() -> Result<ExitCode, Failure> {
    let engine = Arc::new(LocalEngine::memory()?);
    let server = Server::bind(Options::new(), Service::new(engine.clone())).await;
    let running = server
        .map_err(|error| Failure::broken(error.to_string()))?
        .spawn();
    let db = Db::with_engine(engine);
    db.events().ensure_table().await?;
    let equinox = Equinox::prepare(running.url())?;

    for kind in Kind::all() {
        kind.write(&db, "floe").await?;
    }
    equinox.streams("write", "equinox").await?;
    let mut differing = compare(&db, &equinox).await?.1;
    // Each side appends to the streams of the other, which uses the other's snapshots and Tips.
    equinox.streams("append", "floe").await?;
    for kind in Kind::all() {
        kind.append(&db, "equinox").await?;
    }
    let (events, more) = compare(&db, &equinox).await?;
    differing += more;
    let (spans, more) = feed::exchange(&db, &equinox).await?;
    differing += more;
    running.shutdown().await;
    let floor = Kind::all().len() * 2 * EVENTS;
    let ok = differing == 0 && events >= floor && spans >= SPANS;
    out::figures(&format!(
        "interop=equinox streams={} events={events} floor_events={floor} spans={spans} floor_spans={SPANS} \
         differing={differing} ok={ok}",
        Kind::all().len() * 2
    ));
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the number of events, and the number of lines that differ.
async fn compare(db: &Db, equinox: &Equinox) -> Result<(usize, usize), Failure> {
    let (mut events, mut differing) = (0, 0);
    for prefix in ["floe", "equinox"] {
        let mut here = Vec::new();
        for kind in Kind::all() {
            here.extend(kind.read(db, prefix).await?);
        }
        let there = equinox.streams("read", prefix).await?;
        events += here.iter().filter(|line| line.starts_with("event")).count();
        differing += count_differing(&here, &there);
    }
    Ok((events, differing))
}

/// Counts the lines that differ between two lists, and prints them.
fn count_differing(here: &[String], there: &[String]) -> usize {
    let longer = here.len().max(there.len());
    let pairs = (0..longer).map(|at| (here.get(at), there.get(at)));
    let differing = pairs.filter(|(here, there)| here != there);
    differing
        .inspect(|(here, there)| {
            out::note(&format!(
                "here:  {}\nthere: {}",
                shown(*here),
                shown(*there)
            ));
        })
        .count()
}

fn shown(line: Option<&String>) -> String {
    line.map_or("nothing", String::as_str)
        .chars()
        .take(120)
        .collect()
}
