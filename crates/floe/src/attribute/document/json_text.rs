//! Values as JSON text, for key components.
//!
//! This does not use `serde_json::Value`, whose numbers have fewer digits than the store's.

use floe_store::json::{Reader, Token};
use floe_store::{Item, Value};

use super::super::{Invalid, in_list, in_map};
use super::deeper;

/// Writes a value as JSON without whitespace: numbers in plain decimal, maps sorted by name, so that equal values have
/// equal texts.
///
/// # Errors
///
/// If the value contains bytes or sets, which JSON does not have, or is nested too deeply.
pub fn to_json_text(value: &Value) -> Result<String, Invalid> {
    let mut out = String::new();
    write(value, 1, &mut out)?;
    Ok(out)
}

fn write(value: &Value, level: usize, out: &mut String) -> Result<(), Invalid> {
    match value {
        Value::S(text) => write_text(text, out),
        Value::N(number) => out.push_str(&number.to_string()),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
        Value::L(list) => {
            out.push('[');
            for (at, value) in list.iter().enumerate() {
                separate(at, out);
                let written = deeper(level).and_then(|level| write(value, level, out));
                written.map_err(in_list(at))?;
            }
            out.push(']');
        }
        Value::M(map) => {
            out.push('{');
            for (at, (name, value)) in map.iter().enumerate() {
                separate(at, out);
                write_text(name, out);
                out.push(':');
                let written = deeper(level).and_then(|level| write(value, level, out));
                written.map_err(in_map(name))?;
            }
            out.push('}');
        }
        Value::B(_) | Value::Ss(_) | Value::Ns(_) | Value::Bs(_) => {
            let actual = value.value_type();
            let reason = format!("bytes and sets cannot be in a key: type={actual}");
            return Err(Invalid::new(reason));
        }
    }
    Ok(())
}

fn separate(at: usize, out: &mut String) {
    if at > 0 {
        out.push(',');
    }
}

fn write_text(text: &str, out: &mut String) {
    // The `Display` of a JSON string is its escaped form.
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// Reads a JSON text. Returns `None` if it is not JSON, or not storable: a number of more than 38 digits or out of
/// range, a duplicate name in an object, more than 32 levels.
pub fn from_json_text(text: &str) -> Option<Value> {
    let mut reader = Reader::new(text);
    let value = read(&mut reader, 1)?;
    reader.finish().ok().map(|()| value)
}

fn read(reader: &mut Reader<'_>, level: usize) -> Option<Value> {
    Some(match reader.peek().ok()? {
        Token::String => Value::from(&*reader.string().ok()?),
        Token::Number => Value::N(reader.number().ok()?.parse().ok()?),
        Token::Bool => Value::Bool(reader.bool().ok()?),
        Token::Null => {
            reader.null().ok()?;
            Value::Null
        }
        Token::Array => {
            let mut list = Vec::new();
            reader.begin_array().ok()?;
            while reader.next_element().ok()? {
                list.push(read(reader, deeper(level).ok()?)?);
            }
            Value::L(list)
        }
        Token::Object => {
            let mut map = Item::new();
            reader.begin_object().ok()?;
            while let Some(name) = reader.next_name().ok()? {
                let value = read(reader, deeper(level).ok()?)?;
                if map.insert(&*name, value).is_some() {
                    return None;
                }
            }
            Value::M(map)
        }
    })
}
