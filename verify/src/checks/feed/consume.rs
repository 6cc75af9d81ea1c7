//! Consumers: members of a group that is told events at least once, and views that must be exact.

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use floe::events::feed::{Consumer, Delivery, Handled, Notice, Parked, Partition};
use floe::events::{EventStore, Recorded, StreamName};
use floe_testkit::fault::Faults;
use tokio::task::JoinSet;

use super::careless;
use super::entry::{number_of, tally, view_key};
use super::journal::{Journal, Run};
use super::setting::{
    self, EVENTS_MAX, Files, GROUP, Orders, PARTITIONS, POLL, VIEW, consumer, note, passes,
};
use crate::Failure;
use crate::checks::planted::Bug;
use crate::checks::role::Role;

/// The role of a member of the group.
pub(crate) const GROUP_ROLE: &str = "feed-group";
/// The role of a view.
pub(crate) const VIEW_ROLE: &str = "feed-view";

/// How many workers the group has. They share the partitions by leases.
pub(super) const MEMBERS: u64 = 3;
/// How many processes keep the view, and compete for all partitions.
pub(super) const VIEWS: u64 = 2;

/// Every so many calls, a member handles the first of several events only.
const PARTIAL_EVERY: u64 = 13;

/// How long it takes until what a killed member held is given to others.
const LEASE: Duration = Duration::from_secs(1);

/// What a member of the group is told.
#[derive(Debug, Args)]
pub(in crate::checks) struct Member {
    #[command(flatten)]
    orders: Orders,
}

impl Role for Member {
    const NAME: &str = GROUP_ROLE;

    fn run(self) -> Result<ExitCode, Failure> {
        run(self.orders, async |orders, store| match orders.planted {
            Some(Bug::EarlyCheckpoint) => {
                let is_own = |partition: &Partition| {
                    u64::from(partition.number()) % MEMBERS == orders.number
                };
                let own = PARTITIONS.all().filter(is_own);
                on_each(
                    &orders,
                    &store,
                    own,
                    |orders, store, partition| async move {
                        let deliveries = Deliveries::new(&orders.files, [partition])?;
                        loop {
                            let told = careless::deliver(&store, partition, &deliveries).await;
                            rest("member", &orders.files, told).await?;
                        }
                    },
                )
                .await
            }
            _ => work(&orders, &store).await,
        })
    }
}

/// Works for the group on the partitions that it gets a lease on.
async fn work(orders: &Orders, store: &EventStore) -> Result<(), Failure> {
    let deliveries = &Deliveries::new(&orders.files, PARTITIONS.all())?;
    let files = orders.files.clone();
    let group = store.consumers(GROUP).events_max(EVENTS_MAX).poll(POLL);
    let group = group.lease(LEASE).on_notice(move |notice| {
        if let Notice::Parked(_, parked) = notice {
            drop(note_parked(&files, parked));
        }
    });
    loop {
        let handler =
            |stream, events: Vec<Recorded>| async move { deliveries.take(&stream, &events) };
        let told = group.run(pending(), handler).await.map(drop);
        rest("member", &orders.files, told).await?;
    }
}

/// What the process is told that keeps a view.
#[derive(Debug, Args)]
pub(in crate::checks) struct View {
    #[command(flatten)]
    orders: Orders,
}

impl Role for View {
    const NAME: &str = VIEW_ROLE;

    fn run(self) -> Result<ExitCode, Failure> {
        run(self.orders, async |orders, store| {
            on_each(
                &orders,
                &store,
                PARTITIONS.all(),
                |orders, store, partition| async move {
                    let consumer = consumer(&store, VIEW, partition);
                    loop {
                        let told = match orders.planted {
                            Some(Bug::SplitView) => careless::fold(&store, partition).await,
                            _ => consumer.run_exactly_once(fold).await.map(drop),
                        };
                        rest("view", &orders.files, told).await?;
                    }
                },
            )
            .await
        })
    }
}

