//! Documents: values of any serde type as attributes, and as JSON text.
//!
//! Fields with `#[model(serde)]` are converted directly between the type and stored values by [`to_value`] and
//! [`from_value`], without JSON in between: numbers keep all their digits, and bytes stay bytes. Key components that are
//! neither text nor numbers are JSON text, by [`to_json_text`] and [`from_json_text`]. Types that need no serde are in
//! [`attribute`](super).
//!
//! | serde | stored form |
//! |---|---|
//! | `None` | no attribute; inside a struct no entry of the map; inside lists and maps null |
//! | unit | null |
//! | bool, text, char | `BOOL`, `S` |
//! | integers, floats | `N`: integers exactly, floats as their shortest decimal |
//! | bytes (`serialize_bytes`) | `B` |
//! | sequences, tuples | `L`; sets are read as sequences too |
//! | structs, maps | `M`, keys as text |
//! | enums | the name of the variant, or a map from the name to its content, as in serde's JSON |

use floe_store::limits::NESTING_LEVELS_MAX;
use floe_store::{Number, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Attribute, Invalid, in_list, in_map, mismatch, missing};

mod json_text;
mod map_key;
mod read;
mod write;

pub use json_text::{from_json_text, to_json_text};

/// An untyped document. A JSON null is stored as null, also as the whole attribute.
pub type Json = serde_json::Value;

/// Converts a serde value to an attribute; `None` if the attribute is omitted.
///
/// ```
/// use floe::attribute::document::to_value;
/// use floe_store::{Item, Value};
///
/// #[derive(serde::Serialize)]
/// struct Address { street: &'static str, floor: Option<i8> }
///
/// let address = Address { street: "Main", floor: None };
/// let stored = Item::new().with("street", "Main");
/// assert_eq!(to_value(&address)?, Some(Value::M(stored)));
/// # Ok::<(), floe::attribute::Invalid>(())
/// ```
///
/// # Errors
///
/// If a part of the value has no stored form: a number of more than 38 digits, a map whose keys are not text, more
/// than 32 levels. The path of the error names the part.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Option<Value>, Invalid> {
    to_value_below(value, 0)
}

/// Like [`to_value`], for a value that is nested this many levels below the attribute.
pub(crate) fn to_value_below<T: Serialize + ?Sized>(
    value: &T,
    levels: usize,
) -> Result<Option<Value>, Invalid> {
    let level = 1 + levels;
    value.serialize(write::Writer { level })
}

/// Reads a serde value from an attribute or its absence.
///
/// ```
/// use floe::attribute::document::from_value;
/// use floe_store::{Item, Value};
///
/// #[derive(serde::Deserialize)]
/// struct Address { street: String, floor: Option<i8> }
///
/// let stored = Value::M(Item::new().with("street", "Main"));
/// let address: Address = from_value(Some(&stored))?;
/// assert_eq!((address.street.as_str(), address.floor), ("Main", None));
/// # Ok::<(), floe::attribute::Invalid>(())
/// ```
///
/// # Errors
///
/// If the attribute has another form. The path of the error names the location.
pub fn from_value<T: DeserializeOwned>(value: Option<&Value>) -> Result<T, Invalid> {
    T::deserialize(read::Reader::top(value))
}

/// Returns the next nesting level, or an error beyond the maximum.
fn deeper(level: usize) -> Result<usize, Invalid> {
    if level >= NESTING_LEVELS_MAX {
        let reason = format!("the value is nested too deeply: levels_max={NESTING_LEVELS_MAX}");
        return Err(Invalid::new(reason));
    }
    Ok(level + 1)
}

impl Attribute for Json {
    fn to_value(&self) -> Result<Option<Value>, Invalid> {
        to_value(self)
    }

    fn from_value(value: Option<&Value>) -> Result<Self, Invalid> {
        json_from_value(value.ok_or_else(missing)?, 1)
    }

    fn json_schema() -> Json {
        json!({})
    }
}

fn json_from_value(value: &Value, level: usize) -> Result<Json, Invalid> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::N(number) => Json::Number(json_number(number)?),
        Value::S(text) => Json::String(text.to_string()),
        Value::L(list) => {
            let mut array = Vec::with_capacity(list.len());
            for (at, value) in list.iter().enumerate() {
                let json = deeper(level).and_then(|level| json_from_value(value, level));
                array.push(json.map_err(in_list(at))?);
            }
            Json::Array(array)
        }
        Value::M(map) => {
            let mut object = serde_json::Map::with_capacity(map.len());
            for (name, value) in map.iter() {
                let json = deeper(level).and_then(|level| json_from_value(value, level));
                object.insert(name.to_string(), json.map_err(in_map(name))?);
            }
            Json::Object(object)
        }
        // Written back, they would become text and lists, which are different values.
        Value::B(_) | Value::Ss(_) | Value::Ns(_) | Value::Bs(_) => {
            return Err(mismatch("JSON", value));
        }
    })
}

fn stored_number(text: &str) -> Result<Number, Invalid> {
    text.parse()
        .map_err(|_| Invalid::new(format!("the number cannot be stored: value={text}")))
}

/// Converts a number to JSON, whose numbers hold fewer digits than the store's. Fails rather than losing digits.
fn json_number(number: &Number) -> Result<serde_json::Number, Invalid> {
    if let Some(small) = number.to_i64() {
        return Ok(small.into());
    }
    if let Some(large) = number.to_u64() {
        return Ok(large.into());
    }
    let float = number.to_f64();
    let json = if Number::try_from(float) == Ok(*number) {
        serde_json::Number::from_f64(float)
    } else {
        // The program may have enabled arbitrary precision in serde_json.
        let exact = number.to_string().parse::<serde_json::Number>().ok();
        exact.filter(|json| json.to_string().parse() == Ok(*number))
    };
    json.ok_or_else(|| too_many_digits(number))
}

fn too_many_digits(number: &Number) -> Invalid {
    Invalid::new(format!(
        "the number has more digits than a float can represent: value={number}"
    ))
}

#[cfg(test)]
mod tests;
