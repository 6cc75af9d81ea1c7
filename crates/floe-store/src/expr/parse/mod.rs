//! Text to trees.
//!
//! A [`Parser`] reads all expressions of one request, since they share their placeholders. Each text
//! passes through the same steps: tokens (`lex.rs`), postfix form (`grammar.rs` for conditions,
//! `update/` for updates), and then the tree, on the way to which faults are found in DynamoDB's order:
//! what concerns the text alone first, then what placeholders stand for, then what the
//! [rules](super::check) say of the tree.
//!
//! Nothing here recurses, so no nesting of parentheses, `NOT` or functions can exhaust the stack.

mod condition;
mod cursor;
mod grammar;
mod key;
mod placeholders;
mod update;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::check::check_apart;
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
    /// Whether an expression was parsed, and whether one of those that can hold values was.
    parsed: bool,
    parsed_operands: bool,
    /// What to say of values without an expression that could hold them.
    absent: Option<&'static str>,
}

impl<'a> Parser<'a> {
    /// A parser with the `ExpressionAttributeNames` and `ExpressionAttributeValues` of a request, as
    /// it gives them.
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

    /// What DynamoDB adds when a request gives values and no expression that could hold them, for
    /// instance `ConditionExpression is null`: it depends on the operation.
    #[must_use]
    pub const fn absent(mut self, expressions: &'static str) -> Self {
        self.absent = Some(expressions);
        self
    }

    /// Parses a `ConditionExpression`.
    ///
    /// # Errors
    ///
    /// With DynamoDB's message: of the maps of placeholders if they are malformed, else of the first
    /// fault of the expression.
    pub fn condition(&mut self, text: &str) -> Result<Condition> {
        self.parse(ExpressionKind::Condition, text, condition::parse)
    }

    /// Parses a `FilterExpression`.
    ///
    /// # Errors
    ///
    /// As [`condition`](Parser::condition).
    pub fn filter(&mut self, text: &str) -> Result<Condition> {
        self.parse(ExpressionKind::Filter, text, condition::parse)
    }

    /// Parses a `KeyConditionExpression`.
    ///
    /// # Errors
    ///
    /// As [`condition`](Parser::condition).
    pub fn key_condition(&mut self, text: &str) -> Result<KeyCondition> {
        self.parse(ExpressionKind::KeyCondition, text, key::parse)
    }

    /// Parses an `UpdateExpression`.
    ///
    /// # Errors
    ///
    /// As [`condition`](Parser::condition).
    pub fn update(&mut self, text: &str) -> Result<Update> {
        self.parse(ExpressionKind::Update, text, update::parse)
    }

    /// Parses a `ProjectionExpression`.
    ///
    /// # Errors
    ///
    /// As [`condition`](Parser::condition).
    pub fn projection(&mut self, text: &str) -> Result<Paths> {
        self.parse(ExpressionKind::Projection, text, projection)
    }

    /// Checks the maps of placeholders alone, as the first expression does that is parsed.
    ///
    /// # Errors
    ///
    /// With DynamoDB's message, when a map is malformed.
    pub fn check_placeholders(&self) -> Result<()> {
        self.placeholders.check()
    }

    /// Ends the parsing of a request: every placeholder must have been used.
    ///
    /// # Errors
    ///
    /// With DynamoDB's message, when there are placeholders and no expression, when a map of
    /// placeholders is malformed, or when one is not used.
    pub fn finish(self) -> Result<()> {
        ensure(!self.placeholders.names.is_given() || self.parsed, || {
            Error::validation(
                "ExpressionAttributeNames can only be specified when using expressions",
            )
        })?;
        let has_place = !self.placeholders.values.is_given() || self.parsed_operands;
        ensure(has_place, || {
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
        tree.map_err(|fault| kind.refuse(&fault))
    }
}

/// Reads paths with commas between them.
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
    check_apart(paths.0.iter())?;
    Ok(paths)
}
