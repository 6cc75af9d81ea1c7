//! Passes changes to a router directly: changes read by another service, such as AWS Lambda, or created by a test.

use std::collections::HashMap;
use std::fmt;

use floe_store::{BoxFuture, Item};

use super::change::Change;
use super::handler::Failure;
use super::router::Router;
use super::work::ChangeWork;
use crate::concurrent;
use crate::db::Db;

/// Maximum number of items handled concurrently.
const CONCURRENCY_MAX: usize = 16;

/// The outcome of delivering a batch of changes to a router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchDelivery {
    /// Number of changes completed by all their handlers.
    pub handled: usize,
    /// Number of changes without a handler, or completed before.
    pub skipped: usize,
    /// The failed changes, in the order of the batch.
    pub failures: Vec<FailedRecord>,
}

/// A change that was not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedRecord {
    /// The index of the change in the batch.
    pub index: usize,
    /// The sequence number of the change.
    pub sequence: String,
    /// The id of the change.
    pub event_id: String,
    /// The handlers that did not complete it. Empty if it was not attempted because an earlier change of the item
    /// failed.
    pub handlers: Vec<String>,
    /// The reason.
    pub failure: Failure,
}

impl fmt::Display for FailedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (handlers, sequence) = (self.handlers.join(","), &self.sequence);
        let failure = &self.failure;
        write!(
            f,
            "change failed, {failure}: handlers={handlers} sequence={sequence} event_id={}",
            self.event_id
        )
    }
}

/// Returns the work for a change, if any.
pub(super) type WorkOf<'a> = dyn Fn(&Change) -> Option<ChangeWork> + Send + Sync + 'a;

impl Router {
    /// Passes changes to their handlers: the changes of an item one at a time, several items concurrently. Each
    /// handler is called once; after a failure or a panic, later changes of the same item are not attempted. There is
    /// no time limit.
    ///
    /// Nothing is stored: passing a failed change again calls all its handlers again. A [consumer](super::consumer)
    /// stores its progress.
    ///
    /// ```
    /// use floe::changes::{Change, Inserted, Router};
    /// use floe::{Db, Error, Model};
    /// # use floe_store::op::{ChangeKind, ChangeRecord};
    /// # use floe_store::{Timestamp, table::StreamView};
    ///
    /// #[derive(Model)]
    /// #[model(table = "players")]
    /// struct Player { #[model(key)] name: String, level: u32 }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let ada = Player { name: "ada".to_owned(), level: 1 };
    /// # let record = ChangeRecord {
    /// #     event_id: "1".to_owned(), kind: ChangeKind::Insert, keys: ada.key_of()?.encoded().to_item(),
    /// #     old_image: None, new_image: Some(ada.to_item()?), sequence: "1".to_owned(), size_bytes: 0,
    /// #     view: StreamView::NewAndOldImages, created: Timestamp::default(), identity: None,
    /// # };
    /// let router = Router::new().on_inserted::<Player>(async |inserted: Inserted<Player>| {
    ///     match inserted.value.level {
    ///         0 => Err(floe::changes::Failure::new("level is 0")),
    ///         _ => Ok(()),
    ///     }
    /// });
    /// let delivery = router.deliver(&[Change::new("players", record)]).await;
    /// assert_eq!((delivery.handled, delivery.failures.len()), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn deliver(&self, changes: &[Change]) -> BatchDelivery {
        self.deliver_with(changes, None, &|change| self.work(change))
            .await
    }

    /// Delivers changes with work determined by the caller.
    pub(super) async fn deliver_with(
        &self,
        changes: &[Change],
        db: Option<&Db>,
        work: &WorkOf<'_>,
    ) -> BatchDelivery {
        let mut items: HashMap<(&str, &Item), Vec<(usize, &Change)>> = HashMap::new();
        let mut order = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            let item = (change.table(), change.keys());
            let queue = items.entry(item).or_insert_with(|| {
                order.push(item);
                Vec::new()
            });
            queue.push((index, change));
        }
        let queues = order.iter().filter_map(|item| items.remove(item));
        let queues: Vec<BoxFuture<'_, BatchDelivery>> = queues
            .map(|queue| -> BoxFuture<'_, BatchDelivery> {
                Box::pin(self.deliver_item(queue, db, work))
            })
            .collect();
        let mut delivery = BatchDelivery::default();
        for part in concurrent::run_all(CONCURRENCY_MAX, queues).await {
            delivery.handled += part.handled;
            delivery.skipped += part.skipped;
            delivery.failures.extend(part.failures);
        }
        if let Err(failure) = self.flush(None).await {
            delivery = unflushed(changes, &failure);
        }
        delivery.failures.sort_by_key(|failed| failed.index);
        delivery
    }

    /// Delivers the changes of an item, up to the first failure.
    async fn deliver_item(
        &self,
        queue: Vec<(usize, &Change)>,
        db: Option<&Db>,
        work: &WorkOf<'_>,
    ) -> BatchDelivery {
        let mut delivery = BatchDelivery::default();
        for (index, change) in queue {
            let Some(mut work) = work(change) else {
                delivery.skipped += 1;
                continue;
            };
            if delivery.failures.is_empty() && work.attempt(self, db, None).await {
                delivery.handled += 1;
                continue;
            }
            let pending = if delivery.failures.is_empty() {
                work.pending(self)
            } else {
                Vec::new()
            };
            let failure = pending.first().map(|pending| pending.failure.clone());
            let handlers = pending.into_iter().map(|pending| pending.name).collect();
            let held = || Failure::new("an earlier change of the item failed");
            let failure = failure.unwrap_or_else(held);
            delivery
                .failures
                .push(failed_record(index, change, handlers, failure));
        }
        delivery
    }
}

fn failed_record(
    index: usize,
    change: &Change,
    handlers: Vec<String>,
    failure: Failure,
) -> FailedRecord {
    FailedRecord {
        index,
        sequence: change.sequence().to_owned(),
        event_id: change.event_id().to_owned(),
        handlers,
        failure,
    }
}

/// Which changes a failed sink has stored is unknown, so all of them must be delivered again.
fn unflushed(changes: &[Change], failure: &Failure) -> BatchDelivery {
    let failed = |(index, change)| failed_record(index, change, Vec::new(), failure.clone());
    BatchDelivery {
        failures: changes.iter().enumerate().map(failed).collect(),
        ..BatchDelivery::default()
    }
}
