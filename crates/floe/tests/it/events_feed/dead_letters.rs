//! Dead letters of the feed are items of their own: any number, with both kinds of delivery, and converted from older
//! checkpoints.

use floe::events::feed::{FeedConsumer, FeedSummary, Handled, Partition, ViewTransaction};
use floe::events::{Access, Decider, EventStore, EventStoreOptions, Recorded, StreamName};
use floe::{Error, Event, Result};
use floe_store::op::GetItem;
use floe_store::size::item_size;
use floe_store::{Item, Value};

use super::{append, count_events, expected_rows, index, name, store, view_rows};

/// More than fit into one transaction, and more than the checkpoint item could hold in earlier versions.
const STREAMS: usize = 600;

const CHECKPOINT: &str = "$ReaderCheckpoint-mail_0";

async fn handle_none(_: StreamName, _: Vec<Recorded>) -> Result<Handled, &'static str> {
    Err("poison")
}

async fn handle_all(_: StreamName, _: Vec<Recorded>) -> Result<Handled, &'static str> {
    Ok(Handled::All)
}

/// A store with events of many streams, and a consumer with one attempt.
async fn store_and_consumer() -> (EventStore, FeedConsumer) {
    let store = store().await;
    for id in 0..STREAMS {
        append(&store, &format!("Cart-{id}"), 1).await;
    }
    index(&store).await;
    let consumer = FeedConsumer::new(store.clone(), "mail", Partition::FIRST).attempts_max(1);
    (store, consumer)
}

async fn checkpoint_bytes(store: &EventStore) -> usize {
    let key = Item::new()
        .with("p", CHECKPOINT)
        .with("i", Value::from(2_147_483_647));
    let get = GetItem::new("shop-index", key);
    let item = store.db().engine().get_item(get).await.unwrap().item;
    item_size(&item.unwrap())
}

/// The numbers of handled events and of added dead letters.
fn counts(summary: &FeedSummary) -> (u64, usize) {
    (summary.events, summary.parked.len())
}

#[tokio::test]
async fn checkpoint_stays_small_with_many_dead_letters() {
    let (store, consumer) = store_and_consumer().await;
    let run = consumer.run_until_caught_up(handle_none).await.unwrap();
    assert_eq!(counts(&run), (0, STREAMS));
    assert_eq!(consumer.parked().await.unwrap().len(), STREAMS);
    assert_eq!(consumer.lag().await.unwrap().parked, STREAMS as u64);
    let bytes = checkpoint_bytes(&store).await;
    assert!(bytes < 1_000, "bytes={bytes}");

    // Later events of the streams extend their dead letters and are not handled.
    append(&store, "Cart-7", 2).await;
    index(&store).await;
    let run = consumer.run_until_caught_up(handle_all).await.unwrap();
    assert_eq!(counts(&run), (0, 0));
    let parked = consumer.parked().await.unwrap();
    let extended = parked.iter().find(|parked| parked.stream == name("Cart-7"));
    let extended = extended.unwrap();
    assert_eq!((extended.index, extended.end), (0, 3));
    assert_eq!(extended.reason, "poison");

    let retried = consumer.retry_parked(handle_all).await.unwrap();
    assert_eq!(counts(&retried), (STREAMS as u64 + 2, 0));
    assert_eq!(consumer.parked().await.unwrap(), []);
}

#[tokio::test]
async fn view_contains_events_of_many_dead_letters_after_a_retry() {
    let (store, view) = store_and_consumer().await;
    let fails = async |delivery: ViewTransaction<'_>| {
        count_events(delivery).await?;
        Err(floe_store::Error::validation("poison").into())
    };
    let run = view.run_exactly_once(fails).await.unwrap();
    assert_eq!(counts(&run), (0, STREAMS));
    assert_eq!(view_rows(&store).await.len(), 0);
    let retried = view.retry_parked_exactly_once(count_events).await.unwrap();
    assert_eq!(counts(&retried), (STREAMS as u64, 0));
    assert_eq!(view.parked().await.unwrap(), []);
    assert_eq!(view_rows(&store).await, expected_rows(&store).await);
}

/// The stored state of a consumer, as text.
#[derive(Clone)]
struct StoredState(String);

impl Event for StoredState {
    fn event_type(&self) -> &'static str {
        "Checkpointed"
    }

    fn encode(&self) -> Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }

    fn decode(_: &str, data: &[u8]) -> Result<Option<Self>> {
        Ok(Some(Self(String::from_utf8_lossy(data).into_owned())))
    }
}

enum CheckpointStream {}

impl Decider for CheckpointStream {
    const CATEGORY: &'static str = "$ReaderCheckpoint";
    type Id = (String, u32);
    type Event = StoredState;
    type State = String;

    fn initial() -> String {
        String::new()
    }

    fn evolve(_: String, event: &StoredState) -> String {
        event.0.clone()
    }

    fn access() -> Access<Self> {
        Access::RollingState {
            to_snapshot: |state| StoredState(state.clone()),
        }
    }
}

/// Earlier versions stored dead letters with the checkpoint.
#[tokio::test]
async fn dead_letters_in_older_checkpoints_become_items() {
    let (store, consumer) = store_and_consumer().await;
    let parked: Vec<_> = (0..STREAMS / 2)
        .map(|id| format!(r#""Cart-{id}":{{"end":1,"index":0,"reason":"old"}}"#))
        .collect();
    let state = format!(
        r#"{{"checkpoint":0,"index":0,"lease":0,"parked":{{{}}},"spans":0,"term":3}}"#,
        parked.join(",")
    );
    let index = store.db().event_store(EventStoreOptions::new("shop-index"));
    let checkpoint = index.stream::<CheckpointStream>(&("mail".to_owned(), 0));
    let decide = |_: &String| Ok::<_, Error>([StoredState(state.clone())]);
    checkpoint.transact(decide).await.unwrap();

    assert_eq!(consumer.parked().await.unwrap().len(), STREAMS / 2);
    let bytes = checkpoint_bytes(&store).await;
    assert!(bytes < 1_000, "bytes={bytes}");
    let run = consumer.run_until_caught_up(handle_all).await.unwrap();
    assert_eq!(counts(&run), ((STREAMS / 2) as u64, 0));
    let retried = consumer.retry_parked(handle_all).await.unwrap();
    assert_eq!(counts(&retried), ((STREAMS / 2) as u64, 0));
}
