//! The stored form of documents, round trips, and rejected values.

use std::collections::BTreeMap;
use std::fmt;

use floe_store::env::{Random, SeededRandom};
use floe_store::{Item, Set, Text};
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::*;

/// Bytes that serialize as bytes.
#[derive(Clone, Debug, PartialEq)]
struct Raw(Vec<u8>);

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Raw, E> {
                Ok(Raw(bytes.to_vec()))
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Wrapper(Option<u8>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Suit {
    Hearts,
    Spades,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Node {
    Unit,
    Flag(bool),
    Signed(i128),
    Unsigned(u64),
    Float(f64),
    Single(f32),
    Text(String),
    Letter(char),
    Bytes(Raw),
    Optional(Option<i16>),
    Wrapped(Wrapper),
    List(Vec<Node>),
    Gaps(Vec<Option<u8>>),
    Pair(Box<Node>, Option<u16>),
    Names(BTreeMap<String, Option<Node>>),
    Numbers(BTreeMap<i64, Node>),
    Suits(BTreeMap<Suit, bool>),
    Record {
        name: String,
        next: Option<Box<Node>>,
        wrapped: Wrapper,
        nothing: (),
    },
}

/// Random values from a seed.
struct Made(SeededRandom);

impl Made {
    fn below(&self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn flag(&self) -> bool {
        self.below(2) == 0
    }

    fn text(&self) -> String {
        let letters = ['a', '"', '\\', '\0', 'é', '\u{1F600}', '.', '7'];
        let count = self.below(5);
        (0..count)
            .map(|_| letters[self.below(8) as usize])
            .collect()
    }

    /// A whole number of up to 38 digits.
    fn wide(&self) -> i128 {
        let random = u128::from(self.0.next_u64()) << 64 | u128::from(self.0.next_u64());
        let whole = (random % 10_u128.pow(1 + self.below(38) as u32)) as i128;
        if self.flag() { whole } else { -whole }
    }

    /// A float within the range of the store.
    fn float(&self) -> f64 {
        let any = f64::from_bits(self.0.next_u64());
        if any == 0.0 || (1e-130..9e125).contains(&any.abs()) {
            any + 0.0
        } else {
            0.1
        }
    }

    fn single(&self) -> f32 {
        let any = f32::from_bits(self.0.next_u64() as u32);
        if any.is_finite() { any + 0.0 } else { 0.1 }
    }

    fn optional<T>(&self, value: T) -> Option<T> {
        self.flag().then_some(value)
    }

    fn node(&self, depth: usize) -> Node {
        let choices = if depth == 0 { 12 } else { 18 };
        let inner = || self.node(depth - 1);
        match self.below(choices) {
            0 => Node::Unit,
            1 => Node::Flag(self.flag()),
            2 => Node::Signed(self.wide()),
            3 => Node::Unsigned(self.0.next_u64()),
            4 => Node::Float(self.float()),
            5 => Node::Single(self.single()),
            6 => Node::Text(self.text()),
            7 => Node::Letter(self.text().chars().next().unwrap_or('x')),
            8 => Node::Bytes(Raw(self.text().into_bytes())),
            9 => Node::Optional(self.optional(self.0.next_u64() as i16)),
            10 => Node::Wrapped(Wrapper(self.optional(3))),
            11 => Node::Gaps(
                (0..self.below(4))
                    .map(|at| self.optional(at as u8))
                    .collect(),
            ),
            12 => Node::List((0..self.below(4)).map(|_| inner()).collect()),
            13 => Node::Pair(Box::new(inner()), self.optional(7)),
            14 => {
                let entries = (0..self.below(4))
                    .map(|_| (format!("n{}", self.text()), self.optional(inner())));
                Node::Names(entries.collect())
            }
            15 => {
                let entries = (0..self.below(4)).map(|_| (self.0.next_u64() as i64, inner()));
                Node::Numbers(entries.collect())
            }
            16 => Node::Suits([(Suit::Spades, true), (Suit::Hearts, self.flag())].into()),
            _ => Node::Record {
                name: self.text(),
                next: self.optional(Box::new(inner())),
                wrapped: Wrapper(self.optional(0)),
                nothing: (),
            },
        }
    }

    /// A value that JSON can represent.
    fn value(&self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => Value::Bool(self.flag()),
            2 => {
                let exponent = self.below(130) as i64 - 90;
                let digits = self.wide();
                Value::N(
                    format!("{digits}e{exponent}")
                        .parse()
                        .unwrap_or(Number::ZERO),
                )
            }
            3 => Value::from(self.text()),
            4 => Value::L((0..self.below(4)).map(|_| self.value(depth - 1)).collect()),
            _ => {
                let entries = (0..self.below(4)).map(|_| (self.text(), self.value(depth - 1)));
                Value::M(entries.collect())
            }
        }
    }
}

fn stored<T: Serialize + ?Sized>(value: &T) -> Value {
    to_value(value).unwrap().expect("the attribute is present")
}

fn list<const LEN: usize>(values: [Value; LEN]) -> Value {
    Value::L(Vec::from(values))
}

fn map<V: Into<Value>, const LEN: usize>(entries: [(&str, V); LEN]) -> Value {
    Value::M(Item::from(entries))
}

#[test]
fn random_values_round_trip() {
    for seed in 0..3000 {
        let node = Made(SeededRandom::new(seed)).node(6);
        let value = to_value(&node).unwrap();
        let read: Node = from_value(value.as_ref()).unwrap();
        assert_eq!(read, node, "seed={seed} value={value:?}");
    }
}

#[test]
fn random_values_round_trip_through_json_text() {
    for seed in 0..3000 {
        let value = Made(SeededRandom::new(seed)).value(5);
        let text = to_json_text(&value).unwrap();
        assert!(!text.contains('\0'), "seed={seed} text={text}");
        assert_eq!(
            from_json_text(&text),
            Some(value),
            "seed={seed} text={text}"
        );
    }
}

#[test]
fn json_text_equals_that_of_serde_json() {
    for seed in 0..3000 {
        let value = Made(SeededRandom::new(seed)).value(5);
        // Numbers are compared elsewhere: serde_json rounds and writes them with exponents.
        let Ok(json) = Json::from_value(Some(&value)) else {
            continue;
        };
        let read: Json = serde_json::from_str(&to_json_text(&value).unwrap()).unwrap();
        assert_eq!(without_numbers(read), without_numbers(json), "seed={seed}");
    }
}

fn without_numbers(json: Json) -> Json {
    match json {
        Json::Number(_) => Json::Null,
        Json::Array(list) => list.into_iter().map(without_numbers).collect(),
        Json::Object(map) => {
            let entries = map.into_iter();
            entries
                .map(|(name, json)| (name, without_numbers(json)))
                .collect()
        }
        other => other,
    }
}

#[test]
fn none_is_absent_in_structs_and_null_in_containers() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Gaps {
        missing: Option<u8>,
        boxed: Box<Option<u8>>,
        wrapped: Wrapper,
        list: Vec<Option<u8>>,
        names: BTreeMap<String, Option<u8>>,
    }
    let gaps = Gaps {
        missing: None,
        boxed: Box::new(None),
        wrapped: Wrapper(None),
        list: vec![None, Some(1)],
        names: [("a".to_owned(), None)].into(),
    };
    let value = stored(&gaps);
    let expected = map([
        ("wrapped", Value::Null),
        ("list", list([Value::Null, Value::from(1)])),
        ("names", map([("a", Value::Null)])),
    ]);
    assert_eq!(value, expected);
    assert_eq!(from_value::<Gaps>(Some(&value)), Ok(gaps));
}

#[test]
fn top_level_none_is_an_absent_attribute() {
    assert_eq!(to_value(&None::<u8>), Ok(None));
    let lost = to_value(&Some(None::<u8>)).unwrap_err().to_string();
    assert!(lost.contains("read back as `None`"), "{lost}");
    assert_eq!(from_value::<Option<u8>>(None), Ok(None));
    assert_eq!(from_value::<Option<u8>>(Some(&Value::Null)), Ok(None));
    assert_eq!(from_value::<Wrapper>(None), Ok(Wrapper(None)));
    let missing = from_value::<u8>(None).unwrap_err();
    assert_eq!(missing.to_string(), "the attribute is missing");
    assert!(from_value::<Vec<u8>>(None).is_err());
}

#[test]
fn numbers_keep_all_their_digits() {
    let number = |text: &str| Value::N(text.parse().unwrap());
    let digits = 10_i128.pow(38) - 1;
    assert_eq!(stored(&digits), number(&digits.to_string()));
    assert_eq!(stored(&-digits), number(&(-digits).to_string()));
    assert_eq!(stored(&u64::MAX), number("18446744073709551615"));
    assert_eq!(stored(&((1_u64 << 53) + 1)), number("9007199254740993"));
    assert_eq!(stored(&0.1_f32), number("0.1"));
    assert_eq!(stored(&0.1_f64), number("0.1"));
    let round = 3 * 10_u128.pow(38);
    assert_eq!(from_value::<u128>(Some(&stored(&round))), Ok(round));
    assert_eq!(from_value::<f32>(Some(&stored(&0.1_f32))), Ok(0.1));
    assert_eq!(from_value::<f64>(Some(&Value::from(3))), Ok(3.0));
}

#[test]
fn unstorable_numbers_are_rejected() {
    assert!(to_value(&i128::MAX).is_err());
    assert!(to_value(&u128::MAX).is_err());
    for float in [f64::NAN, f64::INFINITY, f64::MAX, 1e-200] {
        assert!(to_value(&float).is_err(), "{float}");
    }
    let invalid = to_value(&[1.0, f32::NAN]).unwrap_err();
    assert_eq!(
        (invalid.path(), invalid.reason()),
        ("[1]", "the number cannot be stored: value=NaN")
    );
}

#[test]
fn out_of_range_numbers_are_rejected() {
    let number = |text: &str| Value::N(text.parse().unwrap());
    assert!(from_value::<u8>(Some(&number("256"))).is_err());
    assert!(from_value::<u8>(Some(&number("-1"))).is_err());
    assert!(from_value::<i64>(Some(&number("1.5"))).is_err());
    assert!(from_value::<i64>(Some(&number("18446744073709551616"))).is_err());
    assert!(from_value::<i128>(Some(&number("1e39"))).is_err());
    assert!(from_value::<f32>(Some(&number("1e39"))).is_err());
    // Types that accept any number never receive a rounded one.
    let long = number("0.12345678901234567890123");
    assert!(from_value::<Json>(Some(&long)).is_err());
    assert!(Json::from_value(Some(&long)).is_err());
    assert_eq!(from_value::<f64>(Some(&long)), Ok(0.123_456_789_012_345_68));
}

#[test]
fn enums_are_stored_as_in_json() {
    assert_eq!(stored(&Node::Unit), Value::from("Unit"));
    assert_eq!(stored(&Node::Flag(true)), map([("Flag", true)]));
    assert_eq!(
        stored(&Node::Optional(None)),
        map([("Optional", Value::Null)])
    );
    let pair = Node::Pair(Box::new(Node::Unit), None);
    let content = list([Value::from("Unit"), Value::Null]);
    assert_eq!(stored(&pair), map([("Pair", content)]));
    let read = |value: Value| from_value::<Node>(Some(&value));
    assert_eq!(read(map([("Unit", Value::Null)])), Ok(Node::Unit));
    assert!(read(Value::from("Flag")).is_err());
    assert!(read(Value::from("Nothing")).is_err());
    assert!(read(map([("Flag", true), ("Unit", true)])).is_err());
    assert!(read(Value::M(Item::new())).is_err());
    assert!(read(Value::from(1)).is_err());
}

#[test]
fn other_enum_taggings_round_trip() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(tag = "kind")]
    enum Tagged {
        Circle { radius: f64, label: Option<String> },
    }
    let circle = Tagged::Circle {
        radius: 2.0,
        label: None,
    };
    let value = stored(&circle);
    assert_eq!(
        value,
        map([("kind", Value::from("Circle")), ("radius", Value::from(2))])
    );
    assert_eq!(from_value(Some(&value)), Ok(circle));

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(untagged)]
    enum Either {
        Number(i64),
        Bytes(Raw),
        Text(String),
    }
    let either = [
        Either::Number(-5),
        Either::Bytes(Raw(vec![7])),
        Either::Text("x".into()),
    ];
    let value = stored(&either);
    assert_eq!(
        value,
        list([Value::from(-5), Value::B(vec![7]), Value::from("x")])
    );
    assert_eq!(from_value(Some(&value)), Ok(either));

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Open {
        own: Option<u8>,
        #[serde(flatten)]
        rest: BTreeMap<String, bool>,
    }
    let open = Open {
        own: None,
        rest: [("a".to_owned(), true)].into(),
    };
    assert_eq!(from_value::<Open>(Some(&stored(&open))), Ok(open));
}

