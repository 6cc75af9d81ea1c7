//! DynamoDB's error format for parameters out of range, and the rules for table names.
//!
//! `1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length
//! greater than or equal to 3`. One error lists up to ten faults of a request.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::error::{Error, Result, ensure_none};
use crate::limits::{CONSTRAINT_ERRORS_MAX, TABLE_NAME_CHARS, TOKEN_CHARS};

/// The constraint on the characters of table and index names.
const NAME_PATTERN: &str = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+";

/// The prefix of errors about parameter values.
pub(super) const INVALID: &str = "One or more parameter values were invalid: ";

/// The faults of a request, in the order in which DynamoDB lists them. An empty list does not allocate.
#[derive(Debug, Default)]
pub struct Faults(Vec<String>);

impl Faults {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the faults added by the function as one error, if there are any.
    ///
    /// # Errors
    ///
    /// As [`into_result`](Faults::into_result).
    pub fn check(add: impl FnOnce(&mut Self)) -> Result<()> {
        let mut faults = Self::new();
        add(&mut faults);
        faults.into_result()
    }

    /// Adds a fault of the value at this path.
    pub fn add(&mut self, value: impl Display, path: impl Display, constraint: impl Display) {
        self.0.push(format!(
            "Value '{value}' at '{path}' failed to satisfy constraint: {constraint}"
        ));
    }

    /// Adds a fault of the value at this path, without showing the value.
    pub fn add_hidden(&mut self, path: impl Display, constraint: impl Display) {
        self.0.push(format!(
            "Value at '{path}' failed to satisfy constraint: {constraint}"
        ));
    }

    /// Adds a fault with its own message.
    pub fn add_message(&mut self, message: impl Into<String>) {
        self.0.push(message.into());
    }

    /// Adds a fault for a missing value at this path.
    pub fn add_null(&mut self, path: impl Display) {
        self.0.push(format!(
            "Value null at '{path}' failed to satisfy constraint: Member must not be null"
        ));
    }

    /// Adds a fault if the word is not one of these, which are in DynamoDB's order.
    pub fn one_of(&mut self, word: &str, path: impl Display, words: &[&str]) {
        if !words.contains(&word) {
            let constraint = format!("Member must satisfy enum value set: [{}]", words.join(", "));
            self.add(word, path, constraint);
        }
    }

    /// Whether there are no faults.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a fault if the length of the text is out of range.
    pub fn length(&mut self, text: &str, path: impl Display, range: RangeInclusive<usize>) {
        if let Some(constraint) = broken_length(text, &range) {
            self.add(text, path, constraint);
        }
    }

    /// Like [`length`](Faults::length), without showing the text.
    pub fn length_hidden(&mut self, text: &str, path: impl Display, range: RangeInclusive<usize>) {
        if let Some(constraint) = broken_length(text, &range) {
            self.add_hidden(path, constraint);
        }
    }

    /// Adds a fault if the number is out of range.
    pub fn value<N>(&mut self, number: N, path: impl Display, range: RangeInclusive<N>)
    where
        N: PartialOrd + Display + Copy,
    {
        if let Some(constraint) = broken(number, &range) {
            self.add(number, path, constraint);
        }
    }

    /// Like [`value`](Faults::value), without showing the number.
    pub fn value_hidden<N>(&mut self, number: N, path: impl Display, range: RangeInclusive<N>)
    where
        N: PartialOrd + Display + Copy,
    {
        if let Some(constraint) = broken(number, &range) {
            self.add_hidden(path, constraint);
        }
    }

    /// Adds a fault if the limit of a page is out of range.
    pub(super) fn limit(&mut self, limit: Option<usize>, most: usize) {
        if let Some(limit) = limit {
            self.value(limit, "limit", 1..=most);
        }
    }

    /// Adds a fault if the name has characters that table and index names must not have.
    pub fn pattern(&mut self, name: &str, path: impl Display) {
        if !matches_pattern(name) {
            self.add(name, path, NAME_PATTERN);
        }
    }

    /// Adds the first fault of a table name, checking its length before its characters.
    pub fn table_name(&mut self, name: &str) {
        if TABLE_NAME_CHARS.contains(&length(name)) {
            self.pattern(name, "tableName");
        } else {
            self.length(name, "tableName", TABLE_NAME_CHARS);
        }
    }

    /// Adds all faults of a table name, checking its characters before its length, as UpdateItem and the operations on
    /// tables do.
    pub fn table_name_by_pattern(&mut self, name: &str) {
        self.table_name_by_pattern_at(name, "tableName");
    }

    /// Like [`table_name_by_pattern`](Faults::table_name_by_pattern), for a name at another path.
    pub(super) fn table_name_by_pattern_at(&mut self, name: &str, path: &str) {
        if !is_valid_name(name) {
            self.pattern(name, path);
            self.length(name, path, TABLE_NAME_CHARS);
        }
    }

    /// Adds all faults of a table name inside a list of a request.
    pub fn table_name_at(&mut self, name: &str, path: impl Display) {
        if !is_valid_name(name) {
            self.length(name, &path, TABLE_NAME_CHARS);
            self.pattern(name, &path);
        }
    }

    /// Adds a fault if the token is empty or too long.
    pub fn token(&mut self, token: Option<&str>) {
        if let Some(token) = token {
            self.length(token, "clientRequestToken", TOKEN_CHARS);
        }
    }

