//! The derive of events: types, bodies, versions, and errors of invalid bodies.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;

use floe::model::Json;
use floe::{Error, ErrorKind, Event};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Clone, Debug, PartialEq, Event)]
#[event(rename_all = "camelCase")]
enum CartEvent {
    ItemAdded {
        sku: String,
        quantity: u32,
        unit_price: Option<f64>,
        #[event(rename = "gift")]
        is_gift: Maybe,
        #[event(default)]
        tags: Vec<String>,
        #[event(default = "web")]
        sold_by: String,
        #[event(default = 1 + 1)]
        weight: i64,
    },
    #[event(name = "addressed", alias = "Address", alias = "Shipped.To")]
    Addressed(Address),
    #[event(alias = "Done")]
    CheckedOut,
    Emptied {},
    Größe {
        größe: u8,
    },
    #[event(name = "カート \"x\"\n")]
    Cart {
        #[event(rename = "\"数\"")]
        count: u8,
    },
    r#Type {
        r#type: bool,
    },
}

/// An alias of `Option`, which the macro cannot recognise.
type Maybe = Option<bool>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Address {
    street: String,
    #[serde(default)]
    lines: Vec<String>,
}

fn added() -> CartEvent {
    CartEvent::ItemAdded {
        sku: "tea".to_owned(),
        quantity: 2,
        unit_price: Some(1.5),
        is_gift: None,
        tags: vec!["hot".to_owned()],
        sold_by: "shop".to_owned(),
        weight: -3,
    }
}

/// Checks the type and the body of an event, and that they decode to the event.
#[track_caller]
fn check<E: Event + Clone + PartialEq + Debug>(event: &E, event_type: &str, body: &str) {
    assert_eq!(event.event_type(), event_type);
    let data = event.encode().unwrap();
    assert_eq!(String::from_utf8_lossy(&data), body);
    check_read(event_type, body, event);
}

/// Checks that the body decodes to this event.
#[track_caller]
fn check_read<E: Event + Clone + PartialEq + Debug>(event_type: &str, body: &str, event: &E) {
    let read = E::decode(event_type, body.as_bytes());
    assert_eq!(read, Ok(Some(event.clone())));
}

