//! Values as JSON text, for the components of keys.
//!
//! Not through `serde_json::Value`, whose numbers have fewer digits than those of the store.

use floe_store::{Item, Number, Value};

use super::super::attribute::Invalid;
use super::{deeper, in_list, in_map};

/// The value as JSON without blanks: numbers in plain decimal, maps sorted by name, so that equal values
/// have equal texts.
///
/// # Errors
///
/// When the value holds bytes or sets, which JSON does not have, or nests too deep.
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
    // Of a string this is the JSON form, and nothing else.
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// The value of a JSON text; nothing if it is none, or one that the store cannot hold: a number beyond 38
/// digits or out of range, a name twice in an object, more than 32 levels.
pub fn from_json_text(text: &str) -> Option<Value> {
    let mut cursor = Cursor { rest: text };
    let value = cursor.value(1)?;
    cursor.skip_blanks();
    cursor.rest.is_empty().then_some(value)
}

/// The text that is still to be read.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Takes this text if it comes next.
    fn take(&mut self, expected: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    /// Takes this sign if it comes next after blanks.
    fn sign(&mut self, expected: &str) -> Option<()> {
        self.skip_blanks();
        self.take(expected)
    }

    fn value(&mut self, level: usize) -> Option<Value> {
        self.skip_blanks();
        match self.rest.as_bytes().first()? {
            b'"' => self.string().map(Value::from),
            b'[' => self.list(level).map(Value::L),
            b'{' => self.map(level).map(Value::M),
            b't' => self.take("true").map(|()| Value::Bool(true)),
            b'f' => self.take("false").map(|()| Value::Bool(false)),
            b'n' => self.take("null").map(|()| Value::Null),
            _ => self.number().map(Value::N),
        }
    }

    fn list(&mut self, level: usize) -> Option<Vec<Value>> {
        self.take("[")?;
        let mut list = Vec::new();
        if self.sign("]").is_some() {
            return Some(list);
        }
        loop {
            list.push(self.value(deeper(level).ok()?)?);
            if self.sign("]").is_some() {
                return Some(list);
            }
            self.sign(",")?;
        }
    }

    fn map(&mut self, level: usize) -> Option<Item> {
        self.take("{")?;
        let mut map = Item::new();
        if self.sign("}").is_some() {
            return Some(map);
        }
        loop {
            self.skip_blanks();
            let name = self.string()?;
            self.sign(":")?;
            let value = self.value(deeper(level).ok()?)?;
            if map.insert(name, value).is_some() {
                return None;
            }
            if self.sign("}").is_some() {
                return Some(map);
            }
            self.sign(",")?;
        }
    }

    fn string(&mut self) -> Option<String> {
        let inside = self.rest.strip_prefix('"')?;
        let mut escaped = false;
        let end = inside.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        // Two quotation marks more than what is between them.
        let (quoted, rest) = self.rest.split_at_checked(end + 2)?;
        self.rest = rest;
        serde_json::from_str(quoted).ok()
    }

    /// A number as JSON has it: stricter than the store, which takes `+1`, `01` and `.5`.
    fn number(&mut self) -> Option<Number> {
        let start = self.rest;
        let _ = self.take("-");
        let whole = self.digits()?;
        if whole.starts_with('0') && whole != "0" {
            return None;
        }
        if self.take(".").is_some() {
            self.digits()?;
        }
        if self.take("e").or_else(|| self.take("E")).is_some() {
            let _ = self.take("+").or_else(|| self.take("-"));
            self.digits()?;
        }
        let length = start.len() - self.rest.len();
        start.get(..length)?.parse().ok()
    }

    /// Takes one digit or more.
    fn digits(&mut self) -> Option<&'a str> {
        let count = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        (count > 0).then_some(digits)
    }
}
