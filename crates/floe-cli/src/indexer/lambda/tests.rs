//! What an event comes to: brought, brought again, and brought as far as it goes.

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

/// A change of a Tip: so many events were appended, up to this version.
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

/// What is in the feed: streams, and the index after their last event.
async fn fed(store: &EventStore) -> Vec<(String, u64)> {
    let index = store.feed_index();
    let log = TableLog::new(store.db().clone(), index.options().clone());
    let mut reader = Reader::new(log, Partition::FIRST, Checkpoint::START);
    let mut fed = Vec::new();
    while let Some(batch) = reader.next().await.unwrap() {
        for span in batch.spans {
            fed.push((span.stream.to_string(), span.end()));
        }
    }
    fed
}

fn spans(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    let spans = expected.iter();
    spans
        .map(|(stream, end)| ((*stream).to_owned(), *end))
        .collect()
}

const NONE_FAILED: &str = r#"{"batchItemFailures":[]}"#;

#[tokio::test]
async fn what_is_sent_again_is_fed_once() {
    let store = store().await;
    let mut intake = store.intake(&IndexerOptions::new()).unwrap();
    let first = event(&[appended(1, "Cart-1", 2, 2), appended(2, "Cart-2", 1, 1)]);
    for _ in 0..2 {
        let answer = handle(&mut intake, &first, OnFailure::Fail).await;
        assert_eq!(answer.unwrap(), NONE_FAILED);
    }
    // Another instance of the function knows nothing of the first.
    let mut other = store.intake(&IndexerOptions::new()).unwrap();
    let both = event(&[appended(2, "Cart-2", 1, 1), appended(3, "Cart-1", 3, 1)]);
    let answer = handle(&mut other, &both, OnFailure::Report).await;
    assert_eq!(answer.unwrap(), NONE_FAILED);
    let expected = spans(&[("Cart-1", 2), ("Cart-2", 1), ("Cart-1", 3)]);
    assert_eq!(fed(&store).await, expected);
    let nothing = handle(&mut other, &event(&[]), OnFailure::Fail).await;
    assert_eq!(nothing.unwrap(), NONE_FAILED);
}

#[tokio::test]
async fn what_comes_before_a_poison_record_gets_into_the_feed() {
    let store = store().await;
    let mut intake = store.intake(&IndexerOptions::new().batch_max(1)).unwrap();
    let poison = appended(3, "Cart-1", 3, 1).replace(r#""p":{"S":"Cart-1"}"#, r#""p":{"N":"7"}"#);
    let event = event(&[
        appended(1, "Cart-1", 1, 1),
        appended(2, "Cart-2", 1, 1),
        poison,
        appended(4, "Cart-3", 1, 1),
    ]);
    let answer = handle(&mut intake, &event, OnFailure::Report).await;
    let expected = r#"{"batchItemFailures":[{"itemIdentifier":"3"}]}"#;
    assert_eq!(answer.unwrap(), expected);
    assert_eq!(fed(&store).await, spans(&[("Cart-1", 1), ("Cart-2", 1)]));
    let message = handle(&mut intake, &event, OnFailure::Fail).await;
    let message = message.unwrap_err();
    let begins =
        "changes could not be brought to the feed, a change of an events table is none of a stream";
    assert!(message.starts_with(begins), "{message}");
    assert!(
        message.ends_with(": from=3 records=2 events=0"),
        "{message}"
    );
    assert_eq!(fed(&store).await.len(), 2);
}

#[tokio::test]
async fn a_gap_is_reported_with_the_batch_that_has_it() {
    let store = store().await;
    let mut intake = store.intake(&IndexerOptions::new().batch_max(2)).unwrap();
    let event = event(&[
        appended(1, "Cart-1", 1, 1),
        appended(2, "Cart-2", 1, 1),
        appended(3, "Cart-3", 1, 1),
        appended(4, "Cart-1", 9, 1),
        appended(5, "Cart-4", 1, 1),
    ]);
    let answer = handle(&mut intake, &event, OnFailure::Report).await;
    let expected = r#"{"batchItemFailures":[{"itemIdentifier":"3"}]}"#;
    assert_eq!(answer.unwrap(), expected);
    assert_eq!(fed(&store).await, spans(&[("Cart-1", 1), ("Cart-2", 1)]));
}

#[tokio::test]
async fn what_cannot_be_read_fails_whatever_the_mapping_is() {
    let store = store().await;
    let mut intake = store.intake(&IndexerOptions::new()).unwrap();
    for on_failure in [OnFailure::Fail, OnFailure::Report] {
        let message = handle(&mut intake, b"{", on_failure).await.unwrap_err();
        assert!(message.starts_with("the event is not JSON: "), "{message}");
    }
}