#[test]
fn sets_are_read_as_sequences() {
    let texts = Value::Ss(Set::new(["b", "a"].map(Text::from)).unwrap());
    assert_eq!(
        from_value(Some(&texts)),
        Ok(vec!["a".to_owned(), "b".to_owned()])
    );
    let numbers = Value::Ns(Set::new([2, 1].map(Number::from)).unwrap());
    assert_eq!(from_value(Some(&numbers)), Ok(vec![1, 2]));
    assert_eq!(from_value(Some(&numbers)), Ok((1, 2)));
    let bytes = Value::Bs(Set::new([vec![1]]).unwrap());
    assert_eq!(from_value(Some(&bytes)), Ok(vec![Raw(vec![1])]));
    let invalid = from_value::<Vec<u8>>(Some(&texts)).unwrap_err();
    assert_eq!(invalid.path(), "[0]");
}

#[test]
fn map_keys_are_text() {
    assert_eq!(stored(&BTreeMap::from([(-7, 1)])), map([("-7", 1)]));
    assert_eq!(stored(&BTreeMap::from([(true, 1)])), map([("true", 1)]));
    assert_eq!(stored(&BTreeMap::from([('x', 1)])), map([("x", 1)]));
    let keys = map([("1", 1), ("2", 2)]);
    assert_eq!(
        from_value(Some(&keys)),
        Ok(BTreeMap::from([(1_u8, 1), (2, 2)]))
    );
    let invalid = from_value::<BTreeMap<u8, u8>>(Some(&map([("300", 1)]))).unwrap_err();
    assert_eq!(invalid.path(), ".300");
    for refused in [
        to_value(&BTreeMap::from([((1, 2), 1)])),
        to_value(&BTreeMap::from([((), 1)])),
        to_value(&BTreeMap::from([(None::<u8>, 1)])),
        to_value(&BTreeMap::from([(vec![1], 1)])),
    ] {
        assert!(refused.is_err());
    }
}

