//! What a consumer does in the run of the process that delivers: see [`delivery`](crate::delivery).
//!
//! The tables are the sources, and the items the keys. What is stored is up to where the changes of a table are done.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use floe_store::{BoxFuture, Item, Timestamp};
use tracing::Instrument;

use super::super::limits::{
    BYTES_AHEAD, CHANGES_PER_TURN, EMPTY_LOOKS, LOOK_RECORDS, LOOKS_AHEAD, RECORDS_AHEAD,
    REMEMBERED,
};
use super::notice::{Notice, Progress, Ran};
use super::source::{Mark, Source};
use super::tables::{Known, Table, Tables};
use super::turn::Task;
use super::{Consumer, lease, position, telemetry};
use crate::delivery::{
    Batch, BatchOf, Beat, Consume, End, Entry, Group, Host, Limits, Load, Notice as LeaseNotice,
    Orders, Recent, Replays, Run, Size, Standing, Token, outlast,
};
use crate::error::Result;
use crate::lock::lock;

/// The processes of a consumer, of which one delivers.
pub(super) struct Processes<'c> {
    consumer: &'c Consumer,
    /// What this process has done.
    pub(super) ran: Mutex<Ran>,
}

impl<'c> Processes<'c> {
    pub(super) fn new(consumer: &'c Consumer) -> Self {
        let ran = Mutex::default();
        Self { consumer, ran }
    }

    /// Makes everything ready; `None` if somebody else delivers by now.
    async fn begin(&self, token: &Token) -> Result<Option<(Tables<'_>, Sources)>> {
        let consumer = self.consumer;
        let (mut names, mut tables, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        for name in consumer.tables() {
            let claimed = position::claim(&consumer.db, &consumer.name, &name, token).await?;
            let Some(before) = claimed else {
                return Ok(None);
            };
            let accepts = consumer.options.accepts_trimmed;
            let source = Source::open(&consumer.db, &name, before.clone(), accepts).await?;
            source.check(consumer.needs(&name))?;
            let mark = source.mark(&consumer.hold_name());
            let read = mark.positions.clone();
            // Shards are noted when they are found: one that is gone before it was read is missed then.
            let mark = (read != before).then_some(mark);
            sources.push((Box::new(source), mark));
            let holds = Vec::new();
            tables.push(Table { read, holds });
            names.push(name);
        }
        let tables = Tables {
            consumer,
            ran: &self.ran,
            token: token.clone(),
            names,
            parked_count: AtomicUsize::new(0),
            known: Mutex::new(Known {
                tables,
                recent: Recent::new(REMEMBERED),
                parked: HashSet::new(),
                told: (consumer.db.engine().now(), lock(&self.ran).done()),
                last_created: Timestamp::default(),
            }),
        };
        Ok(Some((tables, sources)))
    }
}

impl Group for Processes<'_> {
    fn host(&self) -> &dyn Host {
        self.consumer
    }

    async fn beat(&self, beat: Beat) -> Result<Standing> {
        lease::beat(&self.consumer.db, &self.consumer.name, &beat).await
    }

    async fn leave(&self, member: &str) -> Result<()> {
        lease::leave(&self.consumer.db, &self.consumer.name, member).await
    }

    async fn run(&self, orders: Orders) -> Result<End> {
        let Some(token) = orders.lease.clone() else {
            return Ok(End::Fenced);
        };
        let begin = || Box::pin(self.begin(&token)) as BoxFuture<'_, _>;
        let begun = outlast(self.consumer, true, begin);
        let Some(begun) = orders.unless_stopped(begun).await else {
            return Ok(End::Done);
        };
        let Some((tables, sources)) = begun? else {
            return Ok(End::Fenced);
        };
        Run::new(&tables, orders, sources).finish().await
    }

    fn noticed(&self, notice: LeaseNotice) {
        match notice {
            LeaseNotice::Taken(_) => self.consumer.tell(&Notice::Leads),
            LeaseNotice::Lost(_) | LeaseNotice::Waits => self.consumer.tell(&Notice::Waits),
            LeaseNotice::GivenBack(_) => {}
        }
    }
}

/// The tables, each with how far it is if that is new.
type Sources = Vec<(Box<Source>, Option<Mark>)>;

