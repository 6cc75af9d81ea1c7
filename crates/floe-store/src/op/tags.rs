//! TagResource and UntagResource: add and remove tags of a table.

use std::collections::BTreeMap;

use super::constraint::Faults;
use crate::error::{Error, Result, ensure};
use crate::limits::{TAG_KEY_CHARS, TAG_VALUE_CHARS_MAX, TAGS_MAX};
use crate::table::TableDef;

/// Adds and removes tags of a table.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct UpdateTags {
    /// The table.
    pub table_name: String,
    /// Tags to add or change.
    pub add: BTreeMap<String, String>,
    /// Keys of tags to remove.
    pub remove: Vec<String>,
}

impl UpdateTags {
    /// Checks the request alone, without the table.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        Faults::check(|faults| faults.table_name_by_pattern(&self.table_name))?;
        ensure(!self.add.is_empty() || !self.remove.is_empty(), || {
            Error::validation("Atleast one Tag needs to be provided as Input.")
        })?;
        check_tags(&self.add)?;
        self.remove.iter().try_for_each(|key| check_tag_key(key))
    }

    /// Returns the definition after a valid request. A tag that is both added and removed is removed.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) if the table would have too many tags.
    pub fn apply(&self, current: &TableDef) -> Result<TableDef> {
        let mut table = current.clone();
        table.tags.extend(self.add.clone());
        table.tags.retain(|key, _| !self.remove.contains(key));
        check_tags(&table.tags)?;
        Ok(table)
    }

    /// Checks a valid request against its table; see [`apply`](UpdateTags::apply).
    ///
    /// # Errors
    ///
    /// The errors of [`apply`](UpdateTags::apply).
    pub fn check(&self, table: &TableDef) -> Result<()> {
        self.apply(table).map(drop)
    }
}

/// Checks the tags of a table, or added tags.
pub(super) fn check_tags(tags: &BTreeMap<String, String>) -> Result<()> {
    for (key, value) in tags {
        check_tag_key(key)?;
        let fits = value.chars().count() <= TAG_VALUE_CHARS_MAX;
        ensure(fits && value.chars().all(is_tag_char), || {
            Error::Validation(format!("The Tag Value provided is invalid, Value: {value}"))
        })?;
    }
    ensure(tags.len() <= TAGS_MAX, || {
        Error::validation("Number of Tags exceed the current limit for the provided ResourceArn")
    })
}

/// Checks the key of an added or removed tag.
///
/// # Errors
///
/// [`Validation`](Error::Validation) if the key is invalid.
pub fn check_tag_key(key: &str) -> Result<()> {
    let fits = TAG_KEY_CHARS.contains(&key.chars().count());
    ensure(fits && key.chars().all(is_tag_char), || {
        Error::Validation(format!("The Tag Key provided is invalid, Key: {key}"))
    })?;
    let prefix = key.get(..4).unwrap_or_default();
    ensure(!prefix.eq_ignore_ascii_case("aws:"), || {
        Error::Validation(format!("Tag Key cannot be prefixed with aws:, Key: {key}"))
    })
}

/// Letters and digits of any script, spaces, and some punctuation.
fn is_tag_char(letter: char) -> bool {
    letter.is_alphanumeric()
        || (letter.is_whitespace() && !letter.is_control())
        || "_.:/=+-@".contains(letter)
}
