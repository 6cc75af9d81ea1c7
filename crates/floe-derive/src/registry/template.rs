//! The texts of keys, with the names of fields in braces: `lyr#{region}.{package}`.

use syn::{Error, LitStr, Result};

use crate::attributes::{error_at, error_if};

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// The name in braces.
    Name(String),
}

/// The text of a key, with its literal in the source.
#[derive(Clone)]
pub(super) struct Template {
    pub(super) literal: LitStr,
    pub(super) parts: Vec<Part>,
}

/// The name in braces for the number of a version.
pub(super) const VERSION: &str = "version";

impl Template {
    pub(super) fn parse(literal: LitStr) -> Result<Self> {
        let (text, mut parts) = (literal.value(), Vec::new());
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            push_text(&literal, before, &mut parts)?;
            let Some((name, after)) = after.split_once('}') else {
                return error_at(&literal, "unclosed brace\nhelp: write `{field}`");
            };
            if name.is_empty() || name.contains('{') {
                let message = "expected a field name in braces\nhelp: write `{field}`";
                return error_at(&literal, message);
            }
            parts.push(Part::Name(name.to_owned()));
            rest = after;
        }
        push_text(&literal, rest, &mut parts)?;
        Ok(Self { literal, parts })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Name(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    pub(super) fn is_of_version(&self) -> bool {
        self.names().any(|name| name == VERSION)
    }

    /// The text before the number of a version.
    pub(super) fn version_prefix(&self) -> Result<String> {
        match self.parts.as_slice() {
            [Part::Text(prefix), Part::Name(_)] => Ok(prefix.clone()),
            _ => Err(self.error(
                "a version key must be text followed by the version, so that versions are sorted by number\nhelp: write \
                    `vrsn#v{version}`",
            )),
        }
    }

    /// The punctuation of the key texts, which must be escaped in names.
    pub(super) fn escaped(&self) -> String {
        let mut signs: Vec<char> = vec!['#'];
        for part in &self.parts {
            if let Part::Text(text) = part {
                signs.extend(text.chars().filter(char::is_ascii_punctuation));
            }
        }
        signs.sort_unstable();
        signs.dedup();
        signs.into_iter().collect()
    }

    /// Checks that fields are separated by punctuation.
    pub(super) fn check_separators(&self) -> Result<()> {
        let is_separator = |text: &String| text.contains(|c: char| c.is_ascii_punctuation());
        let mut pairs = self.parts.windows(2);
        let adjacent = pairs.any(|two| matches!(two, [Part::Name(_), Part::Name(_)]));
        let mut threes = self.parts.windows(3);
        let unseparated = threes.any(|three| match three {
            [Part::Name(_), Part::Text(text), Part::Name(_)] => !is_separator(text),
            _ => false,
        });
        let message = "two fields of a key require a separator between them\nhelp: use a character such as `.` or `#`";
        error_if(adjacent || unseparated, &self.literal, message)
    }

    pub(super) fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::new_spanned(&self.literal, message)
    }
}

fn push_text(literal: &LitStr, text: &str, parts: &mut Vec<Part>) -> Result<()> {
    if text.contains('}') {
        return error_at(literal, "unmatched closing brace");
    }
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
    Ok(())
}