impl Consume for Tables<'_> {
    type Source = Box<Source>;
    type Key = Item;
    type Work = Task;
    type Mark = Mark;

    const LIMITS: Limits = Limits {
        batches_max: LOOKS_AHEAD,
        records_max: RECORDS_AHEAD,
        bytes_max: BYTES_AHEAD,
    };
    const EMPTY_READS: u32 = EMPTY_LOOKS;

    fn host(&self) -> &dyn Host {
        self.consumer
    }

    fn turn_records_max(&self) -> u64 {
        CHANGES_PER_TURN
    }

    async fn read(&self, number: usize, source: &mut Box<Source>) -> Result<BatchOf<Self>> {
        let hold = self.consumer.hold_name();
        let look = source.look(&hold, LOOK_RECORDS).await?;
        let (mut known, mut ran) = (lock(&self.known), lock(self.ran));
        ran.records += look.changes.len() as u64;
        let mut entries = Vec::with_capacity(look.changes.len());
        for change in look.changes {
            known.last_created = known.last_created.max(change.time());
            let id = match change.event_id() {
                "" => change.sequence(),
                id => id,
            };
            if !known.recent.note(id, ()) {
                ran.repeated += 1;
                continue;
            }
            let Some(work) = self.consumer.router.work(&change) else {
                ran.unwanted += 1;
                continue;
            };
            entries.push(Entry {
                key: change.keys().clone(),
                work: Task::Handle(work),
                size: Size {
                    records: 1,
                    bytes: change.bytes(),
                },
            });
        }
        let table = known.tables.get_mut(number);
        let mark = table.filter(|table| table.read != look.mark.positions);
        let mark = mark.map(|table| {
            table.read = look.mark.positions.clone();
            look.mark
        });
        Ok(Batch {
            entries,
            mark,
            is_idle: look.is_idle,
        })
    }

    async fn turn(&self, number: usize, keys: &Item, tasks: Vec<Task>) -> Result<End> {
        let place = (number, keys.clone());
        let mut is_parked = lock(&self.known).parked.contains(&place);
        let table = self.names.get(number).map_or("", |name| name);
        let span = telemetry::turn(&self.consumer.name, table, tasks.len());
        let turn = self.take_turn(table, keys, tasks, &mut is_parked);
        let end = turn.instrument(span).await?;
        let mut known = lock(&self.known);
        if is_parked {
            known.parked.insert(place);
        } else {
            known.parked.remove(&place);
        }
        Ok(end)
    }

    async fn store(&self, marks: &[(usize, Mark)]) -> Result<End> {
        self.consumer.flush().await;
        for (number, mark) in marks {
            let table = self.names.get(*number).map_or("", |name| name);
            if !self.store_table(*number, table, mark).await? {
                return Ok(End::Fenced);
            }
        }
        Ok(End::Done)
    }

    fn stored(&self, load: Load) {
        let (consumer, ran) = (self.consumer, *lock(self.ran));
        let mut known = lock(&self.known);
        let now = consumer.db.engine().now();
        let seconds = now.since(known.told.0).as_secs_f64();
        let waiting = usize::try_from(load.size.records).unwrap_or(usize::MAX);
        let progress = Progress {
            ran,
            per_second: if seconds > 0.0 {
                (ran.done() - known.told.1) as f64 / seconds
            } else {
                0.0
            },
            lag: match waiting {
                0 => Duration::ZERO,
                _ => now.since(known.last_created),
            },
            waiting,
        };
        known.told = (now, ran.done());
        drop(known);
        consumer.tell(&Notice::Stored(&progress));
    }

    /// Learns what is parked, and what of it somebody has asked to try again. What it knows to be parked stays so: whether
    /// it still is, is looked at when it matters.
    async fn replays(&self) -> Result<Replays<Self>> {
        let items = self.consumer.parked().items().await?;
        self.parked_count.store(items.count, Ordering::Relaxed);
        let (mut known, mut replays) = (lock(&self.known), Vec::new());
        for (table, keys, is_asked) in items.items {
            let number = self.names.iter().position(|name| **name == *table);
            // It is parked for a table that is not asked for any more.
            let Some(number) = number else { continue };
            known.parked.insert((number, keys.clone()));
            if is_asked {
                replays.push((number, keys, Task::Replay));
            }
        }
        Ok(replays)
    }
}
