//! The one form of every type in the store.

use std::fmt;

use super::*;
use crate::attribute::document::Json as Document;

/// Writes a value in this form and no other, and reads it back.
fn check<T: Attribute + PartialEq + fmt::Debug>(value: T, stored: impl Into<Value>) {
    let stored = stored.into();
    assert_eq!(value.to_value(), Ok(Some(stored.clone())));
    assert_eq!(T::from_value(Some(&stored)), Ok(value));
}

fn read_error<T: Attribute + fmt::Debug>(stored: impl Into<Value>) -> String {
    T::from_value(Some(&stored.into())).unwrap_err().to_string()
}

fn number(text: &str) -> Number {
    text.parse().unwrap()
}

fn texts<const LEN: usize>(texts: [&str; LEN]) -> Value {
    Value::Ss(Set::new(texts.map(Text::from)).unwrap())
}

#[test]
fn every_scalar_has_one_form() {
    check("é".to_owned(), "é");
    check(Text::from("é"), "é");
    check(true, true);
    check(number("1.5"), number("1.5"));
    check(Bytes(vec![0, 255]), vec![0, 255]);
    check(Timestamp::from_millis(7), 7);
    let text = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    check(Uuid::try_parse(text).unwrap(), text);
}

#[test]
fn integers_are_exact_up_to_their_bounds() {
    check(i8::MIN, -128);
    check(u8::MAX, 255);
    check(i64::MIN, i64::MIN);
    check(u64::MAX, u64::MAX);
    check(usize::MAX, usize::MAX as u64);
    check(isize::MIN, isize::MIN as i64);
    check(10_i128.pow(38) - 1, number(&"9".repeat(38)));
    check(3 * 10_u128.pow(38), number("3e38"));
    assert!(i128::MAX.to_value().is_err());
    assert!(u128::MAX.to_value().is_err());
    assert_eq!(
        read_error::<i8>(128),
        "the number is not a valid i8: value=128"
    );
    assert_eq!(
        read_error::<u64>(-1),
        "the number is not a valid u64: value=-1"
    );
    assert_eq!(
        read_error::<u128>(-1),
        "the number is not a valid u128: value=-1"
    );
    assert_eq!(
        read_error::<usize>(number("1.5")),
        "the number is not a valid usize: value=1.5"
    );
    assert!(i128::from_value(Some(&number("3e38").into())).is_err());
}

#[test]
fn floats_are_their_shortest_decimal() {
    check(0.1_f64, number("0.1"));
    check(0.1_f32, number("0.1"));
    check(f32::MAX, number("3.4028235e38"));
    check(-1e125_f64, number("-1e125"));
    assert!(read_error::<f32>(number("1e39")).starts_with("the number is not a valid f32"));
    for float in [f64::NAN, f64::INFINITY, 1e126, 1e-131] {
        assert!(float.to_value().is_err(), "{float}");
    }
    assert!(f32::NAN.to_value().is_err());
}

#[test]
fn other_forms_are_rejected() {
    assert_eq!(
        read_error::<String>(1),
        "the stored attribute has another type: expected=S actual=N"
    );
    assert!(read_error::<u8>("1").contains("expected=N actual=S"));
    assert!(read_error::<bool>(Value::Null).contains("expected=BOOL actual=NULL"));
    assert!(read_error::<Vec<u8>>(vec![1_u8]).contains("expected=L actual=B"));
    assert!(read_error::<Bytes>("x").contains("expected=B actual=S"));
    assert!(read_error::<BTreeSet<u8>>(texts(["x"])).contains("expected=NS actual=SS"));
    assert!(
        read_error::<BTreeSet<String>>(vec![Value::from("x")]).contains("expected=SS actual=L")
    );
    assert!(read_error::<Option<u8>>(Value::Null).contains("expected=N actual=NULL"));
    assert_eq!(read_error::<Uuid>("x"), "the text is not a uuid");
    assert_eq!(read_error::<Timestamp>(-1), "the number is not a timestamp");
    assert_eq!(u8::from_value(None), Err(missing()));
}

