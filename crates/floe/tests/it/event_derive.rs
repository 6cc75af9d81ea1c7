//! Events as the derive makes them: names, bodies, versions, and what is told of bodies that cannot be read.

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

/// What a macro cannot see through.
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

/// Checks the name and the body, and that the event is read from them.
#[track_caller]
fn check<E: Event + Clone + PartialEq + Debug>(event: &E, event_type: &str, body: &str) {
    assert_eq!(event.event_type(), event_type);
    let data = event.encode().unwrap();
    assert_eq!(String::from_utf8_lossy(&data), body);
    check_read(event_type, body, event);
}

/// Checks that this event is read.
#[track_caller]
fn check_read<E: Event + Clone + PartialEq + Debug>(event_type: &str, body: &str, event: &E) {
    let read = E::decode(event_type, body.as_bytes());
    assert_eq!(read, Ok(Some(event.clone())));
}

/// Checks that the body is refused with this message.
#[track_caller]
fn check_refused<E: Event + Debug>(event_type: &str, body: &str, message: &str) {
    let error = E::decode(event_type, body.as_bytes()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_variant_is_a_type_and_its_fields_are_the_body() {
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
fn names_are_any_text() {
    check(&CartEvent::Größe { größe: 1 }, "Größe", r#"{"größe":1}"#);
    check(
        &CartEvent::Cart { count: 1 },
        "カート \"x\"\n",
        r#"{"\"数\"":1}"#,
    );
    // Escaped by another writer.
    check_read(
        "Größe",
        r#"{"gr\u00f6\u00dfe":1}"#,
        &CartEvent::Größe { größe: 1 },
    );
}

#[test]
fn further_names_are_read_and_not_written() {
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
fn types_that_are_not_there_are_nobodys() {
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
fn what_a_body_lacks_is_none_or_the_default() {
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
fn what_a_variant_lacks_is_ignored() {
    let body = r#" {"new": [{"a": {"größe": 7}}], "größe": 1, "x": null, "y": "z"} "#;
    check_read("Größe", body, &CartEvent::Größe { größe: 1 });
    check_read("CheckedOut", r#"{"by":"ann"}"#, &CartEvent::CheckedOut);
    check_read("CheckedOut", "not even JSON", &CartEvent::CheckedOut);
    check_read("Emptied", r#"{"by":"ann"}"#, &CartEvent::Emptied {});
}

#[derive(Clone, Debug, PartialEq, Event)]
enum Grown {
    /// It had no body once.
    Closed {
        by: Option<String>,
        #[event(default)]
        at: u64,
    },
}

#[test]
fn a_body_that_says_nothing_has_no_fields() {
    for body in ["", "{}", "null"] {
        check_read("Closed", body, &Grown::Closed { by: None, at: 0 });
    }
    check_refused::<CartEvent>(
        "Größe",
        "",
        "the body of an event cannot be read: missing field `größe`: type=Größe field=größe",
    );
}

#[test]
fn bodies_that_cannot_be_read_are_told_with_the_place() {
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
        let message = format!("the body of an event cannot be read: {message}");
        check_refused::<CartEvent>("ItemAdded", body, &message);
    }
    let error = CartEvent::decode("Größe", b"{\"gr\xff\":1}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the body of an event cannot be read: invalid unicode code point at line 1 column 5: type=Größe"
    );
}

#[test]
fn the_one_value_of_a_variant_is_read_as_its_type_says() {
    check_refused::<CartEvent>(
        "Address",
        r#"{"lines":[]}"#,
        "the body of an event cannot be read: missing field `street` at line 1 column 12: type=Address",
    );
    check_refused::<CartEvent>(
        "addressed",
        "",
        "the body of an event cannot be read: EOF while parsing a value at line 1 column 0: type=addressed",
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
fn events_that_have_no_form_in_json_are_refused() {
    let by_pair = BTreeMap::from([((1, 2), 3)]);
    let error = |event: Unwritable| {
        let error = event.encode().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidEvent);
        error.to_string()
    };
    assert_eq!(
        error(Unwritable::Whole(by_pair.clone())),
        "the body of an event cannot be written: key must be a string: type=Whole"
    );
    assert_eq!(
        error(Unwritable::Fields { ok: 1, by_pair }),
        "the body of an event cannot be written: key must be a string: type=Fields field=by_pair"
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
    #[deprecated(note = "it is not made any more, and still read")]
    PlainToo(u8),
}

/// Version 1 was the name alone.
fn named(body: Json) -> Result<Json, String> {
    match body {
        Json::Null => Err("there is no name".to_owned()),
        name => Ok(json!({ "name": name })),
    }
}

mod upcasters {
    use super::{Error, Event, Json, Versioned, json};

    /// Version 2 had both names in one field. Any error that can be printed will do.
    pub(super) fn split(mut body: Json) -> Result<Json, Error> {
        let name = body.get_mut("name").map(Json::take).unwrap_or_default();
        let Some((first, last)) = name.as_str().and_then(|name| name.split_once(' ')) else {
            return Err(Versioned::decode("Plain", b"[").unwrap_err());
        };
        Ok(json!({ "first": first, "last": last, "ignored": 1 }))
    }
}

#[test]
fn versions_are_stored_under_names_of_their_own() {
    let renamed = Versioned::Renamed {
        first: "Ada".to_owned(),
        last: "Byron".to_owned(),
    };
    check(&renamed, "Renamed.v3", r#"{"first":"Ada","last":"Byron"}"#);
    check(&Versioned::Plain { a: 1 }, "Plain", r#"{"a":1}"#);
    #[expect(deprecated, reason = "it is tested that it can be read")]
    check(&Versioned::PlainToo(7), "Plain.v2", "7");
}

#[test]
fn old_versions_are_upcast_one_after_the_other() {
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
        // Newer than the program.
        assert_eq!(Versioned::decode(&format!("{name}.v4"), b"{}"), Ok(None));
    }
    let measured = Versioned::Measured(BTreeMap::from([("celsius".to_owned(), 20.5)]));
    check_read("Measured", "20.5", &measured);
    check(&measured, "Measured.v2", r#"{"celsius":20.5}"#);
}

#[test]
fn upcasters_refuse_with_words_of_their_own() {
    check_refused::<Versioned>(
        "Named",
        "",
        "the body of an event cannot be upcast: there is no name: type=Named version=1",
    );
    let inner = Versioned::decode("Plain", b"[").unwrap_err();
    check_refused::<Versioned>(
        "Renamed",
        r#""Ada""#,
        &format!("the body of an event cannot be upcast: {inner}: type=Renamed version=2"),
    );
    check_refused::<Versioned>(
        "Renamed",
        "{",
        "the body of an event cannot be read: EOF while parsing an object at line 1 column 1: type=Renamed",
    );
    check_refused::<Versioned>(
        "Measured",
        r#""warm""#,
        "the body of an event cannot be read: invalid type: string \"warm\", expected f64: type=Measured",
    );
}

/// The path of the crate can be told, and names of the user do not meet those of the generated code.
mod elsewhere {
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
fn names_of_the_program_do_not_matter() {
    use elsewhere::Odd;
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
