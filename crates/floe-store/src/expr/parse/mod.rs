//! Parses text into expression trees.
//!
//! A [`Parser`] parses all expressions of one request, because they share their placeholders. Each text goes through
//! the same steps: tokens (`lex.rs`), postfix form (`grammar.rs` for conditions, `update/` for updates), tree. Faults
//! are reported in DynamoDB's order: first those of the text alone, then undefined placeholders, then violations of the
//! [rules](super::check) for trees.
//!
//! Nothing here recurses, so no nesting of parentheses, `NOT` or functions can overflow the stack.

mod condition;
mod cursor;
mod grammar;
mod key;
mod placeholders;
mod update;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::check::check_disjoint;
use super::condition::Condition;
use super::fault::{ExpressionKind, Fault};
use super::key::KeyCondition;
use super::lex::TokenKind;
use super::projection::Paths;
use super::update::Update;
use crate::error::{Error, Result, ensure};
use crate::limits;
use crate::text::Name;
use crate::value::Value;
use cursor::Cursor;
use placeholders::{Placeholders, check_words};

/// Parses the expressions of one request.
///
/// ```
/// use std::collections::BTreeMap;
/// use floe_store::{Name, Value, expr::{Condition, Parser, Path}};
///
/// let names = BTreeMap::from([("#s".to_owned(), Name::from("status"))]);
/// let values = BTreeMap::from([(":open".to_owned(), Value::from("open"))]);
/// let mut parser = Parser::new(Some(&names), Some(&values));
/// let condition = parser.condition("#s = :open AND attribute_exists(id)")?;
/// parser.finish()?;
///
/// let open = Condition::eq(Path::attribute("status"), "open");
/// assert_eq!(condition, open.and(Condition::attribute_exists("id")));
/// # Ok::<(), floe_store::Error>(())
/// ```
#[derive(Debug)]
pub struct Parser<'a> {
    placeholders: Placeholders<'a>,
    /// Whether any expression was parsed, and whether one that can contain values was.
    parsed: bool,
    parsed_operands: bool,
    /// What to add to the error for values without an expression that can contain them.
    absent: Option<&'static str>,
}

impl<'a> Parser<'a> {
    /// Creates a parser with the `ExpressionAttributeNames` and `ExpressionAttributeValues` of a request.
    pub fn new(
        names: Option<&'a BTreeMap<String, Name>>,
        values: Option<&'a BTreeMap<String, Value>>,
    ) -> Self {
        Self {
            placeholders: Placeholders::new(names, values),
            parsed: false,
            parsed_operands: false,
            absent: None,
        }
    }

    /// Sets the text that DynamoDB adds if a request has values but no expression that can contain them, such as
    /// `ConditionExpression is null`. It depends on the operation.
    #[must_use]
    pub const fn absent(mut self, expressions: &'static str) -> Self {
        self.absent = Some(expressions);
        self
    }

    /// Parses a `ConditionExpression`.
    ///
    /// # Errors
    ///
    /// Returns DynamoDB's error for malformed maps of placeholders, or else for the first fault of the expression.
    pub fn condition(&mut self, text: &str) -> Result<Condition> {
        self.parse(ExpressionKind::Condition, text, condition::parse)
    }

    /// Parses a `FilterExpression`.
    ///
    /// # Errors
    ///
    /// The errors of [`condition`](Parser::condition).
    pub fn filter(&mut self, text: &str) -> Result<Condition> {
        self.parse(ExpressionKind::Filter, text, condition::parse)
    }

    /// Parses a `KeyConditionExpression`.
    ///
    /// # Errors
    ///
    /// The errors of [`condition`](Parser::condition).
    pub fn key_condition(&mut self, text: &str) -> Result<KeyCondition> {
        self.parse(ExpressionKind::KeyCondition, text, key::parse)
    }

    /// Parses an `UpdateExpression`.
    ///
    /// # Errors
    ///
    /// The errors of [`condition`](Parser::condition).
    pub fn update(&mut self, text: &str) -> Result<Update> {
        self.parse(ExpressionKind::Update, text, update::parse)
    }

    /// Parses a `ProjectionExpression`.
    ///
    /// # Errors
    ///
    /// The errors of [`condition`](Parser::condition).
    pub fn projection(&mut self, text: &str) -> Result<Paths> {
        self.parse(ExpressionKind::Projection, text, projection)
    }

    /// Checks the maps of placeholders, as parsing the first expression does.
    ///
    /// # Errors
    ///
    /// Returns DynamoDB's error if a map is malformed.
    pub fn check_placeholders(&self) -> Result<()> {
        self.placeholders.check()
    }

    /// Finishes the parsing of a request and checks that every placeholder was used.
    ///
    /// # Errors
    ///
    /// Returns DynamoDB's error if there are placeholders but no expression, a map of placeholders is malformed, or a
    /// placeholder is unused.
    pub fn finish(self) -> Result<()> {
        ensure(!self.placeholders.names.is_given() || self.parsed, || {
            Error::validation(
                "ExpressionAttributeNames can only be specified when using expressions",
            )
        })?;
        let can_have_values = !self.placeholders.values.is_given() || self.parsed_operands;
        ensure(can_have_values, || {
            let (colon, absent) = self.absent.map_or(("", ""), |absent| (": ", absent));
            Error::validation(format!(
                "ExpressionAttributeValues can only be specified when using expressions{colon}{absent}"
            ))
        })?;
        self.placeholders.check()?;
        self.placeholders.check_used()
    }

    fn parse<T>(
        &mut self,
        kind: ExpressionKind,
        text: &str,
        read: impl FnOnce(&str, &mut Placeholders<'a>) -> Result<T, Fault>,
    ) -> Result<T> {
        if !self.parsed {
            self.placeholders.check()?;
        }
        self.parsed = true;
        self.parsed_operands |= kind != ExpressionKind::Projection;
        let tree = match text.len() {
            0 => Err(Fault::Empty),
            len if len > limits::EXPRESSION_BYTES_MAX => Err(Fault::TooLong),
            _ => read(text, &mut self.placeholders),
        };
        tree.map_err(|fault| kind.error(&fault))
    }
}

/// Parses comma-separated paths.
fn projection(text: &str, placeholders: &mut Placeholders<'_>) -> Result<Paths, Fault> {
    let mut cursor = Cursor::new(text, &[]);
    let mut written = vec![cursor.path()?];
    while cursor.take(TokenKind::Comma) {
        written.push(cursor.path()?);
    }
    cursor.expect(TokenKind::End)?;

    written.iter().try_for_each(check_words)?;
    let paths = written.iter().map(|path| placeholders.path(path));
    let paths = Paths(paths.collect::<Result<_, Fault>>()?);
    check_disjoint(paths.0.iter())?;
    Ok(paths)
}
