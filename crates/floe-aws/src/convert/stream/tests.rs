//! Sequence numbers, and the order of shards.

use super::*;

#[test]
fn sequence_numbers_sort_as_text_and_round_trip() {
    let short = "100000000003498069978";
    let long = "4421584500000000017450439091";
    let floe = "000000000000000000042";
    assert!(pad_sequence(short) < pad_sequence(long));
    for number in [short, long, floe] {
        assert_eq!(pad_sequence(number).len(), 40);
        assert_eq!(trim_sequence(&pad_sequence(number)), number);
        assert_eq!(trim_sequence(number), number);
    }
}

fn shard(id: &str, parent: Option<&str>) -> Shard {
    Shard {
        id: id.to_owned(),
        parent_id: parent.map(str::to_owned),
        starting_sequence: String::new(),
        ending_sequence: None,
    }
}

#[track_caller]
fn check(shards: &[(&str, Option<&str>)], expected: &[&str]) {
    let shards = shards.iter().map(|(id, parent)| shard(id, *parent));
    let ordered = parents_first(shards.collect());
    let ids: Vec<&str> = ordered.iter().map(|shard| shard.id.as_str()).collect();
    assert_eq!(ids, expected);
}

#[test]
fn parents_come_before_children() {
    check(&[], &[]);
    check(&[("a", None), ("b", Some("a"))], &["a", "b"]);
    check(
        &[
            ("d", Some("b")),
            ("b", Some("a")),
            ("c", Some("a")),
            ("a", Some("gone")),
        ],
        &["a", "b", "c", "d"],
    );
}

#[test]
fn cyclic_parents_lose_no_shard() {
    check(&[("a", Some("a"))], &["a"]);
    let mut ids: Vec<_> = parents_first(vec![shard("a", Some("b")), shard("b", Some("a"))])
        .into_iter()
        .map(|shard| shard.id)
        .collect();
    ids.sort();
    assert_eq!(ids, ["a", "b"]);
}
