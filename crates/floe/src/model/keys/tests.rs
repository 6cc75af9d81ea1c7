//! The stored form of keys, their order, and round trips of their components.

use floe_store::Number;
use floe_store::env::{Random, SeededRandom};
use serde_json::Value as Json;

use super::*;

const fn field(name: &'static str, role: Role, kind: FieldKind) -> FieldSchema {
    FieldSchema {
        name,
        attribute: name,
        role,
        kind,
        optional: false,
        read_only: false,
        has_default: false,
        json_schema: || Json::Null,
    }
}

const fn schema(fields: &'static [FieldSchema]) -> Schema {
    Schema {
        model: "RaceResult",
        table: "RaceResult",
        fields,
        sort_constant: None,
        sort_key_encoding: SortKeyEncoding::Ordered,
        indexes: &[],
        expires: None,
        exactly_once: false,
        stream: false,
    }
}

use FieldKind::{Bytes, Other, Text};
use Role::{Partition, Sort};

const RUNNER_AND_RACE: &[FieldSchema] = &[
    field("runner", Partition, Text),
    field("race", Partition, FieldKind::Number),
];
const ID: FieldSchema = field("id", Partition, Text);
const ROUND_AND_LAP: &[FieldSchema] = &[
    ID,
    field("round", Sort, FieldKind::Number),
    field("lap", Sort, FieldKind::Number),
];

