//! Events of Lambda: delivered once, delivered again, and partly failed.

use std::sync::Arc;

use floe::Db;
use floe::events::feed::{Checkpoint, IndexerOptions, Partition, Reader, TableLog};
use floe::events::{EventStore, EventStoreOptions};
use floe_local::LocalEngine;

use super::*;

async fn store() -> EventStore {
    let engine = Arc::new(LocalEngine::memory().unwrap());
    let store = Db::with_engine(engine).event_store(EventStoreOptions::new("shop"));
    store.ensure_feed().await.unwrap();
    store
}

/// A change record of a Tip: `count` events were appended, up to `version`.
fn appended(sequence: u32, stream: &str, version: u64, count: u64) -> String {
    let types = vec![r#"{"S":"Added"}"#; count as usize].join(",");
    format!(
        r#"{{"eventID":"{sequence}","eventName":"MODIFY","eventSource":"aws:dynamodb","dynamodb":{{
            "ApproximateCreationDateTime":1479499740,"Keys":{{"p":{{"S":"{stream}"}},"i":{{"N":"2147483647"}}}},
            "NewImage":{{"p":{{"S":"{stream}"}},"i":{{"N":"2147483647"}},"n":{{"N":"{version}"}},
                "a":{{"N":"{count}"}},"c":{{"L":[{types}]}}}},
            "SequenceNumber":"{sequence}","SizeBytes":1,"StreamViewType":"NEW_IMAGE"}}}}"#
    )
}

fn event(records: &[String]) -> Vec<u8> {
    format!(r#"{{"Records":[{}]}}"#, records.join(",")).into_bytes()
}

/// The spans in the feed: the stream, and the index after the last event.
async fn feed_spans(store: &EventStore) -> Vec<(String, u64)> {
    let index = store.feed_index();
    let log = TableLog::new(store.db().clone(), index.options().clone());
    let mut reader = Reader::new(log, Partition::FIRST, Checkpoint::START);
    let mut found = Vec::new();
    while let Some(batch) = reader.next().await.unwrap() {
        for span in batch.spans {
            found.push((span.stream.to_string(), span.end()));
        }
    }
    found
}

fn spans(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    let spans = expected.iter();
    spans
        .map(|(stream, end)| ((*stream).to_owned(), *end))
        .collect()
}

const NONE_FAILED: &str = r#"{"batchItemFailures":[]}"#;

#[tokio::test]
async fn redelivered_changes_enter_the_feed_once() {
    let store = store().await;
    let mut ingester = store.change_ingester(&IndexerOptions::new()).unwrap();
    let first = event(&[appended(1, "Cart-1", 2, 2), appended(2, "Cart-2", 1, 1)]);
    for _ in 0..2 {
        let response = handle(&mut ingester, &first, OnFailure::Fail).await;
        assert_eq!(response.unwrap(), NONE_FAILED);
    }
    // Another instance of the function has no state of the first.
    let mut other = store.change_ingester(&IndexerOptions::new()).unwrap();
    let both = event(&[appended(2, "Cart-2", 1, 1), appended(3, "Cart-1", 3, 1)]);
    let response = handle(&mut other, &both, OnFailure::Report).await;
    assert_eq!(response.unwrap(), NONE_FAILED);
    let expected = spans(&[("Cart-1", 2), ("Cart-2", 1), ("Cart-1", 3)]);
    assert_eq!(feed_spans(&store).await, expected);
    let nothing = handle(&mut other, &event(&[]), OnFailure::Fail).await;
    assert_eq!(nothing.unwrap(), NONE_FAILED);
}

#[tokio::test]
async fn changes_before_a_poison_record_enter_the_feed() {
    let store = store().await;
    let mut ingester = store
        .change_ingester(&IndexerOptions::new().batch_max(1))
        .unwrap();
    let poison = appended(3, "Cart-1", 3, 1).replace(r#""p":{"S":"Cart-1"}"#, r#""p":{"N":"7"}"#);
    let event = event(&[
        appended(1, "Cart-1", 1, 1),
        appended(2, "Cart-2", 1, 1),
        poison,
        appended(4, "Cart-3", 1, 1),
    ]);
    let response = handle(&mut ingester, &event, OnFailure::Report).await;
    let expected = r#"{"batchItemFailures":[{"itemIdentifier":"3"}]}"#;
    assert_eq!(response.unwrap(), expected);
    assert_eq!(
        feed_spans(&store).await,
        spans(&[("Cart-1", 1), ("Cart-2", 1)])
    );
    let message = handle(&mut ingester, &event, OnFailure::Fail).await;
    let message = message.unwrap_err();
    let begins = "changes could not be added to the feed, invalid change record of an events table";
    assert!(message.starts_with(begins), "{message}");
    assert!(
        message.ends_with(": from=3 records=2 events=0"),
        "{message}"
    );
    assert_eq!(feed_spans(&store).await.len(), 2);
}

#[tokio::test]
async fn gap_fails_the_batch_that_contains_it() {
    let store = store().await;
    let mut ingester = store
        .change_ingester(&IndexerOptions::new().batch_max(2))
        .unwrap();
    let event = event(&[
        appended(1, "Cart-1", 1, 1),
        appended(2, "Cart-2", 1, 1),
        appended(3, "Cart-3", 1, 1),
        appended(4, "Cart-1", 9, 1),
        appended(5, "Cart-4", 1, 1),
    ]);
    let response = handle(&mut ingester, &event, OnFailure::Report).await;
    let expected = r#"{"batchItemFailures":[{"itemIdentifier":"3"}]}"#;
    assert_eq!(response.unwrap(), expected);
    assert_eq!(
        feed_spans(&store).await,
        spans(&[("Cart-1", 1), ("Cart-2", 1)])
    );
}

#[tokio::test]
async fn malformed_event_fails_in_both_modes() {
    let store = store().await;
    let mut ingester = store.change_ingester(&IndexerOptions::new()).unwrap();
    for on_failure in [OnFailure::Fail, OnFailure::Report] {
        let message = handle(&mut ingester, b"{", on_failure).await.unwrap_err();
        assert!(message.starts_with("the event is not JSON: "), "{message}");
    }
}
