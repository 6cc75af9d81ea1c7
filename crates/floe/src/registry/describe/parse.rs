//! Parses the properties of a description.

use serde_json::{Map, Value as Json};

use super::{kind_of, retention_secs};
use crate::attribute::FieldKind;
use crate::error::{Error, ErrorKind, Result};

/// A parsed description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) name: String,
    pub(super) table: String,
    pub(super) pk: String,
    pub(super) sk: String,
    pub(super) latest: String,
    pub(super) version: String,
    pub(super) published: String,
    pub(super) deleted: String,
    pub(super) status: Option<String>,
    pub(super) expires: Option<String>,
    pub(super) retention_secs: Option<u64>,
    pub(super) legacy_keys: bool,
    pub(super) fields: Vec<FieldDescription>,
    /// The name of each index, and its key field.
    pub(super) indexes: Vec<(String, String)>,
}

/// The description of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldDescription {
    pub(super) name: String,
    pub(super) attribute: String,
    pub(super) kind: FieldKind,
    pub(super) is_optional: bool,
    pub(super) is_hash: bool,
}

/// The error of an invalid description.
pub(super) fn invalid_description(what: &str, facts: &[(&str, &str)]) -> Error {
    let facts = facts.iter().map(|(name, value)| format!(" {name}={value}"));
    let facts: String = facts.collect();
    let colon = if facts.is_empty() { "" } else { ":" };
    let message = format!("invalid registry description: {what}{colon}{facts}");
    Error::new(ErrorKind::InvalidUse, message)
}

impl Description {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let json = serde_json::from_str(text);
        let json = json.map_err(|error| invalid_description(&format!("not JSON: {error}"), &[]))?;
        let mut properties = PropertyReader::of(json, "")?;
        let retention_secs = properties.optional_text("retention")?;
        let retention_secs = retention_secs.as_deref().map(retention);
        let description = Self {
            name: properties.text("name")?,
            table: properties.text("table")?,
            pk: properties.text("pk")?,
            sk: properties.text("sk")?,
            latest: properties.text("latest")?,
            version: properties.text_or("version", "version")?,
            published: properties.text_or("published", "published_date")?,
            deleted: properties.text_or("deleted", "deleted_date")?,
            status: properties.optional_text("status")?,
            expires: properties.optional_text("expires")?,
            retention_secs: retention_secs.transpose()?,
            legacy_keys: properties.flag("legacy_keys")?,
            fields: properties.each("fields", FieldDescription::take)?,
            indexes: properties.each("indexes", |mut index| {
                let names = (index.text("name")?, index.text("key")?);
                index.finish().map(|()| names)
            })?,
        };
        properties.finish()?;
        Ok(description)
    }
}

fn retention(text: &str) -> Result<u64> {
    retention_secs(text).ok_or_else(|| {
        let what = "a retention must be a number of days, hours, minutes or seconds, such as 30d";
        invalid_description(what, &[("retention", text)])
    })
}

impl FieldDescription {
    fn take(mut properties: PropertyReader) -> Result<Self> {
        let name = properties.text("name")?;
        let kind = properties.text("kind")?;
        let field = Self {
            attribute: properties.text_or("attribute", &name)?,
            kind: kind_of(&kind).ok_or_else(|| {
                let what = "the kind of a field must be text, number, bytes or other";
                invalid_description(what, &[("field", &name), ("kind", &kind)])
            })?,
            is_optional: properties.flag("optional")?,
            is_hash: properties.flag("hash")?,
            name,
        };
        properties.finish()?;
        Ok(field)
    }
}

/// A JSON object from which properties are removed one by one.
struct PropertyReader {
    path: &'static str,
    properties: Map<String, Json>,
}

impl PropertyReader {
    fn of(json: Json, path: &'static str) -> Result<Self> {
        match json {
            Json::Object(properties) => Ok(Self { path, properties }),
            _ => Err(invalid_description("not a JSON object", &[("at", path)])),
        }
    }

    fn wrong_type(&self, property: &str, expected: &str) -> Error {
        let path = match self.path {
            "" => property.to_owned(),
            path => format!("{path}.{property}"),
        };
        invalid_description(
            "a property is missing or has the wrong type",
            &[("property", &path), ("expected", expected)],
        )
    }

    /// Removes a property, if it exists.
    fn take<T>(
        &mut self,
        property: &str,
        expected: &str,
        read: impl FnOnce(Json) -> Option<T>,
    ) -> Result<Option<T>> {
        let taken = self.properties.remove(property);
        let taken = taken.map(|json| read(json).ok_or_else(|| self.wrong_type(property, expected)));
        taken.transpose()
    }

    fn optional_text(&mut self, property: &str) -> Result<Option<String>> {
        self.take(property, "text", |json| match json {
            Json::String(text) if !text.is_empty() => Some(text),
            _ => None,
        })
    }

    fn text(&mut self, property: &str) -> Result<String> {
        let text = self.optional_text(property)?;
        text.ok_or_else(|| self.wrong_type(property, "text"))
    }

    fn text_or(&mut self, property: &str, default: &str) -> Result<String> {
        let text = self.optional_text(property)?;
        Ok(text.unwrap_or_else(|| default.to_owned()))
    }

    fn flag(&mut self, property: &str) -> Result<bool> {
        let flag = self.take(property, "true or false", |json| json.as_bool())?;
        Ok(flag.unwrap_or_default())
    }

    fn each<T>(
        &mut self,
        property: &'static str,
        take: impl Fn(Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let list = self.take(property, "a list", |json| match json {
            Json::Array(list) => Some(list),
            _ => None,
        })?;
        let each = list.into_iter().flatten();
        each.map(|json| take(Self::of(json, property)?)).collect()
    }

    /// Rejects unknown properties: they come from a later version, and may change the meaning of the others.
    fn finish(self) -> Result<()> {
        match self.properties.keys().next() {
            None => Ok(()),
            Some(property) => Err(invalid_description(
                "unknown property",
                &[("property", property)],
            )),
        }
    }
}