/// Checks that the body is rejected with this message.
#[track_caller]
fn check_rejected<E: Event + Debug>(event_type: &str, body: &str, message: &str) {
    let error = E::decode(event_type, body.as_bytes()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    assert_eq!(error.to_string(), message);
}

#[test]
fn variant_is_encoded_as_type_and_fields_as_body() {
    check(
        &added(),
        "ItemAdded",
        r#"{"sku":"tea","quantity":2,"unitPrice":1.5,"gift":null,"tags":["hot"],"soldBy":"shop","weight":-3}"#,
    );
    let address = Address {
        street: "Main".to_owned(),
        lines: Vec::new(),
    };
    check(
        &CartEvent::Addressed(address),
        "addressed",
        r#"{"street":"Main","lines":[]}"#,
    );
    check(&CartEvent::CheckedOut, "CheckedOut", "");
    check(&CartEvent::Emptied {}, "Emptied", "{}");
    check(
        &CartEvent::Type { r#type: true },
        "Type",
        r#"{"type":true}"#,
    );
}

#[test]
fn names_can_be_any_text() {
    check(&CartEvent::Größe { größe: 1 }, "Größe", r#"{"größe":1}"#);
    check(
        &CartEvent::Cart { count: 1 },
        "カート \"x\"\n",
        r#"{"\"数\"":1}"#,
    );
    // Another writer may escape characters.
    check_read(
        "Größe",
        r#"{"gr\u00f6\u00dfe":1}"#,
        &CartEvent::Größe { größe: 1 },
    );
}

#[test]
fn aliases_are_decoded_and_not_encoded() {
    let address = CartEvent::Addressed(Address {
        street: "Main".to_owned(),
        lines: vec!["2nd".to_owned()],
    });
    for name in ["addressed", "Address", "Shipped.To"] {
        check_read(name, r#"{"street":"Main","lines":["2nd"]}"#, &address);
    }
    check_read("Done", "", &CartEvent::CheckedOut);
}

#[test]
fn unknown_types_decode_to_none() {
    for name in [
        "Addressed",
        "itemAdded",
        "ItemAdded.v2",
        "ItemAdded.v1",
        "ItemAdded ",
        "",
    ] {
        assert_eq!(CartEvent::decode(name, b"not even JSON"), Ok(None));
    }
}

#[test]
fn missing_fields_are_none_or_the_default() {
    let event = CartEvent::ItemAdded {
        sku: "tea".to_owned(),
        quantity: 2,
        unit_price: None,
        is_gift: None,
        tags: Vec::new(),
        sold_by: "web".to_owned(),
        weight: 2,
    };
    check_read("ItemAdded", r#"{"quantity":2,"sku":"tea"}"#, &event);
}

#[test]
fn unknown_fields_are_ignored() {
    let body = r#" {"new": [{"a": {"größe": 7}}], "größe": 1, "x": null, "y": "z"} "#;
    check_read("Größe", body, &CartEvent::Größe { größe: 1 });
    check_read("CheckedOut", r#"{"by":"ann"}"#, &CartEvent::CheckedOut);
    check_read("CheckedOut", "not even JSON", &CartEvent::CheckedOut);
    check_read("Emptied", r#"{"by":"ann"}"#, &CartEvent::Emptied {});
}

#[derive(Clone, Debug, PartialEq, Event)]
enum Extended {
    /// Had no body originally.
    Closed {
        by: Option<String>,
        #[event(default)]
        at: u64,
    },
}

#[test]
fn empty_body_has_no_fields() {
    for body in ["", "{}", "null"] {
        check_read("Closed", body, &Extended::Closed { by: None, at: 0 });
    }
    check_rejected::<CartEvent>(
        "Größe",
        "",
        "cannot decode the body of an event: missing field `größe`: type=Größe field=größe",
    );
}

#[test]
fn errors_of_invalid_bodies_contain_the_field_and_position() {
    let cases = [
        (
            r#"{"sku":"tea"}"#,
            "missing field `quantity`: type=ItemAdded field=quantity",
        ),
        (
            r#"{"sku":"tea","quantity":"two"}"#,
            "invalid type: string \"two\", expected u32 at line 1 column 29: type=ItemAdded field=quantity",
        ),
        (
            r#"{"sku":"tea","quantity":-1}"#,
            "invalid value: integer `-1`, expected u32 at line 1 column 26: type=ItemAdded field=quantity",
        ),
        (
            r#"{"sku":"tea","sku":"jam"}"#,
            "duplicate field `sku` at line 1 column 18: type=ItemAdded field=sku",
        ),
        (
            r#"{"sku":null,"quantity":1}"#,
            "invalid type: null, expected a string at line 1 column 11: type=ItemAdded field=sku",
        ),
        (
            r#"{"sku":"tea","qua"#,
            "EOF while parsing a string at line 1 column 17: type=ItemAdded",
        ),
        (
            "{\n\n  ?",
            "key must be a string at line 3 column 3: type=ItemAdded",
        ),
        (
            r#"{"sku":"tea","quantity":1} x"#,
            "trailing characters at line 1 column 28: type=ItemAdded",
        ),
        (
            "[1]",
            "invalid type: sequence, expected an object with the fields of the event at line 1 column 1: \
             type=ItemAdded",
        ),
        ("\u{1}", "expected value at line 1 column 1: type=ItemAdded"),
    ];
    for (body, message) in cases {
        let message = format!("cannot decode the body of an event: {message}");
        check_rejected::<CartEvent>("ItemAdded", body, &message);
    }
    let error = CartEvent::decode("Größe", b"{\"gr\xff\":1}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot decode the body of an event: invalid unicode code point at line 1 column 5: type=Größe"
    );
}

#[test]
fn single_value_is_decoded_by_its_type() {
    check_rejected::<CartEvent>(
        "Address",
        r#"{"lines":[]}"#,
        "cannot decode the body of an event: missing field `street` at line 1 column 12: type=Address",
    );
    check_rejected::<CartEvent>(
        "addressed",
        "",
        "cannot decode the body of an event: EOF while parsing a value at line 1 column 0: type=addressed",
    );
}

#[derive(Debug, Event)]
enum Unwritable {
    Fields {
        ok: u8,
        by_pair: BTreeMap<(u8, u8), u8>,
    },
    Whole(BTreeMap<(u8, u8), u8>),
}

#[test]
fn events_without_json_representation_are_rejected() {
    let by_pair = BTreeMap::from([((1, 2), 3)]);
    let error = |event: Unwritable| {
        let error = event.encode().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidEvent);
        error.to_string()
    };
    assert_eq!(
        error(Unwritable::Whole(by_pair.clone())),
        "cannot encode the body of an event: key must be a string: type=Whole"
    );
    assert_eq!(
        error(Unwritable::Fields { ok: 1, by_pair }),
        "cannot encode the body of an event: key must be a string: type=Fields field=by_pair"
    );
}

#[derive(Clone, Debug, PartialEq, Event)]
enum Versioned {
    #[event(alias = "Named", version = 3, upcast(2 = upcasters::split, 1 = named))]
    Renamed { first: String, last: String },
    #[event(version = 2, upcast(1 = |degrees: Json| Ok::<_, Infallible>(json!({ "celsius": degrees }))))]
    Measured(BTreeMap<String, f64>),
    #[event(version = 1)]
    Plain { a: u8 },
    #[event(name = "Plain.v2")]
    #[deprecated(note = "no longer appended, but still decoded")]
    PlainSecond(u8),
}

/// Version 1 was only the name.
fn named(body: Json) -> Result<Json, String> {
    match body {
        Json::Null => Err("there is no name".to_owned()),
        name => Ok(json!({ "name": name })),
    }
}

mod upcasters {
    use super::{Error, Event, Json, Versioned, json};

    /// Version 2 had both names in one field. An upcaster may return any error that implements `Display`.
    pub(super) fn split(mut body: Json) -> Result<Json, Error> {
        let name = body.get_mut("name").map(Json::take).unwrap_or_default();
        let Some((first, last)) = name.as_str().and_then(|name| name.split_once(' ')) else {
            return Err(Versioned::decode("Plain", b"[").unwrap_err());
        };
        Ok(json!({ "first": first, "last": last, "ignored": 1 }))
    }
}

#[test]
fn versions_have_separate_type_names() {
    let renamed = Versioned::Renamed {
        first: "Ada".to_owned(),
        last: "Byron".to_owned(),
    };
    check(&renamed, "Renamed.v3", r#"{"first":"Ada","last":"Byron"}"#);
    check(&Versioned::Plain { a: 1 }, "Plain", r#"{"a":1}"#);
    #[expect(deprecated, reason = "it must still be decoded")]
    check(&Versioned::PlainSecond(7), "Plain.v2", "7");
}

#[test]
fn old_versions_are_upcast_step_by_step() {
    let renamed = Versioned::Renamed {
        first: "Ada".to_owned(),
        last: "Byron".to_owned(),
    };
    for name in ["Renamed", "Named"] {
        check_read(name, r#""Ada Byron""#, &renamed);
        let second = format!("{name}.v2");
        check_read(&second, r#"{"name":"Ada Byron"}"#, &renamed);
        let third = format!("{name}.v3");
        check_read(&third, r#"{"first":"Ada","last":"Byron"}"#, &renamed);
        // A version newer than the program.
        assert_eq!(Versioned::decode(&format!("{name}.v4"), b"{}"), Ok(None));
    }
    let measured = Versioned::Measured(BTreeMap::from([("celsius".to_owned(), 20.5)]));
    check_read("Measured", "20.5", &measured);
    check(&measured, "Measured.v2", r#"{"celsius":20.5}"#);
}

#[test]
fn errors_of_upcasters_are_part_of_the_message() {
    check_rejected::<Versioned>(
        "Named",
        "",
        "cannot upcast the body of an event: there is no name: type=Named version=1",
    );
    let inner = Versioned::decode("Plain", b"[").unwrap_err();
    check_rejected::<Versioned>(
        "Renamed",
        r#""Ada""#,
        &format!("cannot upcast the body of an event: {inner}: type=Renamed version=2"),
    );
    check_rejected::<Versioned>(
        "Renamed",
        "{",
        "cannot decode the body of an event: EOF while parsing an object at line 1 column 1: type=Renamed",
    );
    check_rejected::<Versioned>(
        "Measured",
        r#""warm""#,
        "cannot decode the body of an event: invalid type: string \"warm\", expected f64: type=Measured",
    );
}

/// A renamed crate, and names that could collide with those in the generated code.
mod renamed_crate {
    pub(super) use floe as data;

    #[derive(Clone, Debug, PartialEq, data::Event)]
    #[event(crate = "data", rename_all = "SCREAMING_SNAKE_CASE")]
    pub(super) enum Odd {
        Ok {
            event_type: u8,
            data: u8,
            slots: u8,
            value_0: u8,
        },
        Some(u8),
        None,
        Result,
    }
}

#[test]
fn names_of_variants_and_fields_do_not_collide_with_generated_code() {
    use renamed_crate::Odd;
    let ok = Odd::Ok {
        event_type: 1,
        data: 2,
        slots: 3,
        value_0: 4,
    };
    check(
        &ok,
        "Ok",
        r#"{"EVENT_TYPE":1,"DATA":2,"SLOTS":3,"VALUE_0":4}"#,
    );
    check(&Odd::Some(1), "Some", "1");
    check(&Odd::None, "None", "");
    check(&Odd::Result, "Result", "");
}
