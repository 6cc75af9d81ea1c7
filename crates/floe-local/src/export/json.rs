//! Items as DynamoDB's JSON: `{"id":{"S":"a"},"tags":{"SS":["x","y"]}}`.
//!
//! Values are written straight into a buffer, and read from a parsed line piece by piece. Numbers are
//! texts in this form, so that none of their 38 digits is lost, and bytes are base64.

use std::fmt;

use floe_store::{Item, Name, Number, Set, SetError, Text, Value, ValueType};
use serde_json::Value as Json;

use super::base64;

/// Why a piece of JSON is not what it should be, and where in the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The way from the item to the piece, as in `address.lines[2]`; empty for the item itself.
    path: String,
    what: String,
}

impl Fault {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            what: what.into(),
        }
    }

    /// The same fault, seen from the map around it.
    pub(super) fn under(mut self, name: &str) -> Self {
        let dot = match self.path.chars().next() {
            None | Some('[') => "",
            Some(_) => ".",
        };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }

    fn at(self, index: usize) -> Self {
        self.under(&format!("[{index}]"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.path.is_empty() {
            write!(f, " at={}", self.path)?;
        }
        Ok(())
    }
}

/// Appends an item.
pub(super) fn push_item(out: &mut Vec<u8>, item: &Item) {
    push_all(out, b"{}", item.iter(), |out, (name, value)| {
        push_text(out, name);
        out.push(b':');
        push_value(out, value);
    });
}

fn push_value(out: &mut Vec<u8>, value: &Value) {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(value.value_type().as_str().as_bytes());
    out.extend_from_slice(b"\":");
    match value {
        Value::S(text) => push_text(out, text),
        Value::N(number) => push_number(out, number),
        Value::B(bytes) => push_bytes(out, bytes),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Bool(true) | Value::Null => out.extend_from_slice(b"true"),
        Value::M(map) => push_item(out, map),
        Value::L(list) => push_all(out, b"[]", list, push_value),
        Value::Ss(set) => push_all(out, b"[]", set, |out, text| push_text(out, text)),
        Value::Ns(set) => push_all(out, b"[]", set, push_number),
        Value::Bs(set) => push_all(out, b"[]", set, |out, bytes| push_bytes(out, bytes)),
    }
    out.push(b'}');
}

/// Appends a list or map: its brackets, and its elements with commas between them.
fn push_all<T>(
    out: &mut Vec<u8>,
    [open, close]: &[u8; 2],
    elements: impl IntoIterator<Item = T>,
    mut push: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(*open);
    for (n, element) in elements.into_iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        push(out, element);
    }
    out.push(*close);
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if c < ' ' => out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes()),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

fn push_number(out: &mut Vec<u8>, number: &Number) {
    push_text(out, &number.to_string());
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_text(out, &base64::encode(bytes));
}

/// The item of a JSON object of attributes.
pub(super) fn read_item(json: Json) -> Result<Item, Fault> {
    let Json::Object(attributes) = json else {
        return Err(wrong("an object of attributes", &json));
    };
    let mut item = Item::with_capacity(attributes.len());
    for (name, json) in attributes {
        let value = read_value(json).map_err(|fault| fault.under(&name))?;
        item.insert(Name::from(name), value);
    }
    Ok(item)
}

fn read_value(json: Json) -> Result<Value, Fault> {
    let Json::Object(typed) = json else {
        return Err(wrong("an object of a type and a value", &json));
    };
    let mut typed = typed.into_iter();
    let (Some((name, json)), None) = (typed.next(), typed.next()) else {
        return Err(Fault::new("a value must have exactly one type"));
    };
    let Some(value_type) = ValueType::from_name(&name) else {
        return Err(Fault::new(format!("there is no such type: type={name}")));
    };
    Ok(match value_type {
        ValueType::S => Value::S(read_text(json)?),
        ValueType::N => Value::N(read_number(json)?),
        ValueType::B => Value::B(read_bytes(json)?),
        ValueType::Bool => match json {
            Json::Bool(flag) => Value::Bool(flag),
            json => return Err(wrong("true or false", &json)),
        },
        ValueType::Null => match json {
            Json::Bool(true) => Value::Null,
            json => return Err(wrong("true", &json)),
        },
        ValueType::M => Value::M(read_item(json)?),
        ValueType::L => Value::L(read_list(json, read_value)?),
        ValueType::Ss => Value::Ss(read_set(json, read_text)?),
        ValueType::Ns => Value::Ns(read_set(json, read_number)?),
        ValueType::Bs => Value::Bs(read_set(json, read_bytes)?),
    })
}

fn read_list<T>(json: Json, read: impl Fn(Json) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
    let Json::Array(elements) = json else {
        return Err(wrong("a list", &json));
    };
    let read = |(n, element)| read(element).map_err(|fault| fault.at(n));
    elements.into_iter().enumerate().map(read).collect()
}

fn read_set<T: Ord>(json: Json, read: impl Fn(Json) -> Result<T, Fault>) -> Result<Set<T>, Fault> {
    Set::new(read_list(json, read)?).map_err(|e: SetError| Fault::new(e.to_string()))
}

fn read_text(json: Json) -> Result<Text, Fault> {
    match json {
        Json::String(text) => Ok(text.into()),
        json => Err(wrong("a text", &json)),
    }
}

fn read_number(json: Json) -> Result<Number, Fault> {
    match json {
        Json::String(text) => text
            .parse()
            .map_err(|e| Fault::new(format!("{e}: number={text}"))),
        json => Err(wrong("a number as a text", &json)),
    }
}