/// Runs a process that consumes, with the store that the server serves.
fn run(
    orders: Orders,
    consume: impl AsyncFnOnce(Orders, EventStore) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    setting::runtime()?.block_on(async {
        let faults = Faults::seeded(orders.seed)
            .throttle(0.005)
            .lost_after(0.005);
        let (db, _) = orders.connect(faults).await?;
        consume(orders, setting::store(&db)).await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Follows each of these partitions in a task of its own.
async fn on_each<F>(
    orders: &Orders,
    store: &EventStore,
    partitions: impl Iterator<Item = Partition>,
    follow: impl Fn(Orders, EventStore, Partition) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for partition in partitions {
        tasks.spawn(follow(orders.clone(), store.clone(), partition));
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| Failure::broken(error.to_string()))??;
    }
    Ok(())
}

/// Waits before the next look, and takes note of what must not be.
async fn rest(who: &str, files: &Files, told: floe::Result<()>) -> Result<(), Failure> {
    match told {
        Err(error) if !passes(&error) => note(files, &format!("{who}: {error}"))?,
        _ => {}
    }
    tokio::time::sleep(POLL).await;
    Ok(())
}

/// Tells the group all that there is.
pub(super) async fn deliver(consumer: &Consumer, deliveries: &Deliveries) -> floe::Result<()> {
    let consumed = consumer
        .run_until_caught_up(|stream, events| async move { deliveries.take(&stream, &events) });
    for parked in consumed.await?.parked {
        drop(note_parked(&deliveries.files, &parked));
    }
    Ok(())
}

/// No handler fails, so nothing is to be parked.
fn note_parked(files: &Files, parked: &Parked) -> Result<(), Failure> {
    note(
        files,
        &format!("parked: {} {}", parked.stream, parked.reason),
    )
}

/// What the view does with events, in the transaction that also stores how far it is.
pub(super) async fn fold(delivery: Delivery<'_>) -> floe::Result<()> {
    let Delivery {
        tx, stream, events, ..
    } = delivery;
    tally(tx, view_key(stream), &numbers(stream, events)).await
}

/// The numbers of events. What cannot be read is found when the streams are looked over.
pub(super) fn numbers(stream: &StreamName, events: &[Recorded]) -> Vec<u64> {
    let numbers = events.iter().map(|event| number_of(stream, event));
    numbers.map(Result::unwrap_or_default).collect()
}

/// What the group is told of some partitions.
pub(super) struct Deliveries {
    files: Files,
    journals: BTreeMap<Partition, Journal>,
    calls: AtomicU64,
}

impl Deliveries {
    pub(super) fn new(
        files: &Files,
        partitions: impl IntoIterator<Item = Partition>,
    ) -> Result<Self, Failure> {
        let mut journals = BTreeMap::new();
        for partition in partitions {
            journals.insert(partition, Journal::open(&files.delivered(partition))?);
        }
        Ok(Self {
            journals,
            files: files.clone(),
            calls: AtomicU64::new(0),
        })
    }

    /// Handles events: writes down that they came.
    pub(super) fn take(&self, stream: &StreamName, events: &[Recorded]) -> Result<Handled, Untold> {
        let is_partial = self
            .calls
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(PARTIAL_EVERY);
        let (events, handled) = match events {
            [first, _, ..] if is_partial => {
                (std::slice::from_ref(first), Handled::UpTo(first.index + 1))
            }
            all => (all, Handled::All),
        };
        let run = Run {
            stream: stream.to_string(),
            start: events.first().map_or(0, |first| first.index),
            numbers: numbers(stream, events),
        };
        let journal = self.journals.get(&PARTITIONS.of(stream));
        let journal = journal.ok_or_else(|| std::io::Error::other("no partition of this one"));
        journal
            .and_then(|journal| journal.tell(run))
            .map_err(Untold)?;
        Ok(handled)
    }
}

/// A delivery could not be written down.
#[derive(Debug)]
pub(super) struct Untold(std::io::Error);

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a delivery could not be written down: {}", self.0)
    }
}
