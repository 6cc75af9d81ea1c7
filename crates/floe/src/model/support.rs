//! Functions called by derived code. Not part of the public API.

pub use floe_store::Item;
pub use floe_store::limits::{
    PARTITION_KEY_BYTES_MAX as INDEX_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX as INDEX_SORT_BYTES_MAX,
};

use floe_store::{Number, Value};
use serde_json::{Value as Json, json};

use super::field::Rules;
use super::keys;
use super::schema::Schema;
use crate::attribute::Attribute;
use crate::attribute::document::to_json_text;
pub use crate::attribute::support::or_default;
use crate::error::Result;

/// Validates a component of a key by the rules of its field.
pub fn component<T>(rules: &Rules<T>, value: &T) -> Result<Option<Value>> {
    rules.validate(value)
}

/// The number of a bound; `None` if values of its type are not stored as numbers.
pub fn bound<T: Attribute>(bound: &T) -> Option<Number> {
    match bound.to_value() {
        Ok(Some(Value::N(number))) => Some(number),
        _ => None,
    }
}

/// Reads a component of the key of a stored item. It is read from the key even if an index has it as an attribute too,
/// because items that were written before the index was added lack the attribute.
pub fn load_component<T>(rules: &Rules<T>, schema: &Schema, item: &Item) -> Result<T> {
    let value = keys::component(schema, item, rules.field)?;
    (rules.decode)(Some(&value)).map_err(|invalid| rules.invalid(&invalid))
}

/// The JSON Schema of a field while its constraints are added.
#[derive(Debug)]
#[must_use = "a description does nothing until it is finished"]
pub struct Description(Json);

impl Description {
    /// The schema of the type.
    pub fn of<T: Attribute>() -> Self {
        Self(T::json_schema())
    }

    /// Any value.
    pub fn any() -> Self {
        Self(json!({}))
    }

    /// Adds a keyword with a value of the field's type, unless the value has no stored form.
    #[expect(clippy::needless_pass_by_value, reason = "called with literals")]
    pub fn keyword<T: Attribute>(self, keyword: &str, value: T) -> Self {
        self.with(to_json(&value).map(|value| (keyword, value)))
    }

    /// Adds the bounds of the length, with the keywords of the type.
    pub fn length(self, min: Option<usize>, max: Option<usize>) -> Self {
        let (at_least, at_most) = match self.0.get("type").and_then(Json::as_str) {
            // Encoded bytes are longer than the bytes, so they get no bounds.
            Some("string") if self.0.get("contentEncoding").is_none() => ("minLength", "maxLength"),
            Some("array") => ("minItems", "maxItems"),
            Some("object") => ("minProperties", "maxProperties"),
            _ => return self,
        };
        let bounds = [(at_least, min), (at_most, max)].into_iter();
        self.with(bounds.filter_map(|(keyword, bound)| Some((keyword, json!(bound?)))))
    }

    /// Adds the regular expression that the text must match.
    pub fn pattern(self, pattern: &str) -> Self {
        self.with([("pattern", json!(pattern))])
    }

    /// Adds the allowed values.
    pub fn one_of<T: Attribute>(self, allowed: &[T]) -> Self {
        let allowed = allowed.iter().filter_map(to_json).collect();
        self.with([("enum", Json::Array(allowed))])
    }

    /// Adds the keywords of a JSON Schema. An invalid schema adds nothing here; it rejects every value.
    pub fn document(self, schema: &str) -> Self {
        match serde_json::from_str(schema) {
            Ok(Json::Object(keywords)) => self.with(keywords),
            _ => self,
        }
    }

    /// The schema.
    pub fn finish(self) -> Json {
        self.0
    }

    fn with<K: Into<String>>(mut self, keywords: impl IntoIterator<Item = (K, Json)>) -> Self {
        if let Json::Object(schema) = &mut self.0 {
            let keywords = keywords.into_iter();
            schema.extend(keywords.map(|(keyword, value)| (keyword.into(), value)));
        }
        self
    }
}

fn to_json<T: Attribute>(value: &T) -> Option<Json> {
    let value = value.to_value().ok()??;
    serde_json::from_str(&to_json_text(&value).ok()?).ok()
}