#[test]
fn map_keys_with_equal_text_are_rejected() {
    #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
    enum Alike {
        #[serde(rename = "a")]
        One,
        #[serde(rename = "a")]
        Two,
    }
    let invalid = to_value(&BTreeMap::from([(Alike::One, 1), (Alike::Two, 2)])).unwrap_err();
    assert_eq!(
        invalid.to_string(),
        "two entries of the map have the same name: at=.a"
    );
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    lines: Vec<Line>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    sku: String,
    price: f64,
}

#[test]
fn errors_contain_the_path() {
    let line = Line {
        sku: "x".into(),
        price: f64::NAN,
    };
    let invalid = to_value(&Order { lines: vec![line] }).unwrap_err();
    assert_eq!(invalid.path(), ".lines[0].price");
    let read = |line: Value| {
        let order = map([("lines", list([line]))]);
        from_value::<Order>(Some(&order)).unwrap_err().to_string()
    };
    assert_eq!(
        read(map([
            ("sku", Value::from("x")),
            ("price", Value::from("7"))
        ])),
        "the stored value has another type: expected=f64 actual=text: at=.lines[0].price"
    );
    assert_eq!(
        read(map([("sku", "x")])),
        "the attribute is missing: at=.lines[0].price"
    );
    let circle = Node::Record {
        name: String::new(),
        next: Some(Box::new(Node::Float(f64::NAN))),
        wrapped: Wrapper(None),
        nothing: (),
    };
    assert_eq!(to_value(&circle).unwrap_err().path(), ".Record.next.Float");
    let pair = Node::Pair(Box::new(Node::Float(f64::NAN)), None);
    assert_eq!(to_value(&pair).unwrap_err().path(), ".Pair[0].Float");
}

