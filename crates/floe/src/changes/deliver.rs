//! Giving changes to a router directly: what somebody else has read, as AWS Lambda does, or what a test makes up.

use std::collections::HashMap;
use std::fmt;

use floe_store::{BoxFuture, Item};

use super::change::Change;
use super::handler::Failure;
use super::router::Router;
use super::work::Work;
use crate::db::Db;
use crate::side_by_side;

/// How many items are handled at once.
const ITEMS_AT_ONCE: usize = 16;

/// What became of changes that were given to a router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// How many changes some handler wanted, and all who wanted them are done with.
    pub handled: usize,
    /// How many changes nobody wanted, or were done with before.
    pub unwanted: usize,
    /// Those that are not done, in the order in which they were given.
    pub failures: Vec<Undelivered>,
}

/// A change that is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undelivered {
    /// Its place among the changes that were given.
    pub place: usize,
    /// Its place in the order of changes of the table.
    pub sequence: String,
    /// The id of the change.
    pub event_id: String,
    /// The handlers that are not done with it. Empty if it was not tried, because an earlier change of the item has
    /// failed.
    pub handlers: Vec<String>,
    /// Why.
    pub failure: Failure,
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (handlers, sequence) = (self.handlers.join(","), &self.sequence);
        let failure = &self.failure;
        write!(
            f,
            "a change is not done, {failure}: handlers={handlers} sequence={sequence} event_id={}",
            self.event_id
        )
    }
}

/// Says what is to be done about a change.
pub(super) type WorkOf<'a> = dyn Fn(&Change) -> Option<Work> + Send + Sync + 'a;

impl Router {
    /// Gives changes to their handlers: the changes of an item one after the other, several items at once. Each handler
    /// is tried once; where one fails or panics, the later changes of the same item are not tried. A handler may take as
    /// long as it does.
    ///
    /// Nothing is remembered: who gives the failed changes again gives them to all their handlers again. A
    /// [consumer](super::consumer) remembers.
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
    ///         0 => Err(floe::changes::Failure::new("no level yet")),
    ///         _ => Ok(()),
    ///     }
    /// });
    /// let delivery = router.deliver(&[Change::new("players", record)]).await;
    /// assert_eq!((delivery.handled, delivery.failures.len()), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn deliver(&self, changes: &[Change]) -> Delivery {
        self.deliver_with(changes, None, &|change| self.work(change))
            .await
    }

    /// The same, where somebody else says what is to be done about a change.
    pub(super) async fn deliver_with(
        &self,
        changes: &[Change],
        db: Option<&Db>,
        work: &WorkOf<'_>,
    ) -> Delivery {
        let mut items: HashMap<(&str, &Item), Vec<(usize, &Change)>> = HashMap::new();
        let mut order = Vec::new();
        for (place, change) in changes.iter().enumerate() {
            let item = (change.table(), change.keys());
            let queue = items.entry(item).or_insert_with(|| {
                order.push(item);
                Vec::new()
            });
            queue.push((place, change));
        }
        let queues = order.iter().filter_map(|item| items.remove(item));
        let queues: Vec<BoxFuture<'_, Delivery>> = queues
            .map(|queue| -> BoxFuture<'_, Delivery> {
                Box::pin(self.deliver_item(queue, db, work))
            })
            .collect();
        let mut delivery = Delivery::default();
        for part in side_by_side::all(ITEMS_AT_ONCE, queues).await {
            delivery.handled += part.handled;
            delivery.unwanted += part.unwanted;
            delivery.failures.extend(part.failures);
        }
        if let Err(failure) = self.flush(None).await {
            delivery = unflushed(changes, &failure);
        }
        delivery.failures.sort_by_key(|failed| failed.place);
        delivery
    }

    /// Delivers the changes of an item, up to the first that fails.
    async fn deliver_item(
        &self,
        queue: Vec<(usize, &Change)>,
        db: Option<&Db>,
        work: &WorkOf<'_>,
    ) -> Delivery {
        let mut delivery = Delivery::default();
        for (place, change) in queue {
            let Some(mut work) = work(change) else {
                delivery.unwanted += 1;
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
            let held = || Failure::new("an earlier change of the item has failed");
            let failure = failure.unwrap_or_else(held);
            delivery
                .failures
                .push(undelivered(place, change, handlers, failure));
        }
        delivery
    }
}

fn undelivered(
    place: usize,
    change: &Change,
    handlers: Vec<String>,
    failure: Failure,
) -> Undelivered {
    Undelivered {
        place,
        sequence: change.sequence().to_owned(),
        event_id: change.event_id().to_owned(),
        handlers,
        failure,
    }
}

/// Nobody knows what of these changes a sink has kept, so all of them are to be given again.
fn unflushed(changes: &[Change], failure: &Failure) -> Delivery {
    let failed = |(place, change)| undelivered(place, change, Vec::new(), failure.clone());
    Delivery {
        failures: changes.iter().enumerate().map(failed).collect(),
        ..Delivery::default()
    }
}
