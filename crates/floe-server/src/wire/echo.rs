//! Repeats a part of a request in an error message, as DynamoDB does for some lists and maps: in the `toString` format
//! of its Java classes, with all fields.
//!
//! Such an echo is many times longer than the original, so long ones are truncated.

use std::fmt::{self, Display, Write as _};

use floe_store::{Item, Value};

use super::java::sort_as_map;
use super::read::{Map, Str};
use super::value::TransactAttribute;

/// Maximum length of an echo before it is truncated.
const ECHO_BYTES_MAX: usize = 256 * 1024;

/// Returns the echo of a part of a request.
pub(crate) fn echo(part: impl Display) -> String {
    let mut echo = Bounded(String::new());
    match write!(echo, "{part}") {
        Ok(()) => echo.0,
        Err(fmt::Error) => echo.0 + "...",
    }
}

/// A text that rejects writes when it is full.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = ECHO_BYTES_MAX.saturating_sub(self.0.len());
        if text.len() > room {
            let end = (0..=room).rev().find(|at| text.is_char_boundary(*at));
            self.0.push_str(text.get(..end.unwrap_or(0)).unwrap_or(""));
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Displays a missing value as `null`.
pub(crate) struct OrNull<T>(pub(crate) Option<T>);

impl<T: Display> Display for OrNull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(shown) => shown.fmt(f),
            None => f.write_str("null"),
        }
    }
}

/// Displays elements as a list.
pub(crate) struct AsList<'a, T>(pub(crate) &'a [T]);

impl<T: Display> Display for AsList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, self.0.iter())
    }
}

fn write_list(
    f: &mut fmt::Formatter<'_>,
    elements: impl Iterator<Item = impl Display>,
) -> fmt::Result {
    f.write_str("[")?;
    for (n, element) in elements.enumerate() {
        let comma = if n == 0 { "" } else { ", " };
        write!(f, "{comma}{element}")?;
    }
    f.write_str("]")
}

fn write_map<'n>(
    f: &mut fmt::Formatter<'_>,
    entries: impl Iterator<Item = (&'n str, impl Display)>,
) -> fmt::Result {
    let mut entries: Vec<_> = entries.collect();
    sort_as_map(&mut entries, |(name, _)| name);
    f.write_str("{")?;
    for (n, (name, value)) in entries.iter().enumerate() {
        let comma = if n == 0 { "" } else { ", " };
        write!(f, "{comma}{name}={value}")?;
    }
    f.write_str("}")
}

/// Displays an item or a key.
pub(crate) struct AsItem<'a>(pub(crate) &'a Item);

impl Display for AsItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.0.iter();
        write_map(f, entries.map(|(name, value)| (&**name, AsValue(value))))
    }
}

/// Displays `ExpressionAttributeNames`.
pub(crate) struct AsNames<'a>(pub(crate) &'a Map<'a, Str<'a>>);

impl Display for AsNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_map(f, self.0.0.iter().map(|(key, name)| (&**key, name)))
    }
}

/// Displays `ExpressionAttributeValues`.
pub(crate) struct AsValues<'a>(pub(crate) &'a Map<'a, TransactAttribute>);

impl Display for AsValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.0.0.iter();
        write_map(f, entries.map(|(key, it)| (&**key, AsValue(&it.0.value))))
    }
}

/// Displays a value with all fields of its Java class, of which one is set.
struct AsValue<'a>(&'a Value);

impl Display for AsValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FIELDS: &str =
            "s n b iNT dECIMAL dOUBLE sS nS bS iNTSET dECIMALSET dOUBLESET m l nULL bOOL";
        f.write_str("AttributeValue(")?;
        for (n, field) in FIELDS.split(' ').enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{field}=")?;
            if field == self.field() {
                self.write_filled(f)?;
            } else {
                f.write_str("null")?;
            }
        }
        f.write_str(")")
    }
}

impl AsValue<'_> {
    const fn field(&self) -> &'static str {
        match self.0 {
            Value::S(_) => "s",
            Value::N(_) => "n",
            Value::B(_) => "b",
            Value::Ss(_) => "sS",
            Value::Ns(_) => "nS",
            Value::Bs(_) => "bS",
            Value::M(_) => "m",
            Value::L(_) => "l",
            Value::Null => "nULL",
            Value::Bool(_) => "bOOL",
        }
    }

    fn write_filled(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::S(text) => f.write_str(text),
            Value::N(number) => write!(f, "{number}"),
            Value::B(bytes) => Buffer(bytes).fmt(f),
            Value::Ss(set) => write_list(f, set.iter()),
            Value::Ns(set) => write_list(f, set.iter()),
            Value::Bs(set) => write_list(f, set.iter().map(|bytes| Buffer(bytes))),
            Value::M(map) => AsItem(map).fmt(f),
            Value::L(list) => write_list(f, list.iter().map(AsValue)),
            Value::Null => f.write_str("true"),
            Value::Bool(flag) => write!(f, "{flag}"),
        }
    }
}

/// Displays bytes. Java shows only their length.
struct Buffer<'a>(&'a [u8]);

impl Display for Buffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.0.len();
        write!(
            f,
            "java.nio.HeapByteBuffer[pos=0 lim={length} cap={length}]"
        )
    }
}

#[cfg(test)]
mod tests {
    use floe_store::{Number, Set};

    use super::*;

    #[test]
    fn value_is_displayed_with_all_fields() {
        let filled = |value: Value| {
            let shown = AsValue(&value).to_string();
            let fields = shown.strip_prefix("AttributeValue(").unwrap();
            let fields = fields.strip_suffix(")").unwrap();
            let filled: Vec<_> = fields
                .split(", ")
                .filter(|field| !field.ends_with("=null"))
                .collect();
            filled.join(", ")
        };
        assert_eq!(
            AsValue(&Value::from("x")).to_string(),
            "AttributeValue(s=x, n=null, b=null, iNT=null, dECIMAL=null, dOUBLE=null, sS=null, nS=null, bS=null, \
             iNTSET=null, dECIMALSET=null, dOUBLESET=null, m=null, l=null, nULL=null, bOOL=null)"
        );
        for (value, expected) in [
            (Value::from(1), "n=1"),
            (
                Value::from(vec![1_u8, 2]),
                "b=java.nio.HeapByteBuffer[pos=0 lim=2 cap=2]",
            ),
            (Value::from(false), "bOOL=false"),
            (Value::Null, "nULL=true"),
            (Value::L(vec![]), "l=[]"),
            (Value::M(Item::new()), "m={}"),
            (Value::Ns(Set::new([Number::from(1)]).unwrap()), "nS=[1]"),
        ] {
            assert_eq!(filled(value), expected);
        }
    }

    #[test]
    fn long_echo_is_truncated_between_characters() {
        assert_eq!(echo("short"), "short");
        let long = "a".repeat(ECHO_BYTES_MAX - 1) + "é";
        assert_eq!(echo(&long), "a".repeat(ECHO_BYTES_MAX - 1) + "...");
        assert_eq!(echo("a".repeat(ECHO_BYTES_MAX)), "a".repeat(ECHO_BYTES_MAX));
    }
}
