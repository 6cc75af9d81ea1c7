//! The form in which DynamoDB reports parameters outside their range, and the names of tables.
//!
//! `1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: Member must
//! have length greater than or equal to 3`. Several faults of one request come together, at most ten.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::error::{Error, Result, ensure_none};
use crate::limits::{CONSTRAINT_ERRORS_MAX, TABLE_NAME_CHARS, TOKEN_CHARS};

/// The characters of the names of tables and indexes.
const NAME_PATTERN: &str = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+";

/// What every error about a parameter starts with.
pub(super) const INVALID: &str = "One or more parameter values were invalid: ";

/// Faults of a request, in the order in which DynamoDB lists them. Collecting none costs nothing.
#[derive(Debug, Default)]
pub struct Faults(Vec<String>);

impl Faults {
    /// No faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The faults that the function adds, as one error, if there is one.
    ///
    /// # Errors
    ///
    /// As [`into_result`](Faults::into_result).
    pub fn check(add: impl FnOnce(&mut Self)) -> Result<()> {
        let mut faults = Self::new();
        add(&mut faults);
        faults.into_result()
    }

    /// The value at the path breaks the constraint.
    pub fn add(&mut self, value: impl Display, path: impl Display, constraint: impl Display) {
        self.0.push(format!(
            "Value '{value}' at '{path}' failed to satisfy constraint: {constraint}"
        ));
    }

    /// The value at the path breaks the constraint and is not shown.
    pub fn add_unseen(&mut self, path: impl Display, constraint: impl Display) {
        self.0.push(format!(
            "Value at '{path}' failed to satisfy constraint: {constraint}"
        ));
    }

    /// A fault told in its own words.
    pub fn add_bare(&mut self, message: impl Into<String>) {
        self.0.push(message.into());
    }

    /// Nothing stands at the path, where something must.
    pub fn add_null(&mut self, path: impl Display) {
        self.0.push(format!(
            "Value null at '{path}' failed to satisfy constraint: Member must not be null"
        ));
    }

    /// Adds a fault if the word is none of these, which are listed in DynamoDB's order.
    pub fn one_of(&mut self, word: &str, path: impl Display, words: &[&str]) {
        if !words.contains(&word) {
            let constraint = format!("Member must satisfy enum value set: [{}]", words.join(", "));
            self.add(word, path, constraint);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a fault if the text is shorter or longer than it may be.
    pub fn length(&mut self, text: &str, path: impl Display, range: RangeInclusive<usize>) {
        if let Some(constraint) = broken_length(text, &range) {
            self.add(text, path, constraint);
        }
    }

    /// As [`length`](Faults::length), without showing the text.
    pub fn length_unseen(&mut self, text: &str, path: impl Display, range: RangeInclusive<usize>) {
        if let Some(constraint) = broken_length(text, &range) {
            self.add_unseen(path, constraint);
        }
    }

    /// Adds a fault if the number is smaller or greater than it may be.
    pub fn value<N>(&mut self, number: N, path: impl Display, range: RangeInclusive<N>)
    where
        N: PartialOrd + Display + Copy,
    {
        if let Some(constraint) = broken(number, &range) {
            self.add(number, path, constraint);
        }
    }

    /// As [`value`](Faults::value), without showing the number.
    pub fn value_unseen<N>(&mut self, number: N, path: impl Display, range: RangeInclusive<N>)
    where
        N: PartialOrd + Display + Copy,
    {
        if let Some(constraint) = broken(number, &range) {
            self.add_unseen(path, constraint);
        }
    }

    /// Adds a fault if so many cannot be asked for on a page.
    pub(super) fn limit(&mut self, limit: Option<usize>, most: usize) {
        if let Some(limit) = limit {
            self.value(limit, "limit", 1..=most);
        }
    }

    /// Adds a fault if the name has characters that names of tables and indexes may not have.
    pub fn pattern(&mut self, name: &str, path: impl Display) {
        if !matches_pattern(name) {
            self.add(name, path, NAME_PATTERN);
        }
    }

    /// Adds the first fault of the name of a table, its length before its characters.
    pub fn table_name(&mut self, name: &str) {
        if TABLE_NAME_CHARS.contains(&length(name)) {
            self.pattern(name, "tableName");
        } else {
            self.length(name, "tableName", TABLE_NAME_CHARS);
        }
    }

    /// Adds every fault of the name of a table, its characters before its length, as UpdateItem and the operations on tables do.
    pub fn table_name_by_pattern(&mut self, name: &str) {
        self.table_name_by_pattern_at(name, "tableName");
    }

    /// As [`table_name_by_pattern`](Faults::table_name_by_pattern), of a name that stands elsewhere.
    pub(super) fn table_name_by_pattern_at(&mut self, name: &str, path: &str) {
        if !is_name(name) {
            self.pattern(name, path);
            self.length(name, path, TABLE_NAME_CHARS);
        }
    }

    /// Adds every fault of the name of a table inside a list of a request.
    pub fn table_name_at(&mut self, name: &str, path: impl Display) {
        if !is_name(name) {
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

    /// The faults as one error, if there is one.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) with all of them, but not more than ten.
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

    /// The first fault as an error without the form of a constraint, if there is one.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) with the fault.
    pub fn into_bare_result(self) -> Result<()> {
        ensure_none(self.0.into_iter().next(), Error::Validation)
    }
}

/// The constraint that a number outside of the range breaks.
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

/// The constraint that a text breaks which is shorter or longer than it may be.
fn broken_length(text: &str, range: &RangeInclusive<usize>) -> Option<String> {
    match length(text) {
        short if short < *range.start() => Some(length_at_least(*range.start())),
        long if long > *range.end() => Some(length_at_most(*range.end())),
        _ => None,
    }
}

/// The constraint that a length breaks which is below this.
pub fn length_at_least(least: usize) -> String {
    format!("Member must have length greater than or equal to {least}")
}

/// The constraint that a length breaks which is above this.
pub fn length_at_most(most: usize) -> String {
    format!("Member must have length less than or equal to {most}")
}

/// Puts an error about the request into the form of a constraint, as PutItem, UpdateItem and
/// DeleteItem do with errors that others report bare.
pub fn enveloped(error: Error) -> Error {
    let Error::Validation(message) = error else {
        return error;
    };
    Error::Validation(format!("1 validation error detected: {message}"))
}

/// `One or more parameter values were invalid: ` and the message.
pub fn invalid(message: impl Display) -> Error {
    Error::Validation(format!("{INVALID}{message}"))
}

/// Checks the name of a table as every operation on items does: the first fault, its length before
/// its characters.
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
/// [`Validation`](Error::Validation) when it is no name that a table can have.
pub fn validate_table_name(name: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    Faults::check(|faults| match name {
        "" => faults.add_unseen("TableName", length_at_least(1)),
        name => faults.table_name(name),
    })
}

/// Whether a table or an index can have the name.
pub fn is_name(name: &str) -> bool {
    // A name that passes is ASCII, so its bytes are its characters.
    TABLE_NAME_CHARS.contains(&name.len()) && matches_pattern(name)
}

fn matches_pattern(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !name.is_empty() && name.bytes().all(fits)
}

/// The length of a text as DynamoDB's model counts it: in UTF-16 units.
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
    fn table_names() {
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
    fn several_faults_come_together_and_at_most_ten() {
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