fn try_key(schema: &Schema, parts: &[(&'static str, Value)]) -> Result<EncodedKey> {
    let parts: Vec<_> = parts
        .iter()
        .map(|(name, value)| (*name, Ok(Some(value.clone()))))
        .collect();
    encode(schema, &parts)
}

fn key<V: Into<Value> + Clone>(schema: &Schema, parts: &[(&'static str, V)]) -> EncodedKey {
    let parts: Vec<_> = parts
        .iter()
        .map(|(name, value)| (*name, value.clone().into()))
        .collect();
    try_key(schema, &parts).unwrap()
}

/// Returns the sort key with these values of the fields after `id`.
fn sort_key(schema: &Schema, values: &[Value]) -> String {
    let names = schema.fields.iter().skip(1).map(|field| field.name);
    let mut parts: Vec<_> = names.zip(values.iter().cloned()).collect();
    parts.push(("id", Value::from("x")));
    let key = key(schema, &parts);
    key.sort().and_then(Value::as_s).unwrap().to_owned()
}

fn reason(key: Result<EncodedKey>) -> String {
    key.unwrap_err().to_string()
}

#[test]
fn components_are_sorted_by_name_and_joined_by_nul() {
    let parts = [("runner", Value::from("Joe")), ("race", Value::from(123))];
    let key = key(&schema(RUNNER_AND_RACE), &parts);
    assert_eq!(key.id(), &Value::from("123\0Joe"));
    assert_eq!(key.sort(), None);
    assert_eq!(key.to_item(), Item::new().with("_id", "123\0Joe"));
}

#[test]
fn rename_does_not_change_the_position_of_a_field() {
    const FIELDS: &[FieldSchema] = &[
        FieldSchema {
            attribute: "z",
            ..field("a", Partition, Text)
        },
        field("b", Partition, Text),
    ];
    let key = key(&schema(FIELDS), &[("a", "first"), ("b", "second")]);
    assert_eq!(key.id(), &Value::from("second\0first"));
    assert_eq!(
        component(&schema(FIELDS), &key.to_item(), "a"),
        Ok("first".into())
    );
}

#[test]
fn single_number_is_stored_as_a_number() {
    const FIELDS: &[FieldSchema] = &[field("id", Partition, FieldKind::Number)];
    let key = key(&schema(FIELDS), &[("id", 7)]);
    assert_eq!(key.id(), &Value::from(7));
    assert!(has_number_id(&schema(FIELDS)) && !has_number_id(&schema(RUNNER_AND_RACE)));
    assert_eq!(
        component(&schema(FIELDS), &key.to_item(), "id"),
        Ok(Value::from(7))
    );
    let text = Item::new().with("_id", "7");
    assert!(component(&schema(FIELDS), &text, "id").is_err());
}

#[test]
fn other_components_are_stored_as_json() {
    const FIELDS: &[FieldSchema] = &[field("id", Partition, Other)];
    let schema = schema(FIELDS);
    let raw = Item::new().with("raw", "no pr\0blem");
    let key = key(&schema, &[("id", raw.clone())]);
    assert_eq!(key.id(), &Value::from(r#"{"raw":"no pr\u0000blem"}"#));
    assert_eq!(component(&schema, &key.to_item(), "id"), Ok(Value::M(raw)));
}

#[test]
fn text_is_never_parsed_as_another_type() {
    const FIELDS: &[FieldSchema] = &[ID, field("any", Sort, Other)];
    let json = Schema {
        sort_key_encoding: SortKeyEncoding::Json,
        ..schema(FIELDS)
    };
    let list = Value::L(vec![Value::from("1"), Value::from(1)]);
    let values = [
        Value::from(1),
        Value::from("1"),
        Value::from("\"1\""),
        Value::from("c102"),
        Value::from("8000"),
        Value::from("true"),
        Value::from("red"),
        Value::from("[\"1\",1]"),
        Value::Bool(true),
        Value::Null,
        Value::from("null"),
        list,
    ];
    for schema in [&schema(FIELDS), &json] {
        let mut texts = Vec::new();
        for value in &values {
            let text = sort_key(schema, std::slice::from_ref(value));
            let item = Item::new().with("_id", "x").with("_sk", text.as_str());
            assert_eq!(component(schema, &item, "any").as_ref(), Ok(value));
            assert!(!texts.contains(&text), "{text:?}");
            texts.push(text);
        }
        assert!(texts.contains(&"red".to_owned()));
    }
}

#[test]
fn ten_sorts_after_two() {
    let schema = schema(ROUND_AND_LAP);
    let sort = |round: i64, lap: i64| sort_key(&schema, &[round.into(), lap.into()]);
    assert!(sort(1, 2) < sort(1, 10));
    assert!(sort(1, 10) < sort(2, 1));
    assert!(sort(9, 1) < sort(10, 1));
    assert!(sort(-10, 0) < sort(-9, 0));
    assert!(sort(-1, 5) < sort(0, -5));
    assert!(sort(0, i64::MAX) < sort(1, i64::MIN));
}

/// Numbers of all signs and magnitudes, half of them close together.
fn number(random: &SeededRandom) -> Number {
    let wide = random.next_u64() as i64;
    match random.next_u64() % 4 {
        0 => Number::from(wide % 12),
        1 => Number::from(wide),
        2 => format!("{wide}e{}", random.next_u64() % 100)
            .parse()
            .unwrap(),
        _ => format!("{}e-{}", wide % 1000, random.next_u64() % 100)
            .parse()
            .unwrap(),
    }
}

#[test]
fn random_sort_keys_sort_like_their_components() {
    const FIELDS: &[FieldSchema] = &[
        ID,
        field("level", Sort, FieldKind::Number),
        field("name", Sort, Text),
        field("score", Sort, FieldKind::Number),
    ];
    let schema = schema(FIELDS);
    let random = SeededRandom::new(3);
    let names = ["", "a", "ab", "b", "\u{1}", "é", "\u{1F600}"];
    let make = || {
        let name = names[(random.next_u64() % names.len() as u64) as usize];
        (number(&random), name, number(&random))
    };
    for _ in 0..5000 {
        let (a, b) = (make(), make());
        let sort = |(level, name, score): (Number, &str, Number)| {
            sort_key(&schema, &[level.into(), name.into(), score.into()])
        };
        assert_eq!(a.cmp(&b), sort(a).cmp(&sort(b)), "{a:?} {b:?}");
        let item = Item::new().with("_id", "x").with("_sk", sort(a));
        assert_eq!(component(&schema, &item, "level"), Ok(a.0.into()));
        assert_eq!(component(&schema, &item, "name"), Ok(a.1.into()));
        assert_eq!(component(&schema, &item, "score"), Ok(a.2.into()));
    }
}

#[test]
fn prefix_of_leading_components_excludes_others() {
    let schema = schema(ROUND_AND_LAP);
    let random = SeededRandom::new(4);
    for _ in 0..2000 {
        let (round, other) = (number(&random), number(&random));
        let round_field = schema.field("round").unwrap();
        let prefix = sort_text(&schema, round_field, &round.into()).unwrap() + "\0";
        let sort = sort_key(&schema, &[other.into(), Value::from(1)]);
        assert_eq!(sort.starts_with(&prefix), round == other, "{round} {other}");
    }
}

#[test]
fn json_encoding_equals_that_of_the_partition_key() {
    let schema = Schema {
        sort_key_encoding: SortKeyEncoding::Json,
        ..schema(ROUND_AND_LAP)
    };
    let sort = sort_key(&schema, &[Value::from(2), Value::from(-10)]);
    assert_eq!(sort, "-10\x002");
    let item = Item::new().with("_id", "x").with("_sk", sort);
    assert_eq!(component(&schema, &item, "lap"), Ok(Value::from(-10)));
    assert_eq!(component(&schema, &item, "round"), Ok(Value::from(2)));
}

#[test]
fn constant_is_the_prefix_of_a_sort_key_and_required() {
    let money = Schema {
        sort_constant: Some("money"),
        ..schema(&[ID])
    };
    let key = key(&money, &[("id", "joe")]);
    assert_eq!(key.sort(), Some(&Value::from("money")));
    assert!(has_sort_key(&money) && !has_sort_key(&schema(&[ID])));
    const WEAPON: &[FieldSchema] = &[ID, field("name", Sort, Text)];
    let weapons = Schema {
        sort_constant: Some("weapon"),
        ..schema(WEAPON)
    };
    let sort = sort_key(&weapons, &[Value::from("ax")]);
    assert_eq!(sort, "weapon\0ax");
    let name = |sort: &str| component(&weapons, &Item::new().with("_sk", sort), "name");
    assert_eq!(name("weapon\0ax"), Ok(Value::from("ax")));
    assert_eq!(name("weapon\0"), Ok(Value::from("")));
    for other in ["weapons\0ax", "money\0ax", "weapon", "weapon\0ax\0", "ax"] {
        assert!(name(other).is_err(), "{other:?}");
    }
}

#[test]
fn invalid_components_are_rejected() {
    let runner = |name: Value| {
        try_key(
            &schema(RUNNER_AND_RACE),
            &[("race", 1.into()), ("runner", name)],
        )
    };
    assert_eq!(
        reason(runner("a\0b".into())),
        "text in a key cannot contain NUL: model=RaceResult field=runner"
    );
    assert_eq!(
        reason(runner(7.into())),
        "a component of the key has another type: expected=Text actual=N model=RaceResult field=runner"
    );
    assert_eq!(
        reason(try_key(&schema(RUNNER_AND_RACE), &[("race", 1.into())])),
        "a component of the key is missing: model=RaceResult field=runner"
    );
    const BYTES: &[FieldSchema] = &[field("id", Partition, Bytes)];
    assert_eq!(
        reason(try_key(&schema(BYTES), &[("id", Value::B(vec![1]))])),
        "bytes and sets cannot be in a key: type=B model=RaceResult field=id"
    );
    let failed = Err(Error::invalid("RaceResult", "id", &Invalid::new("no")));
    let refused = encode(&schema(&[ID]), &[("id", failed.clone())]);
    assert_eq!(refused.map(|_| None), failed);
}

#[test]
fn keys_beyond_store_limits_are_rejected() {
    let id = |text: String| try_key(&schema(&[ID]), &[("id", text.into())]);
    assert_eq!(
        reason(id(String::new())),
        "the key is empty: model=RaceResult field=id"
    );
    assert!(id("x".repeat(PARTITION_KEY_BYTES_MAX)).is_ok());
    assert_eq!(
        reason(id("x".repeat(PARTITION_KEY_BYTES_MAX + 1))),
        "the key is too long: bytes=2049 bytes_max=2048 model=RaceResult field=id"
    );
    const TEXTS: &[FieldSchema] = &[ID, field("a", Sort, Text), field("b", Sort, Text)];
    let sort = |a: &str, b: &str| {
        try_key(
            &schema(TEXTS),
            &[("id", "x".into()), ("a", a.into()), ("b", b.into())],
        )
    };
    assert!(sort("", "").is_ok());
    let half = "x".repeat(SORT_KEY_BYTES_MAX / 2);
    assert_eq!(
        reason(sort(&half, &half)),
        "the key is too long: bytes=1025 bytes_max=1024 model=RaceResult field=_sk"
    );
}

#[test]
fn damaged_keys_are_rejected() {
    let schema = schema(ROUND_AND_LAP);
    let item = |sort: &str| Item::new().with("_id", "x").with("_sk", sort);
    let read = |item: &Item| component(&schema, item, "round").unwrap_err().to_string();
    let reason = "the stored key does not belong to this model: model=RaceResult field=round";
    let round = ordered_number(&Number::from(1));
    for sort in [
        "",
        "1\x001",
        "c102",
        "c102\0c102\0c102",
        "+1+1\0c102",
        "C102\0c102",
        "c1\0c102",
        "c10\0",
    ] {
        assert_eq!(read(&item(sort)), reason, "{sort:?}");
    }
    assert_eq!(round, "c102");
    assert_eq!(
        component(&schema, &item("c102\0c102"), "round"),
        Ok(1.into())
    );
    assert_eq!(read(&Item::new()), reason);
    assert_eq!(read(&Item::new().with("_sk", 7)), reason);
    assert!(component(&schema, &item("c102\0c102"), "nothing").is_err());
    let two = Item::new().with("_id", "a\0b");
    assert!(component(&schema, &two, "id").is_err());
}