#[test]
fn none_is_absent_and_null_in_containers() {
    assert_eq!(None::<u8>.to_value(), Ok(None));
    assert_eq!(Option::<u8>::from_value(None), Ok(None));
    check(Some(7_u8), 7);
    check(vec![None, Some(7_u8)], vec![Value::Null, Value::from(7)]);
    let map = BTreeMap::from([("a".to_owned(), None), ("b".to_owned(), Some(7_u8))]);
    check(map, Item::new().with("a", Value::Null).with("b", 7));
}

#[test]
fn empty_sets_are_absent_and_null_in_containers() {
    let empty = BTreeSet::<String>::new();
    assert_eq!(empty.to_value(), Ok(None));
    assert_eq!(BTreeSet::from_value(None), Ok(empty.clone()));
    check(
        vec![empty, BTreeSet::from(["x".to_owned()])],
        vec![Value::Null, texts(["x"])],
    );
}

#[test]
fn sets_are_sets() {
    check(
        BTreeSet::from(["b".to_owned(), "a".to_owned()]),
        texts(["a", "b"]),
    );
    let numbers = Set::new([1, 2].map(Number::from)).unwrap();
    check(HashSet::from([1_i64, 2]), numbers);
    check(
        BTreeSet::from([Bytes(vec![1])]),
        Set::new([vec![1]]).unwrap(),
    );
    let text = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    check(
        BTreeSet::from([Uuid::try_parse(text).unwrap()]),
        texts([text]),
    );
    assert_eq!(
        read_error::<BTreeSet<Uuid>>(texts(["x"])),
        "the text is not a uuid"
    );
}

#[test]
fn containers_nest_and_errors_contain_the_path() {
    check(vec![vec![1_u8]], vec![Value::L(vec![Value::from(1)])]);
    let map = HashMap::from([("a".to_owned(), vec![1.5_f64])]);
    check(map, Item::new().with("a", vec![Value::N(number("1.5"))]));
    let invalid = BTreeMap::from([("a".to_owned(), vec![0.0, f64::NAN])])
        .to_value()
        .unwrap_err();
    assert_eq!(invalid.path(), ".a[1]");
    let stored = Item::new().with("a", vec![Value::from(1), Value::from("x")]);
    assert_eq!(
        read_error::<BTreeMap<String, Vec<u8>>>(stored),
        "the stored attribute has another type: expected=N actual=S: at=.a[1]"
    );
}

#[test]
fn types_have_a_key_kind_and_may_be_optional() {
    assert_eq!([String::KIND, Text::KIND, Uuid::KIND], [FieldKind::Text; 3]);
    assert_eq!(
        [u8::KIND, u128::KIND, Number::KIND, Timestamp::KIND],
        [FieldKind::Number; 4]
    );
    assert_eq!(Option::<u64>::KIND, FieldKind::Number);
    assert_eq!(Bytes::KIND, FieldKind::Bytes);
    assert_eq!(
        [bool::KIND, Vec::<u8>::KIND, Document::KIND],
        [FieldKind::Other; 3]
    );
    let optional = [
        Option::<u8>::OPTIONAL,
        BTreeSet::<u8>::OPTIONAL,
        HashSet::<u8>::OPTIONAL,
    ];
    assert_eq!(optional, [true; 3]);
    assert_eq!(
        [u8::OPTIONAL, Vec::<u8>::OPTIONAL, Document::OPTIONAL],
        [false; 3]
    );
}

#[test]
fn types_have_a_json_schema() {
    let integer = json!({"type": "integer", "minimum": 0, "maximum": 255});
    assert_eq!(Option::<u8>::json_schema(), integer);
    assert_eq!(
        BTreeMap::<String, Vec<u8>>::json_schema(),
        json!({"type": "object", "additionalProperties": {"type": "array", "items": integer}})
    );
    assert_eq!(
        BTreeSet::<String>::json_schema(),
        json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}})
    );
    assert_eq!(i128::json_schema(), json!({"type": "integer"}));
    assert_eq!(Document::json_schema(), json!({}));
}

#[test]
fn empty_map_keys_are_rejected() {
    let map = BTreeMap::from([(String::new(), 1_u8)]);
    let invalid = BTreeMap::from([("a".to_owned(), map.clone())])
        .to_value()
        .unwrap_err();
    assert_eq!(
        (invalid.path(), invalid.reason()),
        (".a", "a name in a map cannot be empty")
    );
    assert!(crate::attribute::document::to_value(&map).is_err());
}
