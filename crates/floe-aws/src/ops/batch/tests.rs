//! What of a batch is asked for again.

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
fn small_batches_are_asked_for_as_a_whole() {
    let mut output = output(1000, [("A", left(0..10)), ("B", left(0..20))]);
    let requests = again(&mut output).unwrap();
    assert_eq!(requests["A"], left(0..10));
    assert_eq!(requests["B"], left(0..20));
    assert!(output.unprocessed.is_empty());
}

#[test]
fn what_might_not_fit_into_one_answer_is_left() {
    let room = 12;
    let read = BATCH_GET_BYTES_MAX - room * ITEM_BYTES_MAX - 1;
    let mut output = output(read, [("A", left(0..10)), ("B", left(0..20))]);
    let requests = again(&mut output).unwrap();
    assert_eq!(requests["A"], left(0..10));
    assert_eq!(requests["B"], left(0..2));
    assert_eq!(output.unprocessed["B"], left(2..20));
    put_back(&mut output.unprocessed, requests);
    let mut keys = output.unprocessed["B"].keys.clone();
    keys.sort_by_key(|key| key.get("id").and_then(|id| id.as_n()?.to_u64()));
    assert_eq!(keys, left(0..20).keys);
}

#[test]
fn a_full_answer_is_an_answer() {
    let mut full = output(BATCH_GET_BYTES_MAX, [("A", left(0..10)), ("B", left(0..1))]);
    assert_eq!(again(&mut full), None);
    assert_eq!(full.unprocessed["A"], left(0..10), "nothing is forgotten");
    let mut done = BatchGetItemOutput::default();
    assert_eq!(again(&mut done), None);
}
