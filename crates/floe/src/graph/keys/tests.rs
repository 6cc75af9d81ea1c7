//! Tests for key texts, with unusual parts.

use floe_store::env::{Random, SeededRandom};

use super::*;
use crate::error::ErrorKind;

#[test]
fn parts_without_delimiters_are_stored_unchanged() {
    let scoped_key = ScopedKey::new("shop", EntityKey::new("author", "ann")).unwrap();
    assert_eq!(scoped_key.type_key(), "shop:author");
    assert_eq!(scoped_key.text(), "shop:author:ann");
    let key = predicate_key("wrote", 7, &EntityKey::new("article", "a-1")).unwrap();
    assert_eq!(key, "wrote:0000000000000007:article:a-1");
}

#[test]
fn different_keys_have_different_texts() {
    let letters = [':', '\\', 'a', 'ß', '\u{0}', '𝄞'];
    let random = SeededRandom::new(7);
    let part = || -> String {
        let length = 1 + random.below(4);
        (0..length)
            .map(|_| letters[random.below(letters.len() as u64) as usize])
            .collect()
    };
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..20_000 {
        let parts = vec![part(), part(), part()];
        let text = join(parts.iter().map(String::as_str));
        assert_eq!(split(&text), parts, "{text}");
        let known = seen.entry(text).or_insert_with(|| parts.clone());
        assert_eq!(*known, parts);
    }
    let _ = random.next_u64();
}

#[test]
fn prefix_of_a_predicate_excludes_other_predicates() {
    let likes = predicate_key("likes", 1, &EntityKey::new("a", "b")).unwrap();
    let escaped = predicate_key("like:s", 1, &EntityKey::new("a", "b")).unwrap();
    let like = predicate_key("like", 1, &EntityKey::new("a", "b")).unwrap();
    let prefix = predicate_prefix("like");
    assert!(like.starts_with(&prefix));
    assert!(!likes.starts_with(&prefix));
    assert!(!escaped.starts_with(&prefix), "{escaped}");
}

#[test]
fn edge_indexes_sort_numerically() {
    let at = |index| predicate_key("p", index, &EntityKey::new("a", "b")).unwrap();
    assert!(at(2) < at(10));
    assert!(at(999_999) < at(1_000_000));
}

#[test]
fn empty_parts_are_rejected() {
    for (scope, type_name, id, part) in [
        ("", "t", "i", "scope"),
        ("s", "", "i", "type"),
        ("s", "t", "", "id"),
    ] {
        let error = ScopedKey::new(scope, EntityKey::new(type_name, id)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField);
        assert_eq!(error.field(), Some(part), "{error}");
    }
    let error = IndexKey::text("").check("by_name").unwrap_err();
    assert_eq!(
        error.to_string(),
        "a part of the key is empty: model=graph field=by_name"
    );
}

#[test]
fn keys_beyond_store_limits_are_rejected() {
    // `_id` alone may have 2048 bytes, but `scope:type:id` may not have more.
    assert!(ScopedKey::new("s", EntityKey::new("t", "i".repeat(2044))).is_ok());
    let error = ScopedKey::new("s", EntityKey::new("t", "i".repeat(2045))).unwrap_err();
    assert_eq!(error.field(), Some("_subject_key"), "{error}");
    // An escaped delimiter takes two bytes, a non-ASCII letter its UTF-8 length.
    assert!(ScopedKey::new("s", EntityKey::new("t", ":".repeat(1022))).is_ok());
    assert!(ScopedKey::new("s", EntityKey::new("t", ":".repeat(1023))).is_err());
    assert!(ScopedKey::new("s", EntityKey::new("t", "ß".repeat(1022))).is_ok());
    assert!(ScopedKey::new("s", EntityKey::new("t", "ß".repeat(1023))).is_err());
    let error = ScopedKey::new("s", EntityKey::new("t".repeat(1023), "i")).unwrap_err();
    assert_eq!(error.field(), Some("_scope_type_key"), "{error}");
    assert!(IndexKey::text("k".repeat(1022)).check("n").is_ok());
    assert!(IndexKey::text("k".repeat(1023)).check("n").is_err());
    let id = "i".repeat(1024 - "p:0000000000000001:t:".len());
    assert!(predicate_key("p", 1, &EntityKey::new("t", id.as_str())).is_ok());
    assert!(predicate_key("p", 1, &EntityKey::new("t", format!("{id}i"))).is_err());
}

#[test]
fn number_keys_sort_numerically() {
    let numbers: [i64; 9] = [i64::MIN, -1000, -10, -2, 0, 2, 10, 1000, i64::MAX];
    let keys: Vec<_> = numbers.iter().map(ToIndexKey::to_index_key).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    let fractions: Vec<IndexKey> = ["-1.5", "-0.25", "0", "0.25", "1.5", "1e100"]
        .iter()
        .map(|text| IndexKey::number(text.parse::<Number>().unwrap()))
        .collect();
    assert!(fractions.is_sorted(), "{fractions:?}");
}
