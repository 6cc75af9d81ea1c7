//! Which unprocessed keys are retried.

use floe_store::Item;

use super::*;

fn key(n: usize) -> Item {
    Item::new().with("id", n as u64)
}

fn left(keys: std::ops::Range<usize>) -> KeysAndAttributes {
    KeysAndAttributes {
        keys: keys.map(key).collect(),
        consistent: true,
        ..KeysAndAttributes::default()
    }
}

fn output(bytes_read: usize, unprocessed: [(&str, KeysAndAttributes); 2]) -> BatchGetItemOutput {
    let item = Item::new().with("v", "x".repeat(bytes_read));
    BatchGetItemOutput {
        items: [("Read".to_owned(), vec![item])].into(),
        unprocessed: unprocessed
            .map(|(name, left)| (name.to_owned(), left))
            .into(),
        consumed: Vec::new(),
    }
}

#[test]
fn small_batches_are_retried_whole() {
    let mut output = output(1000, [("A", left(0..10)), ("B", left(0..20))]);
    let requests = take_retryable_keys(&mut output).unwrap();
    assert_eq!(requests["A"], left(0..10));
    assert_eq!(requests["B"], left(0..20));
    assert!(output.unprocessed.is_empty());
}

#[test]
fn keys_that_may_not_fit_are_left() {
    let room = 12;
    let read = BATCH_GET_BYTES_MAX - room * ITEM_BYTES_MAX - 1;
    let mut output = output(read, [("A", left(0..10)), ("B", left(0..20))]);
    let requests = take_retryable_keys(&mut output).unwrap();
    assert_eq!(requests["A"], left(0..10));
    assert_eq!(requests["B"], left(0..2));
    assert_eq!(output.unprocessed["B"], left(2..20));
    return_keys(&mut output.unprocessed, requests);
    let mut keys = output.unprocessed["B"].keys.clone();
    keys.sort_by_key(|key| key.get("id").and_then(|id| id.as_n()?.to_u64()));
    assert_eq!(keys, left(0..20).keys);
}

#[test]
fn full_response_is_not_retried() {
    let mut full = output(BATCH_GET_BYTES_MAX, [("A", left(0..10)), ("B", left(0..1))]);
    assert_eq!(take_retryable_keys(&mut full), None);
    assert_eq!(full.unprocessed["A"], left(0..10), "no key is lost");
    let mut done = BatchGetItemOutput::default();
    assert_eq!(take_retryable_keys(&mut done), None);
}