#[test]
fn errors_do_not_contain_stored_values() {
    let invalid = from_value::<u8>(Some(&Value::from("secret"))).unwrap_err();
    assert_eq!(
        invalid.reason(),
        "the stored value has another type: expected=u8 actual=text"
    );
    let invalid = from_value::<char>(Some(&Value::from("secret"))).unwrap_err();
    assert!(!invalid.reason().contains("secret"), "{invalid}");
}

#[test]
fn text_and_bytes_are_distinct() {
    let bytes = Value::B(b"text".to_vec());
    assert_eq!(
        from_value::<String>(Some(&bytes)).unwrap_err().reason(),
        "the stored value has another type: expected=a string actual=bytes"
    );
    assert!(from_value::<Raw>(Some(&Value::from("text"))).is_err());
    // Visitors of the standard library would also read bytes from text.
    assert!(from_value::<std::ffi::CString>(Some(&Value::from("text"))).is_err());
}

#[test]
fn lists_longer_than_the_type_are_rejected() {
    let three = list([1, 2, 3].map(Value::from));
    let invalid = from_value::<(u8, u8)>(Some(&three)).unwrap_err();
    assert_eq!(
        invalid.reason(),
        "the stored list is too long: expected=2 actual=3"
    );
    assert!(from_value::<(u8, u8, u8, u8)>(Some(&three)).is_err());
}

