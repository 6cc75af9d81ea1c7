//! Consumers: members of a group that is told events at least once, and views that must be exact.

use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use floe::events::feed::{Consumer, Delivery, Handled, Partition};
use floe::events::{EventStore, Recorded, StreamName};
use floe_testkit::fault::Faults;
use tokio::task::JoinSet;

use super::careless;
use super::entry::{number_of, tally, view_key};
use super::journal::{Journal, Run};
use super::setting::{self, Files, GROUP, Orders, PARTITIONS, POLL, VIEW, consumer, note, passes};
use crate::Failure;
use crate::args::Args;
use crate::verify::planted::Bug;

/// The role of a member of the group.
pub(crate) const GROUP_ROLE: &str = "feed-group";
/// The role of a view.
pub(crate) const VIEW_ROLE: &str = "feed-view";

/// How many members the group has. Each has partitions of its own: one may run for a group and a partition at a time.
pub(super) const MEMBERS: u64 = 2;
/// How many processes keep the view, and compete for all partitions.
pub(super) const VIEWS: u64 = 2;

/// Every so many calls, a member handles the first of several events only.
const PARTIAL_EVERY: u64 = 13;

/// Runs the role of a member.
pub(crate) fn run_member(args: Args) -> Result<ExitCode, Failure> {
    let is_own = |orders: &Orders, partition: Partition| {
        u64::from(partition.number()) % MEMBERS == orders.number
    };
    run(args, is_own, |orders, store, partition| async move {
        let deliveries = Deliveries::new(&orders.files, partition)?;
        let consumer = consumer(&store, GROUP, partition);
        loop {
            let told = match orders.planted {
                Some(Bug::EarlyCheckpoint) => {
                    careless::deliver(&store, partition, &deliveries).await
                }
                _ => deliver(&consumer, &deliveries).await,
            };
            rest("member", &orders.files, told).await?;
        }
    })
}

/// Runs the role of a view.
pub(crate) fn run_view(args: Args) -> Result<ExitCode, Failure> {
    let is_own = |_: &Orders, _| true;
    run(args, is_own, |orders, store, partition| async move {
        let consumer = consumer(&store, VIEW, partition);
        loop {
            let told = match orders.planted {
                Some(Bug::SplitView) => careless::fold(&store, partition).await,
                _ => consumer.run_exactly_once(fold).await.map(drop),
            };
            rest("view", &orders.files, told).await?;
        }
    })
}

/// Follows all partitions of which this process has to.
fn run<F>(
    mut args: Args,
    is_own: impl Fn(&Orders, Partition) -> bool,
    follow: impl Fn(Orders, EventStore, Partition) -> F,
) -> Result<ExitCode, Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let orders = Orders::take(&mut args)?;
    args.finish("cargo xtask child")?;
    setting::runtime()?.block_on(async {
        let faults = Faults::seeded(orders.seed)
            .throttle(0.005)
            .lost_after(0.005);
        let (db, _) = orders.connect(faults).await?;
        let mut tasks = JoinSet::new();
        let own = PARTITIONS.all().filter(|own| is_own(&orders, *own));
        for partition in own {
            tasks.spawn(follow(orders.clone(), setting::store(&db), partition));
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|error| Failure::broken(error.to_string()))??;
        }
        Ok(ExitCode::SUCCESS)
    })
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
        let what = format!("parked: {} {}", parked.stream, parked.reason);
        drop(note(&deliveries.files, &what));
    }
    Ok(())
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

/// What the group is told of a partition.
pub(super) struct Deliveries {
    files: Files,
    journal: Journal,
    calls: AtomicU64,
}

impl Deliveries {
    pub(super) fn new(files: &Files, partition: Partition) -> Result<Self, Failure> {
        Ok(Self {
            journal: Journal::open(&files.delivered(partition))?,
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
        self.journal.tell(run).map_err(Untold)?;
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
