//! Tests of packing, unpacking and damaged bytes.

use super::*;
use crate::env::{Random, SeededRandom};

fn nested(levels: usize) -> Value {
    (1..levels).fold(Value::from(1), |inner, level| {
        if level % 2 == 0 {
            Value::L(vec![inner])
        } else {
            Value::M(Item::new().with("a", inner))
        }
    })
}

fn one_of_each() -> Item {
    Item::new()
        .with("null", Value::Null)
        .with("no", false)
        .with("yes", true)
        .with("number", 300)
        .with("empty", "")
        .with("short", "abc")
        .with("long", "x".repeat(1000))
        .with("binary", vec![0_u8, 255])
        .with("map", Item::new().with("b", 1).with("a", "2"))
        .with("list", vec![Value::from(1), Value::Null])
        .with(
            "strings",
            Set::new(["".to_owned(), "b".to_owned()]).unwrap(),
        )
        .with("numbers", Set::new((0..20).map(Number::from)).unwrap())
        .with("binaries", Set::new([vec![], vec![0_u8]]).unwrap())
}

fn packed(item: &Item) -> Vec<u8> {
    let mut bytes = Vec::new();
    item.pack_into(&mut bytes);
    bytes
}

/// Records all calls as text.
#[derive(Default)]
struct Recorder(String);

impl ItemVisitor for Recorder {
    fn name(&mut self, name: &str) {
        self.0 += &format!("{name}: ");
    }
    fn scalar(&mut self, scalar: Scalar<'_>) {
        self.0 += &format!("{scalar:?} ");
    }
    fn begin(&mut self, container: Container) {
        self.0 += &format!("{container:?}( ");
    }
    fn element(&mut self, element: Scalar<'_>) {
        self.0 += &format!("<{element:?}> ");
    }
    fn end(&mut self, container: Container) {
        self.0 += &format!("){container:?} ");
    }
}

fn visited(item: &Item) -> String {
    let mut recorder = Recorder::default();
    item.visit(&mut recorder);
    recorder.0
}

#[test]
fn packed_and_unpacked_items_are_visited_alike() {
    for item in [
        Item::new(),
        one_of_each(),
        Item::new().with("deep", nested(32)),
    ] {
        let mut bytes = Vec::new();
        item.pack_into(&mut bytes);
        let packed = Item::from_packed(&bytes).unwrap();
        assert_eq!(visited(&packed), visited(&item));
    }
    let item = Item::new()
        .with("a", vec![Value::from("x"), Value::Null])
        .with("b", Set::new([Number::from(1), Number::from(2)]).unwrap());
    assert_eq!(
        visited(&item),
        "a: L( S(\"x\") Null )L b: Ns( <N(Number(1))> <N(Number(2))> )Ns "
    );
}

#[test]
fn items_round_trip_through_packed_bytes() {
    for item in [
        Item::new(),
        one_of_each(),
        Item::new().with("d", nested(32)),
        (0..200).map(|n| (format!("{n:03}"), n)).collect(),
    ] {
        let bytes = packed(&item);
        let back = Item::from_packed(&bytes).unwrap();
        assert_eq!(back.len(), item.len());
        assert_eq!(packed(&back), bytes);
        assert_eq!(back, Item::from_packed(&bytes).unwrap());
        assert_eq!(back, item);
        assert_eq!(packed(&back), bytes);
    }
}

#[test]
fn changing_a_packed_item_does_not_affect_its_clones() {
    let item = Item::from_packed(&packed(&one_of_each())).unwrap();
    let mut changed = item.clone();
    assert_eq!(changed.insert("short", 1), Some(Value::from("abc")));
    assert_eq!(changed.remove("no"), Some(Value::from(false)));
    *changed.get_mut("yes").unwrap() = Value::Null;
    assert_eq!(item, one_of_each());
    let expected: Item = one_of_each()
        .into_iter()
        .filter(|(name, _)| name != "no")
        .map(|(name, value)| match name.as_str() {
            "short" => (name, Value::from(1)),
            "yes" => (name, Value::Null),
            _ => (name, value),
        })
        .collect();
    assert_eq!(changed, expected);
    // One item is shared, the other is not.
    let copy = item.clone();
    assert!(item.into_iter().eq(one_of_each()));
    assert!(copy.into_iter().eq(one_of_each()));
}

#[test]
fn pick_decodes_single_attributes() {
    let (item, all) = (one_of_each(), one_of_each());
    let item = Item::from_packed(&packed(&item)).unwrap();
    for (name, value) in all.iter() {
        assert_eq!(item.pick([name]).get(name), Some(value));
    }
    for absent in ["", "b", "list2", "zzz"] {
        assert!(item.pick([&Name::from(absent)]).is_empty(), "{absent}");
    }
}

#[test]
fn nesting_beyond_the_limit_is_rejected() {
    let bytes = packed(&Item::new().with("d", nested(33)));
    assert_eq!(Item::from_packed(&bytes), None);
    let bottomless = [&[1, 1, b'd'][..], &[LIST | 1 << 4; 100_000]].concat();
    assert_eq!(Item::from_packed(&bottomless), None);
}

