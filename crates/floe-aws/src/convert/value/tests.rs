//! Random items round-trip, and invalid responses are rejected.

use floe_store::env::SeededRandom;
use floe_store::{Error, Text};

use super::*;

/// Numbers of every length and magnitude: up to 38 digits, from 1E-130 to 9.99E+125.
fn any_number(random: &SeededRandom) -> Number {
    let digits = 1 + random.below(38);
    let mut text = String::from(if random.below(2) == 0 { "" } else { "-" });
    text.extend((0..digits).map(|_| char::from(b'0' + random.below(10) as u8)));
    let lowest = -130;
    let highest = 125 - (digits as i64 - 1);
    let exponent = lowest + random.below((highest - lowest + 1) as u64) as i64;
    let number: Number = format!("{text}e{exponent}").parse().unwrap();
    number
}

fn any_text(random: &SeededRandom) -> String {
    let alphabet = ['a', 'Z', '0', ' ', '"', '\\', '\n', '\0', 'é', '漢', '🧊'];
    let letters = (0..random.below(40)).map(|_| alphabet[random.below(11) as usize]);
    letters.collect()
}

fn any_bytes(random: &SeededRandom) -> Vec<u8> {
    (0..random.below(40))
        .map(|_| random.below(256) as u8)
        .collect()
}

/// Returns a set of random elements.
fn any_set<T: Ord>(random: &SeededRandom, make: impl Fn(&SeededRandom) -> T) -> Set<T> {
    let mut elements: Vec<T> = (0..1 + random.below(5)).map(|_| make(random)).collect();
    elements.sort_unstable();
    elements.dedup();
    Set::new(elements).unwrap()
}

fn any_value(random: &SeededRandom, depth: u32) -> Value {
    match random.below(if depth == 0 { 8 } else { 10 }) {
        0 => Value::from(any_text(random)),
        1 => Value::N(any_number(random)),
        2 => Value::B(any_bytes(random)),
        3 => Value::Bool(random.below(2) == 0),
        4 => Value::Null,
        5 => Value::Ss(any_set(random, |random| Text::from(any_text(random)))),
        6 => Value::Ns(any_set(random, any_number)),
        7 => Value::Bs(any_set(random, any_bytes)),
        8 => Value::M(any_item(random, depth - 1)),
        _ => {
            let list = (0..random.below(5)).map(|_| any_value(random, depth - 1));
            Value::L(list.collect())
        }
    }
}

fn any_item(random: &SeededRandom, depth: u32) -> Item {
    let attributes = (0..random.below(6)).map(|_| (any_text(random), any_value(random, depth)));
    attributes.collect()
}

#[test]
fn items_round_trip() {
    for seed in 0..3000 {
        let one = any_item(&SeededRandom::new(seed), 4);
        assert_eq!(item(attributes(&one)), Ok(one), "seed={seed}");
    }
}

/// Converts a value to the identical type of the stream service.
fn stream_attribute(value: &Value) -> aws_sdk_dynamodbstreams::types::AttributeValue {
    use aws_sdk_dynamodbstreams::types::AttributeValue as Other;
    match attribute(value) {
        AttributeValue::S(text) => Other::S(text),
        AttributeValue::N(text) => Other::N(text),
        AttributeValue::B(blob) => Other::B(blob),
        AttributeValue::Bool(bool) => Other::Bool(bool),
        AttributeValue::Null(null) => Other::Null(null),
        AttributeValue::Ss(set) => Other::Ss(set),
        AttributeValue::Ns(set) => Other::Ns(set),
        AttributeValue::Bs(set) => Other::Bs(set),
        _ => match value {
            Value::M(map) => Other::M(stream_image(map)),
            Value::L(list) => Other::L(list.iter().map(stream_attribute).collect()),
            other => panic!("unknown value type: {other:?}"),
        },
    }
}

fn stream_image(item: &Item) -> HashMap<String, aws_sdk_dynamodbstreams::types::AttributeValue> {
    let attributes = item.iter();
    attributes
        .map(|(name, value)| (name.to_string(), stream_attribute(value)))
        .collect()
}

#[test]
fn stream_images_round_trip() {
    for seed in 0..1000 {
        let one = any_item(&SeededRandom::new(seed), 3);
        assert_eq!(stream_item(stream_image(&one)), Ok(one), "seed={seed}");
    }
}

#[test]
fn numbers_keep_all_digits() {
    for text in [
        "0",
        "-12345678901234567890123456789012345678",
        "0.00000000000000000000000000000000000001",
        "9.9999999999999999999999999999999999999E+125",
        "-1E-130",
    ] {
        let number: Number = text.parse().unwrap();
        assert_eq!(value(attribute(&Value::N(number))), Ok(Value::N(number)));
    }
}

#[test]
fn invalid_values_are_rejected() {
    let number = |text: &str| AttributeValue::N(text.to_owned());
    let twice = vec!["1".to_owned(), "1.0".to_owned()];
    for odd in [
        number("one"),
        number("123456789012345678901234567890123456789"),
        AttributeValue::Ns(twice),
        AttributeValue::Ss(Vec::new()),
    ] {
        let error = value(odd.clone()).unwrap_err();
        assert!(matches!(error, Error::Internal(_)), "{odd:?}: {error:?}");
        assert!(
            error
                .to_string()
                .starts_with("the store returned an invalid response: "),
            "{error}"
        );
    }
}
