//! What derived code calls. It is public for that alone and changes without notice.

pub use floe_store::Item;
pub use floe_store::limits::{
    PARTITION_KEY_BYTES_MAX as INDEX_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX as INDEX_SORT_BYTES_MAX,
};

use floe_store::Value;
use serde_json::{Value as Json, json};

use super::field::Rules;
use super::keys;
use super::schema::Schema;
use crate::attribute::Attribute;
use crate::attribute::document::to_json_text;
pub use crate::attribute::support::or_default;
use crate::error::Result;

/// A component of a key, checked by the rules of its field.
pub fn component<T>(rules: &Rules<T>, value: &T) -> Result<Option<Value>> {
    rules.validate(value)
}

/// The component of the key of a stored item. It is read from the key even if an index needs it as an
/// attribute too: items that were written before there was that index lack it.
pub fn load_component<T>(rules: &Rules<T>, schema: &Schema, item: &Item) -> Result<T> {
    let value = keys::component(schema, item, rules.field)?;
    (rules.decode)(Some(&value)).map_err(|invalid| rules.invalid(&invalid))
}

/// The JSON Schema of a field while its constraints are added.
#[derive(Debug)]
#[must_use = "a description is a schema once it is finished"]
pub struct Description(Json);

impl Description {
    /// What the type allows.
    pub fn of<T: Attribute>() -> Self {
        Self(T::json_schema())
    }

    /// Any value.
    pub fn any() -> Self {
        Self(json!({}))
    }

    /// A keyword with a value of the field's type. A value that is not stored is not told.
    #[expect(clippy::needless_pass_by_value, reason = "called with literals")]
    pub fn keyword<T: Attribute>(self, keyword: &str, value: T) -> Self {
        self.with(to_json(&value).map(|value| (keyword, value)))
    }

    /// The bounds of the length, by the keywords that the type has for it.
    pub fn length(self, min: Option<usize>, max: Option<usize>) -> Self {
        let (at_least, at_most) = match self.0.get("type").and_then(Json::as_str) {
            // The text of bytes is longer than the bytes.
            Some("string") if self.0.get("contentEncoding").is_none() => ("minLength", "maxLength"),
            Some("array") => ("minItems", "maxItems"),
            Some("object") => ("minProperties", "maxProperties"),
            _ => return self,
        };
        let bounds = [(at_least, min), (at_most, max)].into_iter();
        self.with(bounds.filter_map(|(keyword, bound)| Some((keyword, json!(bound?)))))
    }

    /// The regular expression that text has to match.
    pub fn pattern(self, pattern: &str) -> Self {
        self.with([("pattern", json!(pattern))])
    }

    /// The values that are allowed.
    pub fn one_of<T: Attribute>(self, allowed: &[T]) -> Self {
        let allowed = allowed.iter().filter_map(to_json).collect();
        self.with([("enum", Json::Array(allowed))])
    }

    /// What a JSON Schema says. Text that is none adds nothing here: it refuses every value.
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
