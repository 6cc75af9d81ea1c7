//! The run of the active process of a consumer: see [`delivery`](crate::delivery).
//!
//! Tables are the sources, items the keys. A checkpoint is the position up to which the changes of a table are
//! processed.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use floe_store::{BoxFuture, Item, Timestamp};
use tracing::Instrument;

use super::super::limits::{
    BYTES_AHEAD, CHANGES_PER_TURN, EMPTY_READS, READS_AHEAD, RECORDS_AHEAD, RECORDS_PER_READ,
    REMEMBERED,
};
use super::notice::{ConsumerNotice, ConsumerProgress, ConsumerSummary};
use super::source::{Source, TableCheckpoint};
use super::tables::{RunState, Table, Tables};
use super::turn::Task;
use super::{ChangeConsumer, lease, position, telemetry};
use crate::delivery::{
    BacklogLimits, BacklogSize, Batch, BatchOf, Consume, Entry, Group, GroupState, Heartbeat, Host,
    LeaseNotice, RecentIds, Replays, Run, RunContext, RunOutcome, Size, Token, retry_store,
};
use crate::error::Result;
use crate::lock::lock;

/// The processes of a consumer, one of which is active.
pub(super) struct ProcessGroup<'c> {
    consumer: &'c ChangeConsumer,
    /// Totals of this process.
    pub(super) summary: Mutex<ConsumerSummary>,
}

impl<'c> ProcessGroup<'c> {
    pub(super) fn new(consumer: &'c ChangeConsumer) -> Self {
        let summary = Mutex::default();
        Self { consumer, summary }
    }

    /// Opens the tables; `None` if another process has taken over.
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
            let checkpoint = source.checkpoint(&consumer.hold_name());
            let read = checkpoint.positions.clone();
            // Newly found shards are stored at once, so that a shard that disappears unread is noticed.
            let checkpoint = (read != before).then_some(checkpoint);
            sources.push((Box::new(source), checkpoint));
            let holds = Vec::new();
            tables.push(Table { read, holds });
            names.push(name);
        }
        let tables = Tables {
            consumer,
            summary: &self.summary,
            token: token.clone(),
            names,
            dead_letter_count: AtomicUsize::new(0),
            state: Mutex::new(RunState {
                tables,
                recent: RecentIds::new(REMEMBERED),
                dead_letters: HashSet::new(),
                last_report: (consumer.db.engine().now(), lock(&self.summary).done()),
                last_created: Timestamp::default(),
            }),
        };
        Ok(Some((tables, sources)))
    }
}

impl Group for ProcessGroup<'_> {
    fn host(&self) -> &dyn Host {
        self.consumer
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<GroupState> {
        lease::beat(&self.consumer.db, &self.consumer.name, &heartbeat).await
    }

    async fn leave(&self, member: &str) -> Result<()> {
        lease::leave(&self.consumer.db, &self.consumer.name, member).await
    }

    async fn run(&self, context: RunContext) -> Result<RunOutcome> {
        let Some(token) = context.lease.clone() else {
            return Ok(RunOutcome::Fenced);
        };
        let begin = || Box::pin(self.begin(&token)) as BoxFuture<'_, _>;
        let begun = retry_store(self.consumer, true, begin);
        let Some(begun) = context.unless_stopped(begun).await else {
            return Ok(RunOutcome::Completed);
        };
        let Some((tables, sources)) = begun? else {
            return Ok(RunOutcome::Fenced);
        };
        Run::new(&tables, context, sources).finish().await
    }

    fn noticed(&self, notice: LeaseNotice) {
        match notice {
            LeaseNotice::Acquired(_) => self.consumer.notify(&ConsumerNotice::LeaseAcquired),
            LeaseNotice::Lost(_) | LeaseNotice::Waiting => {
                self.consumer.notify(&ConsumerNotice::Waiting);
            }
            LeaseNotice::Released(_) => {}
        }
    }
}

/// The sources, each with its checkpoint if that is new.
type Sources = Vec<(Box<Source>, Option<TableCheckpoint>)>;