#[test]
fn truncated_and_extended_bytes_are_rejected() {
    let bytes = packed(&one_of_each());
    for length in 0..bytes.len() {
        assert_eq!(Item::from_packed(&bytes[..length]), None, "length={length}");
    }
    assert_eq!(Item::from_packed(&[&bytes[..], &[0]].concat()), None);
}

#[test]
fn noncanonical_bytes_are_rejected() {
    for (fault, bytes) in [
        ("unordered names", &[2, 1, b'b', NULL, 1, b'a', NULL][..]),
        ("duplicate name", &[2, 1, b'a', NULL, 1, b'a', NULL]),
        ("name is not UTF-8", &[1, 1, 0xff, NULL]),
        ("string is not UTF-8", &[1, 1, b'a', STRING | 1 << 4, 0xff]),
        ("empty set", &[1, 1, b'a', BINARY_SET]),
        (
            "duplicate element",
            &[1, 1, b'a', STRING_SET | 2 << 4, 1, b'x', 1, b'x'],
        ),
        (
            "unordered elements",
            &[1, 1, b'a', BINARY_SET | 2 << 4, 1, b'y', 1, b'x'],
        ),
        ("length in the long form", &[1, 0x81, 0, b'a', NULL]),
        ("unknown type", &[1, 1, b'a', 11]),
    ] {
        assert_eq!(Item::from_packed(bytes), None, "{fault}");
    }
}

#[test]
fn damaged_bytes_are_rejected_or_decode_to_another_item() {
    let random = SeededRandom::new(1);
    let (bytes, item) = (packed(&one_of_each()), one_of_each());
    for _ in 0..20_000 {
        let mut changed = bytes.clone();
        let at = random.below(bytes.len() as u64) as usize;
        changed[at] ^= 1 << random.below(8);
        if let Some(other) = Item::from_packed(&changed) {
            assert_ne!(other, item);
            // Decodable bytes are canonical: they are written back unchanged.
            assert_eq!(packed(&other.into_iter().collect()), changed);
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    let random = SeededRandom::new(2);
    for _ in 0..20_000 {
        let length = random.below(64);
        let bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        if let Some(item) = Item::from_packed(&bytes) {
            assert_eq!(packed(&item.into_iter().collect()), bytes);
        }
    }
}

#[test]
fn changing_packed_and_unpacked_items_gives_equal_results() {
    use crate::value::item::AttributeChange;
    use std::borrow::Cow;

    // Few attributes, more than the recorded offsets, and enough that their count takes two bytes.
    for count in [0, 1, 5, 16, 17, 40, 127, 128] {
        let item: Item = (0..count)
            .map(|n| (format!("{n:03}"), vec![Value::from(n); n as usize % 20]))
            .collect();
        let whole = Item::from_packed(&packed(&item)).unwrap();
        let tail = [Value::from("tail")];
        let names = ["000", "003", "0035", "016", "126", "z"].map(Name::from);
        let mut expected = item.clone();
        expected.insert("000", 1);
        expected.remove("003");
        expected.insert("0035", "new");
        for name in ["016", "126"] {
            if let Some(Value::L(list)) = expected.get_mut(name) {
                list.push("tail".into());
            }
        }
        expected.insert("z", Value::Null);
        let exists = |name: &Name| item.contains(name);
        let changes: Vec<_> = names
            .iter()
            .zip([
                AttributeChange::Set(Cow::Owned(Value::from(1))),
                AttributeChange::Remove,
                AttributeChange::Set(Cow::Owned(Value::from("new"))),
                AttributeChange::Append(&tail),
                AttributeChange::Append(&tail),
                AttributeChange::Set(Cow::Owned(Value::Null)),
            ])
            .filter(|(name, change)| !matches!(change, AttributeChange::Append(_)) || exists(name))
            .collect();
        let changed = whole.changed(&changes).unwrap();
        assert_eq!(packed(&changed), packed(&expected), "{count}");
        // The recorded offsets are correct.
        for (name, value) in expected.iter() {
            assert_eq!(changed.get(name), Some(value), "{count} {name}");
        }
        assert_eq!(changed.get("zz"), None);
        assert_eq!(whole, item);
    }
}

#[test]
fn stats_of_a_packed_item_match_the_unpacked_item() {
    use crate::value::size::value_size;

    let open = one_of_each().with("", Item::new().with("long".repeat(9), nested(5)));
    let whole = Item::from_packed(&packed(&open)).unwrap();
    let stats = whole.stats().unwrap();
    let sizes = open
        .iter()
        .map(|(name, value)| name.len() + value_size(value));
    let depth = open.iter().map(|(_, value)| value.depth()).max();
    assert_eq!(stats.bytes, sizes.sum::<usize>());
    assert_eq!(Some(stats.levels), depth);
    assert!(stats.has_empty_name);
    assert_eq!(stats.name_bytes_max, 36);
    assert_eq!(open.stats(), None);
}