/// Nested lists with this number of levels.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Nested(Vec<Nested>);

fn nested(levels: usize) -> (Nested, Value) {
    (1..levels).fold((Nested(vec![]), Value::L(vec![])), |(nested, value), _| {
        (Nested(vec![nested]), list([value]))
    })
}

#[test]
fn nesting_depth_is_limited_as_in_the_store() {
    let (deepest, value) = nested(NESTING_LEVELS_MAX);
    assert_eq!(to_value(&deepest), Ok(Some(value.clone())));
    assert_eq!(from_value(Some(&value)), Ok(deepest));
    let text = to_json_text(&value).unwrap();
    assert_eq!(from_json_text(&text).as_ref(), Some(&value));
    let json = Json::from_value(Some(&value)).unwrap();
    assert_eq!(json.to_value(), Ok(Some(value)));

    let (too_deep, value) = nested(NESTING_LEVELS_MAX + 1);
    let invalid = to_value(&too_deep).unwrap_err();
    assert_eq!(
        invalid.reason(),
        "the value is nested too deeply: levels_max=32"
    );
    assert_eq!(invalid.path().len(), "[0]".len() * NESTING_LEVELS_MAX);
    assert!(from_value::<Nested>(Some(&value)).is_err());
    assert!(to_json_text(&value).is_err());
    assert_eq!(from_json_text(&format!("[{text}]")), None);
    assert!(Json::from_value(Some(&value)).is_err());
    assert!(Json::Array(vec![json]).to_value().is_err());
}

#[test]
fn enum_variant_is_one_nesting_level() {
    let record = |node| Node::Record {
        name: String::new(),
        next: Some(Box::new(node)),
        wrapped: Wrapper(None),
        nothing: (),
    };
    let wraps: [&dyn Fn(Node) -> Node; 3] = [
        &|node| Node::List(vec![node]),
        &|node| Node::Pair(Box::new(node), None),
        &record,
    ];
    for wrap in wraps {
        let within = |inner, count| (0..count).fold(inner, |node, _| wrap(node));
        assert_eq!(stored(&within(Node::Unit, 15)).depth(), 31);
        assert_eq!(stored(&within(Node::Flag(true), 15)).depth(), 32);
        assert!(to_value(&within(Node::Gaps(vec![None]), 15)).is_err());
        assert!(to_value(&within(Node::Unit, 16)).is_err());
    }
}