impl Consume for Tables<'_> {
    type Source = Box<Source>;
    type Key = Item;
    type Work = Task;
    type Checkpoint = TableCheckpoint;

    const LIMITS: BacklogLimits = BacklogLimits {
        batches_max: READS_AHEAD,
        records_max: RECORDS_AHEAD,
        bytes_max: BYTES_AHEAD,
    };
    const EMPTY_READS: u32 = EMPTY_READS;

    fn host(&self) -> &dyn Host {
        self.consumer
    }

    fn turn_records_max(&self) -> u64 {
        CHANGES_PER_TURN
    }

    async fn read(&self, number: usize, source: &mut Box<Source>) -> Result<BatchOf<Self>> {
        let hold = self.consumer.hold_name();
        let batch = source.read_batch(&hold, RECORDS_PER_READ).await?;
        let (mut state, mut summary) = (lock(&self.state), lock(self.summary));
        summary.records += batch.changes.len() as u64;
        let mut entries = Vec::with_capacity(batch.changes.len());
        for change in batch.changes {
            state.last_created = state.last_created.max(change.time());
            let id = match change.event_id() {
                "" => change.sequence(),
                id => id,
            };
            if !state.recent.insert(id, ()) {
                summary.duplicates += 1;
                continue;
            }
            let Some(work) = self.consumer.router.work(&change) else {
                summary.unmatched += 1;
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
        let table = state.tables.get_mut(number);
        let checkpoint = table.filter(|table| table.read != batch.checkpoint.positions);
        let checkpoint = checkpoint.map(|table| {
            table.read = batch.checkpoint.positions.clone();
            batch.checkpoint
        });
        Ok(Batch {
            entries,
            checkpoint,
            is_idle: batch.is_idle,
        })
    }

    async fn turn(&self, number: usize, keys: &Item, tasks: Vec<Task>) -> Result<RunOutcome> {
        let item = (number, keys.clone());
        let mut has_dead_letters = lock(&self.state).dead_letters.contains(&item);
        let table = self.names.get(number).map_or("", |name| name);
        let span = telemetry::turn(&self.consumer.name, table, tasks.len());
        let turn = self.take_turn(table, keys, tasks, &mut has_dead_letters);
        let end = turn.instrument(span).await?;
        let mut state = lock(&self.state);
        if has_dead_letters {
            state.dead_letters.insert(item);
        } else {
            state.dead_letters.remove(&item);
        }
        Ok(end)
    }

    async fn store(&self, checkpoints: &[(usize, TableCheckpoint)]) -> Result<RunOutcome> {
        self.consumer.flush().await;
        for (number, checkpoint) in checkpoints {
            let table = self.names.get(*number).map_or("", |name| name);
            if !self.store_table(*number, table, checkpoint).await? {
                return Ok(RunOutcome::Fenced);
            }
        }
        Ok(RunOutcome::Completed)
    }

    fn stored(&self, load: BacklogSize) {
        let (consumer, summary) = (self.consumer, *lock(self.summary));
        let mut state = lock(&self.state);
        let now = consumer.db.engine().now();
        let seconds = now.since(state.last_report.0).as_secs_f64();
        let waiting = usize::try_from(load.size.records).unwrap_or(usize::MAX);
        let progress = ConsumerProgress {
            summary,
            per_second: if seconds > 0.0 {
                (summary.done() - state.last_report.1) as f64 / seconds
            } else {
                0.0
            },
            lag: if waiting == 0 {
                Duration::ZERO
            } else {
                now.since(state.last_created)
            },
            waiting,
        };
        state.last_report = (now, summary.done());
        drop(state);
        consumer.notify(&ConsumerNotice::Stored(&progress));
    }

    /// Reads the dead letters and the requested replays. Items already known to have dead letters stay in the set;
    /// their turn checks it.
    async fn replays(&self) -> Result<Replays<Self>> {
        let items = self.consumer.dead_letters().items().await?;
        self.dead_letter_count.store(items.count, Ordering::Relaxed);
        let (mut state, mut replays) = (lock(&self.state), Vec::new());
        for (table, keys, replay_requested) in items.items {
            let number = self.names.iter().position(|name| **name == *table);
            // The dead letter belongs to a table that is no longer consumed.
            let Some(number) = number else { continue };
            state.dead_letters.insert((number, keys.clone()));
            if replay_requested {
                replays.push((number, keys, Task::Replay));
            }
        }
        Ok(replays)
    }
}