fn read_bytes(json: Json) -> Result<Vec<u8>, Fault> {
    match json {
        Json::String(text) => {
            base64::decode(&text).ok_or_else(|| Fault::new("the text is not base64"))
        }
        json => Err(wrong("bytes as base64", &json)),
    }
}

/// The fault of a piece of another kind than the one that is wanted.
pub(super) fn wrong(wanted: &str, json: &Json) -> Fault {
    let found = match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    };
    Fault::new(format!("expected {wanted}, found {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(item: &Item) -> String {
        let mut out = Vec::new();
        push_item(&mut out, item);
        String::from_utf8(out).unwrap()
    }

    fn check(value: impl Into<Value>, json: &str) {
        let item = Item::new().with("a", value);
        assert_eq!(text(&item), format!(r#"{{"a":{json}}}"#));
        assert_eq!(
            read_item(serde_json::from_str(&text(&item)).unwrap()).unwrap(),
            item
        );
    }

    fn strings(elements: &[&str]) -> Value {
        Value::Ss(Set::new(elements.iter().map(|e| Text::from(*e))).unwrap())
    }

    #[test]
    fn all_ten_types_come_back() {
        check("text", r#"{"S":"text"}"#);
        check("", r#"{"S":""}"#);
        check(-5, r#"{"N":"-5"}"#);
        check(vec![0u8, 255], r#"{"B":"AP8="}"#);
        check(true, r#"{"BOOL":true}"#);
        check(false, r#"{"BOOL":false}"#);
        check(Value::Null, r#"{"NULL":true}"#);
        check(
            Item::new().with("x", 1).with("y", "z"),
            r#"{"M":{"x":{"N":"1"},"y":{"S":"z"}}}"#,
        );
        check(Item::new(), r#"{"M":{}}"#);
        check(
            vec![Value::from(1), Value::Null],
            r#"{"L":[{"N":"1"},{"NULL":true}]}"#,
        );
        check(Value::L(vec![]), r#"{"L":[]}"#);
        check(strings(&["b", "a"]), r#"{"SS":["a","b"]}"#);
        check(
            Set::new([Number::from(10), Number::from(9)]).unwrap(),
            r#"{"NS":["9","10"]}"#,
        );
        check(
            Set::new([vec![1u8], vec![]]).unwrap(),
            r#"{"BS":["","AQ=="]}"#,
        );
    }

    #[test]
    fn every_digit_of_a_number_comes_back() {
        for digits in [
            "12345678901234567890123456789012345678",
            "-1.2345678901234567890123456789012345678E-100",
            "9.9999999999999999999999999999999999999E+125",
            "1E-130",
            "0",
        ] {
            let item = Item::new().with("n", digits.parse::<Number>().unwrap());
            let json = serde_json::from_str(&text(&item)).unwrap();
            assert_eq!(read_item(json).unwrap(), item, "{digits}");
        }
    }

    #[test]
    fn every_character_comes_back_on_one_line() {
        let all: String = (0..0x3000)
            .chain([0xfffd, 0x1f600, 0x10ffff])
            .filter_map(char::from_u32)
            .collect();
        let item = Item::new().with(format!("name \"\\ {all}"), all);
        let line = text(&item);
        assert!(!line.contains('\n') && !line.contains('\r'));
        assert_eq!(
            read_item(serde_json::from_str(&line).unwrap()).unwrap(),
            item
        );
    }

    #[test]
    fn the_deepest_item_comes_back() {
        let mut value = Value::from("deep");
        for level in 0..31 {
            value = match level % 2 {
                0 => Value::L(vec![value]),
                _ => Value::M(Item::new().with("m", value)),
            };
        }
        let item = Item::new().with("a", value);
        assert_eq!(
            read_item(serde_json::from_str(&text(&item)).unwrap()).unwrap(),
            item
        );
    }

    #[test]
    fn a_fault_says_what_is_wrong_and_where() {
        for (json, fault) in [
            (r#"[]"#, "expected an object of attributes, found a list"),
            (
                r#"{"a":"b"}"#,
                "expected an object of a type and a value, found a text at=a",
            ),
            (r#"{"a":{}}"#, "a value must have exactly one type at=a"),
            (
                r#"{"a":{"S":"x","N":"1"}}"#,
                "a value must have exactly one type at=a",
            ),
            (r#"{"a":{"X":"x"}}"#, "there is no such type: type=X at=a"),
            (r#"{"a":{"S":1}}"#, "expected a text, found a number at=a"),
            (
                r#"{"a":{"N":1}}"#,
                "expected a number as a text, found a number at=a",
            ),
            (r#"{"a":{"B":"?"}}"#, "the text is not base64 at=a"),
            (
                r#"{"a":{"NULL":false}}"#,
                "expected true, found a boolean at=a",
            ),
            (
                r#"{"a":{"BOOL":null}}"#,
                "expected true or false, found null at=a",
            ),
            (r#"{"a":{"SS":[]}}"#, "a set may not be empty at=a"),
            (
                r#"{"a":{"NS":["1","1.0"]}}"#,
                "a set may not hold an element twice at=a",
            ),
            (
                r#"{"a":{"M":{"b":{"L":[{"S":""},{"SS":["x",2]}]}}}}"#,
                "expected a text, found a number at=a.b[1][1]",
            ),
            (
                r#"{"a":{"L":[{"M":{"b":{"X":1}}}]}}"#,
                "there is no such type: type=X at=a[0].b",
            ),
        ] {
            let found = read_item(serde_json::from_str(json).unwrap()).unwrap_err();
            assert_eq!(found.to_string(), fault, "{json}");
        }
        let json = serde_json::from_str(r#"{"a":{"N":"x"}}"#).unwrap();
        let found = read_item(json).unwrap_err().to_string();
        assert!(found.ends_with("number=x at=a"), "{found}");
    }
}