    /// Returns all faults as one error, if there are any.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) with up to ten faults.
    pub fn into_result(mut self) -> Result<()> {
        self.0.truncate(CONSTRAINT_ERRORS_MAX);
        let plural = match self.0.len() {
            0 => return Ok(()),
            1 => "",
            _ => "s",
        };
        Err(Error::Validation(format!(
            "{} validation error{plural} detected: {}",
            self.0.len(),
            self.0.join("; ")
        )))
    }

    /// Returns the first fault as an error of its own, without the format of a constraint.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) with the fault.
    pub fn into_first_error(self) -> Result<()> {
        ensure_none(self.0.into_iter().next(), Error::Validation)
    }
}

/// Returns the constraint that a number violates, if it is out of range.
fn broken<N: PartialOrd + Display + Copy>(number: N, range: &RangeInclusive<N>) -> Option<String> {
    let (least, most) = (range.start(), range.end());
    let constraint = if number < *least {
        format!("Member must have value greater than or equal to {least}")
    } else if number > *most {
        format!("Member must have value less than or equal to {most}")
    } else {
        return None;
    };
    Some(constraint)
}

/// Returns the constraint that a text violates, if its length is out of range.
fn broken_length(text: &str, range: &RangeInclusive<usize>) -> Option<String> {
    match length(text) {
        short if short < *range.start() => Some(length_at_least(*range.start())),
        long if long > *range.end() => Some(length_at_most(*range.end())),
        _ => None,
    }
}

/// The constraint for a minimum length.
pub fn length_at_least(least: usize) -> String {
    format!("Member must have length greater than or equal to {least}")
}

/// The constraint for a maximum length.
pub fn length_at_most(most: usize) -> String {
    format!("Member must have length less than or equal to {most}")
}

/// Wraps an error into the format of a constraint, as PutItem, UpdateItem and DeleteItem do with errors that other
/// operations report plainly.
pub fn as_constraint_error(error: Error) -> Error {
    let Error::Validation(message) = error else {
        return error;
    };
    Error::Validation(format!("1 validation error detected: {message}"))
}

/// Returns a validation error that starts with `One or more parameter values were invalid: `.
pub fn invalid(message: impl Display) -> Error {
    Error::Validation(format!("{INVALID}{message}"))
}

/// Checks a table name like all operations on items: the first fault, length before characters.
///
/// ```
/// use floe_store::op::validate_table_name;
///
/// assert!(validate_table_name("Orders").is_ok());
/// assert_eq!(
///     validate_table_name("ab").unwrap_err().to_string(),
///     "1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: \
///      Member must have length greater than or equal to 3"
/// );
/// ```
///
/// # Errors
///
/// [`Validation`](Error::Validation) if the name is invalid.
pub fn validate_table_name(name: &str) -> Result<()> {
    if is_valid_name(name) {
        return Ok(());
    }
    Faults::check(|faults| match name {
        "" => faults.add_hidden("TableName", length_at_least(1)),
        name => faults.table_name(name),
    })
}

/// Whether the name is valid for a table or an index.
pub fn is_valid_name(name: &str) -> bool {
    // A name that matches the pattern is ASCII, so bytes are characters.
    TABLE_NAME_CHARS.contains(&name.len()) && matches_pattern(name)
}

fn matches_pattern(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !name.is_empty() && name.bytes().all(fits)
}

/// The length of a text in DynamoDB's model: UTF-16 units.
fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str) -> String {
        match validate_table_name(name) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn table_names_are_validated() {
        let at_least = "Member must have length greater than or equal to";
        let long = "x".repeat(256);
        for (name, expected) in [
            ("abc", String::new()),
            ("A.b-c_9", String::new()),
            (
                "",
                format!("Value at 'TableName' failed to satisfy constraint: {at_least} 1"),
            ),
            (
                "ab",
                format!("Value 'ab' at 'tableName' failed to satisfy constraint: {at_least} 3"),
            ),
            (
                "日本",
                format!("Value '日本' at 'tableName' failed to satisfy constraint: {at_least} 3"),
            ),
            (
                "a b!",
                "Value 'a b!' at 'tableName' failed to satisfy constraint: Member must satisfy \
                 regular expression pattern: [a-zA-Z0-9_.-]+"
                    .to_owned(),
            ),
            (
                &long,
                format!(
                    "Value '{long}' at 'tableName' failed to satisfy constraint: Member must have \
                     length less than or equal to 255"
                ),
            ),
            (&"x".repeat(255), String::new()),
        ] {
            let expected = match expected.as_str() {
                "" => String::new(),
                fault => format!("1 validation error detected: {fault}"),
            };
            assert_eq!(message(name), expected, "{name}");
        }
    }

    #[test]
    fn up_to_ten_faults_are_listed_in_one_error() {
        let mut faults = Faults::new();
        faults.table_name_at("!", "transactItems.2.member.put.tableName");
        assert_eq!(
            faults.into_result().unwrap_err().to_string(),
            "2 validation errors detected: Value '!' at 'transactItems.2.member.put.tableName' \
             failed to satisfy constraint: Member must have length greater than or equal to 3; \
             Value '!' at 'transactItems.2.member.put.tableName' failed to satisfy constraint: \
             Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
        );
        let mut faults = Faults::new();
        for n in 0..11 {
            faults.value(n + 100, "limit", 1..=99);
        }
        let message = faults.into_result().unwrap_err().to_string();
        assert!(message.starts_with("10 validation errors detected: Value '100' at 'limit'"));
    }
}
