//! Batches that are processed in part.

use std::collections::BTreeMap;

use floe_store::expr::{Path, Paths};
use floe_store::op::*;
use floe_store::{Engine, Error};
use floe_testkit::fault::{FaultKind, Faults};

use super::fixture::{TABLE, assert_near, count, current_item, engine, key, put, thing};

#[tokio::test]
async fn batch_write_is_processed_in_part() {
    let engine = engine(Faults::seeded(1).partial_batches(0.5)).await;
    let mut partial = 0;
    for round in 0..1000_u64 {
        let size = 2 + round % 9;
        let places: Vec<u64> = (0..size).map(|n| round * 10 + n).collect();
        let requests = BTreeMap::from([(
            TABLE.to_owned(),
            places
                .iter()
                .map(|&p| BatchWrite::Put(thing(p, p)))
                .collect::<Vec<_>>(),
        )]);
        let batch = BatchWriteItem {
            requests: requests.clone(),
            ..BatchWriteItem::new()
        };
        let output = engine.batch_write_item(batch).await.unwrap();
        let left = output.unprocessed.get(TABLE).cloned().unwrap_or_default();
        assert_eq!(output.unprocessed.contains_key(TABLE), !left.is_empty());
        assert!(left.len() < places.len(), "at least one write is processed");
        partial += usize::from(!left.is_empty());
        let mut found = Vec::new();
        for &place in &places {
            let is_left = left.contains(&BatchWrite::Put(thing(place, place)));
            assert_eq!(current_item(&engine, key(place)).await.is_none(), is_left);
            found.extend(is_left.then_some(BatchWrite::Put(thing(place, place))));
        }
        assert_eq!(
            left, found,
            "unprocessed writes are unique and in the order of the request"
        );
    }
    assert_near(partial, 0.5, 1000);
    assert_eq!(count(&engine, FaultKind::PartialBatch), partial);
}

#[tokio::test]
async fn batch_get_is_processed_in_part() {
    let engine = engine(Faults::seeded(2).partial_batches(1.0)).await;
    for place in 0..20 {
        put(&*engine, thing(place, place).with("more", 1))
            .await
            .unwrap();
    }
    let projection = Some(Paths(vec![
        Path::attribute("place"),
        Path::attribute("note"),
    ]));
    let mut halves = 0;
    for round in 0..200 {
        let request = KeysAndAttributes {
            keys: (0..2 + round % 15).map(key).collect(),
            projection: projection.clone(),
            consistent: round % 2 == 0,
        };
        let input = BatchGetItem {
            requests: BTreeMap::from([(TABLE.to_owned(), request.clone())]),
            ..BatchGetItem::new()
        };
        let output = engine.batch_get_item(input).await.unwrap();
        let items = &output.items[TABLE];
        let left = &output.unprocessed[TABLE];
        assert_eq!(
            (&left.projection, left.consistent),
            (&projection, request.consistent)
        );
        assert!(!items.is_empty() && !left.keys.is_empty());
        halves += usize::from(left.keys.len() > 1 && items.len() > 1);
        for key in &request.keys {
            let place = key.get("place");
            let is_found = items
                .iter()
                .any(|item| item.get("place") == place && item.len() == 2);
            assert_ne!(
                is_found,
                left.keys.contains(key),
                "each key is processed or unprocessed, not both"
            );
        }
        assert_eq!(items.len() + left.keys.len(), request.keys.len());
    }
    assert!(halves > 100);
}

#[tokio::test]
async fn retried_batch_is_completed() {
    let engine = engine(Faults::seeded(3).partial_batches(0.9)).await;
    let mut batch = BatchWriteItem::new();
    for place in 0..25 {
        batch = batch.put(TABLE, thing(place, place));
    }
    let mut rounds = 0;
    while !batch.requests.is_empty() {
        let output = engine.batch_write_item(batch).await.unwrap();
        batch = BatchWriteItem {
            requests: output.unprocessed,
            ..BatchWriteItem::new()
        };
        rounds += 1;
    }
    assert!((2..50).contains(&rounds), "rounds={rounds}");
    let all = engine.inner().scan(Scan::new(TABLE)).await.unwrap();
    assert_eq!(all.count, 25);
}

#[tokio::test]
async fn batch_of_one_is_never_partial() {
    let engine = engine(Faults::seeded(4).partial_batches(1.0)).await;
    let output = engine
        .batch_write_item(BatchWriteItem::new().put(TABLE, thing(1, 1)))
        .await;
    assert_eq!(output.unwrap().unprocessed, BTreeMap::new());
}

#[tokio::test]
async fn invalid_batch_is_rejected_as_a_whole() {
    let engine = engine(Faults::seeded(5).partial_batches(1.0)).await;
    for _ in 0..20 {
        // The same key twice, which only the table's key schema reveals.
        let twice = BatchWriteItem::new()
            .put(TABLE, thing(1, 1))
            .put(TABLE, thing(1, 2));
        let response = engine.batch_write_item(twice).await;
        assert!(
            matches!(response, Err(Error::Validation(_))),
            "{response:?}"
        );
    }
}
