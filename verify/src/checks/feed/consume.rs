//! Consumers: members of a group that is told events at least once, and views that must be exact.

use std::future::pending;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use floe::events::feed::{Consumer, Delivery, Notice, Parked, Partition};
use floe::events::{EventStore, Recorded};
use floe_testkit::fault::Faults;
use tokio::task::JoinSet;

use super::careless;
use super::deliveries::{Deliveries, numbers};
use super::entry::{tally, view_key};
use super::setting::{
    self, EVENTS_MAX, Files, GROUP, Orders, PARTITIONS, POLL, VIEW, consumer, note, passes,
};
use crate::Failure;
use crate::checks::join_all;
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
    join_all(tasks).await
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
        drop(note_parked(deliveries.files(), &parked));
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
