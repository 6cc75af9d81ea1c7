//! Consumers: members of a group that receives events at least once, and views that must be exact.

use std::future::pending;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use floe::events::feed::{FeedConsumer, ParkedStream, Partition, ViewTransaction, WorkerNotice};
use floe::events::{EventStore, Recorded};
use floe_testkit::fault::Faults;
use tokio::task::JoinSet;

use super::config::{
    self, EVENTS_MAX, Files, GROUP, PARTITIONS, POLL, ProcessArgs, VIEW, consumer, is_transient,
    note,
};
use super::deliveries::{Deliveries, numbers};
use super::entry::{tally, view_key};
use super::flawed;
use crate::Failure;
use crate::checks::join_all;
use crate::checks::planted::Bug;
use crate::checks::role::Role;

/// The role of a member of the group.
pub(crate) const GROUP_ROLE: &str = "feed-group";
/// The role of a view.
pub(crate) const VIEW_ROLE: &str = "feed-view";

/// Number of workers of the group. They share the partitions by leases.
pub(super) const MEMBERS: u64 = 3;
/// Number of processes that maintain the view and compete for all partitions.
pub(super) const VIEWS: u64 = 2;

/// The lease duration, after which the partitions of a killed member are reassigned.
const LEASE: Duration = Duration::from_secs(1);

/// The arguments of a group member.
#[derive(Debug, Args)]
pub(in crate::checks) struct GroupMemberRole {
    #[command(flatten)]
    args: ProcessArgs,
}

impl Role for GroupMemberRole {
    const NAME: &str = GROUP_ROLE;

    fn run(self) -> Result<ExitCode, Failure> {
        run(self.args, async |args, store| match args.planted {
            Some(Bug::EarlyCheckpoint) => {
                let is_own =
                    |partition: &Partition| u64::from(partition.number()) % MEMBERS == args.number;
                let own = PARTITIONS.all().filter(is_own);
                for_each_partition(&args, &store, own, |args, store, partition| async move {
                    let deliveries = Deliveries::new(&args.files, [partition])?;
                    loop {
                        let result = flawed::deliver(&store, partition, &deliveries).await;
                        record_and_pause("member", &args.files, result).await?;
                    }
                })
                .await
            }
            _ => work(&args, &store).await,
        })
    }
}

/// Processes the partitions for which this member holds a lease.
async fn work(args: &ProcessArgs, store: &EventStore) -> Result<(), Failure> {
    let deliveries = &Deliveries::new(&args.files, PARTITIONS.all())?;
    let files = args.files.clone();
    let group = store.consumers(GROUP).events_max(EVENTS_MAX).poll(POLL);
    let group = group.lease(LEASE).on_notice(move |notice| {
        if let WorkerNotice::Parked(_, parked) = notice {
            drop(note_parked(&files, parked));
        }
    });
    loop {
        let handler =
            |stream, events: Vec<Recorded>| async move { deliveries.record(&stream, &events) };
        let result = group.run(pending(), handler).await.map(drop);
        record_and_pause("member", &args.files, result).await?;
    }
}

/// The arguments of a process that maintains the view.
#[derive(Debug, Args)]
pub(in crate::checks) struct ViewRole {
    #[command(flatten)]
    args: ProcessArgs,
}

impl Role for ViewRole {
    const NAME: &str = VIEW_ROLE;

    fn run(self) -> Result<ExitCode, Failure> {
        run(self.args, async |args, store| {
            for_each_partition(
                &args,
                &store,
                PARTITIONS.all(),
                |args, store, partition| async move {
                    let consumer = consumer(&store, VIEW, partition);
                    loop {
                        let result = match args.planted {
                            Some(Bug::SplitView) => flawed::update_view(&store, partition).await,
                            _ => consumer.run_exactly_once(update_view).await.map(drop),
                        };
                        record_and_pause("view", &args.files, result).await?;
                    }
                },
            )
            .await
        })
    }
}

/// Runs a consumer process on the store of the server.
fn run(
    args: ProcessArgs,
    consume: impl AsyncFnOnce(ProcessArgs, EventStore) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    config::runtime()?.block_on(async {
        let faults = Faults::seeded(args.seed).throttle(0.005).lost_after(0.005);
        let (db, _) = args.connect(faults).await?;
        consume(args, config::store(&db)).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Processes each partition in its own task.
async fn for_each_partition<F>(
    args: &ProcessArgs,
    store: &EventStore,
    partitions: impl Iterator<Item = Partition>,
    process: impl Fn(ProcessArgs, EventStore, Partition) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for partition in partitions {
        tasks.spawn(process(args.clone(), store.clone(), partition));
    }
    join_all(tasks).await
}

/// Records an unexpected error, and pauses.
async fn record_and_pause(
    role: &str,
    files: &Files,
    result: floe::Result<()>,
) -> Result<(), Failure> {
    match result {
        Err(error) if !is_transient(&error) => note(files, &format!("{role}: {error}"))?,
        _ => {}
    }
    tokio::time::sleep(POLL).await;
    Ok(())
}

/// Delivers all remaining events to the group.
pub(super) async fn deliver(consumer: &FeedConsumer, deliveries: &Deliveries) -> floe::Result<()> {
    let consumed = consumer
        .run_until_caught_up(|stream, events| async move { deliveries.record(&stream, &events) });
    for parked in consumed.await?.parked {
        drop(note_parked(deliveries.files(), &parked));
    }
    Ok(())
}

/// Records a parked stream as an error: no handler fails, so none may be parked.
fn note_parked(files: &Files, parked: &ParkedStream) -> Result<(), Failure> {
    note(
        files,
        &format!("parked: {} {}", parked.stream, parked.reason),
    )
}

/// Updates the view with events, in the transaction that also stores the checkpoint.
pub(super) async fn update_view(delivery: ViewTransaction<'_>) -> floe::Result<()> {
    let ViewTransaction {
        tx, stream, events, ..
    } = delivery;
    tally(tx, view_key(stream), &numbers(stream, events)).await
}