#[test]
fn json_documents_round_trip() {
    let json = serde_json::json!({
        "null": null, "flag": true, "text": "é", "list": [1, -2, 0.5, 1e100, u64::MAX], "map": {"a": {}},
    });
    let value = json.to_value().unwrap();
    assert_eq!(Json::from_value(value.as_ref()), Ok(json.clone()));
    assert_eq!(value, to_value(&json).unwrap());
    assert_eq!(from_value::<Json>(value.as_ref()), Ok(json));
    assert_eq!(Json::Null.to_value(), Ok(Some(Value::Null)));
    assert_eq!(Json::from_value(Some(&Value::Null)), Ok(Json::Null));
    assert!(Json::from_value(None).is_err());
}

#[test]
fn json_floats_round_trip_exactly() {
    let made = Made(SeededRandom::new(1));
    for _ in 0..3000 {
        let json = Json::from(made.float());
        let value = json.to_value().unwrap();
        let read = Json::from_value(value.as_ref()).unwrap();
        assert_eq!(read.as_f64(), json.as_f64());
    }
}

#[test]
fn json_documents_reject_bytes_and_sets() {
    let refused = |value: Value| {
        let document = map([("a", list([value]))]);
        Json::from_value(Some(&document)).unwrap_err().to_string()
    };
    let reason = "the stored attribute has another type: expected=JSON";
    assert_eq!(
        refused(Value::B(vec![1])),
        format!("{reason} actual=B: at=.a[0]")
    );
    let set = Set::new(["x"].map(Text::from)).unwrap();
    assert_eq!(
        refused(Value::Ss(set)),
        format!("{reason} actual=SS: at=.a[0]")
    );
    let json: Json = serde_json::json!({"a": [1e200]});
    assert_eq!(json.to_value().unwrap_err().path(), ".a[0]");
}

#[test]
fn json_text_is_compact_and_sorted() {
    let value = map([
        (
            "b",
            list([
                Value::N("1e21".parse().unwrap()),
                Value::N("-15e-8".parse().unwrap()),
            ]),
        ),
        ("a", Value::from("q\"\0")),
        ("", Value::Null),
    ]);
    assert_eq!(
        to_json_text(&value).unwrap(),
        r#"{"":null,"a":"q\"\u0000","b":[1000000000000000000000,-0.00000015]}"#
    );
}

#[test]
fn json_text_rejects_bytes_and_sets() {
    let invalid = to_json_text(&list([Value::B(vec![])])).unwrap_err();
    assert_eq!(
        invalid.to_string(),
        "bytes and sets cannot be in a key: type=B: at=[0]"
    );
    let set = Set::new([Number::from(1)]).unwrap();
    assert_eq!(to_json_text(&map([("a", set)])).unwrap_err().path(), ".a");
}

#[test]
fn json_text_is_parsed_exactly() {
    let digits = "12345678901234567890123456789012345678";
    let number = |text: &str| Some(Value::N(text.parse().unwrap()));
    assert_eq!(from_json_text(digits), number(digits));
    assert_eq!(from_json_text(" -0.5E+1 "), number("-5"));
    assert_eq!(from_json_text("0"), number("0"));
    assert_eq!(from_json_text("-0"), number("0"));
    assert_eq!(
        from_json_text(r#""\"\\\u00e9""#),
        Some(Value::from("\"\\é"))
    );
    let document = map([(
        "a",
        list([Value::Null, Value::Bool(true), Value::Bool(false)]),
    )]);
    assert_eq!(
        from_json_text("{ \"a\" : [ null ,\ttrue,\nfalse ] }\r"),
        Some(document)
    );
}

#[test]
fn invalid_json_and_unstorable_values_are_rejected() {
    let refused = [
        "",
        " ",
        "x",
        "nul",
        "truefalse",
        "1 2",
        "+1",
        "01",
        "-",
        ".5",
        "1.",
        "1e",
        "1e+",
        "--1",
        "NaN",
        "-x",
        "\"",
        "\"\\\"",
        "\"\0\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "{}}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "{\"a\":1,\"a\":2}",
        "{\"a\" 1}",
        "é",
        "123456789012345678901234567890123456789",
        "1e126",
        "1e-131",
        "1e99999999999999999999",
    ];
    for text in refused {
        assert_eq!(from_json_text(text), None, "{text:?}");
    }
    assert_eq!(from_json_text(&"[".repeat(100_000)), None);
}
