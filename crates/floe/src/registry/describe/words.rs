//! The words of a description, as they were read.

use serde_json::{Map, Value as Json};

use super::{kind_of, retention_secs};
use crate::attribute::FieldKind;
use crate::error::{Error, ErrorKind, Result};

/// What a description says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
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
    pub(super) fields: Vec<FieldWords>,
    /// The name of each index, and the field that is its key.
    pub(super) indexes: Vec<(String, String)>,
}

/// What a description says of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldWords {
    pub(super) name: String,
    pub(super) attribute: String,
    pub(super) kind: FieldKind,
    pub(super) is_optional: bool,
    pub(super) is_hash: bool,
}

/// What is wrong with a description.
pub(super) fn fault(what: &str, facts: &[(&str, &str)]) -> Error {
    let facts = facts.iter().map(|(name, value)| format!(" {name}={value}"));
    let facts: String = facts.collect();
    let colon = if facts.is_empty() { "" } else { ":" };
    let message = format!("the description of the registry cannot be used, {what}{colon}{facts}");
    Error::new(ErrorKind::InvalidUse, message)
}

impl Words {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let json = serde_json::from_str(text);
        let json = json.map_err(|error| fault(&format!("it is no JSON, {error}"), &[]))?;
        let mut all = Taken::of(json, "")?;
        let retention_secs = all.optional_text("retention")?;
        let retention_secs = retention_secs.as_deref().map(retention);
        let words = Self {
            name: all.text("name")?,
            table: all.text("table")?,
            pk: all.text("pk")?,
            sk: all.text("sk")?,
            latest: all.text("latest")?,
            version: all.text_or("version", "version")?,
            published: all.text_or("published", "published_date")?,
            deleted: all.text_or("deleted", "deleted_date")?,
            status: all.optional_text("status")?,
            expires: all.optional_text("expires")?,
            retention_secs: retention_secs.transpose()?,
            legacy_keys: all.flag("legacy_keys")?,
            fields: all.each("fields", FieldWords::take)?,
            indexes: all.each("indexes", |mut index| {
                let names = (index.text("name")?, index.text("key")?);
                index.finish().map(|()| names)
            })?,
        };
        all.finish()?;
        Ok(words)
    }
}

fn retention(text: &str) -> Result<u64> {
    retention_secs(text).ok_or_else(|| {
        let what = "a retention is a number of days, hours, minutes or seconds, as 30d";
        fault(what, &[("retention", text)])
    })
}

impl FieldWords {
    fn take(mut all: Taken) -> Result<Self> {
        let name = all.text("name")?;
        let kind = all.text("kind")?;
        let field = Self {
            attribute: all.text_or("attribute", &name)?,
            kind: kind_of(&kind).ok_or_else(|| {
                let what = "a field is text, number, bytes or other";
                fault(what, &[("field", &name), ("kind", &kind)])
            })?,
            is_optional: all.flag("optional")?,
            is_hash: all.flag("hash")?,
            name,
        };
        all.finish()?;
        Ok(field)
    }
}

/// A map of JSON, of which word after word is taken.
struct Taken {
    place: &'static str,
    words: Map<String, Json>,
}

impl Taken {
    fn of(json: Json, place: &'static str) -> Result<Self> {
        match json {
            Json::Object(words) => Ok(Self { place, words }),
            _ => Err(fault("it is no map of words", &[("at", place)])),
        }
    }

    fn wrong(&self, word: &str, expected: &str) -> Error {
        let place = match self.place {
            "" => word.to_owned(),
            place => format!("{place}.{word}"),
        };
        fault(
            "a word is missing or of another form",
            &[("word", &place), ("expected", expected)],
        )
    }

    /// Takes out a word, if it is there.
    fn take<T>(
        &mut self,
        word: &str,
        expected: &str,
        read: impl FnOnce(Json) -> Option<T>,
    ) -> Result<Option<T>> {
        let taken = self.words.remove(word);
        let taken = taken.map(|json| read(json).ok_or_else(|| self.wrong(word, expected)));
        taken.transpose()
    }

    fn optional_text(&mut self, word: &str) -> Result<Option<String>> {
        self.take(word, "text", |json| match json {
            Json::String(text) if !text.is_empty() => Some(text),
            _ => None,
        })
    }

    fn text(&mut self, word: &str) -> Result<String> {
        let text = self.optional_text(word)?;
        text.ok_or_else(|| self.wrong(word, "text"))
    }

    fn text_or(&mut self, word: &str, default: &str) -> Result<String> {
        let text = self.optional_text(word)?;
        Ok(text.unwrap_or_else(|| default.to_owned()))
    }

    fn flag(&mut self, word: &str) -> Result<bool> {
        let flag = self.take(word, "true or false", |json| json.as_bool())?;
        Ok(flag.unwrap_or_default())
    }

    fn each<T>(&mut self, word: &'static str, take: impl Fn(Self) -> Result<T>) -> Result<Vec<T>> {
        let list = self.take(word, "a list", |json| match json {
            Json::Array(list) => Some(list),
            _ => None,
        })?;
        let each = list.into_iter().flatten();
        each.map(|json| take(Self::of(json, word)?)).collect()
    }

    /// A word that is not known was meant for a later program, and changes what the others mean.
    fn finish(self) -> Result<()> {
        match self.words.keys().next() {
            None => Ok(()),
            Some(word) => Err(fault("a word is not known", &[("word", word)])),
        }
    }
}
