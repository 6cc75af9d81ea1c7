//! Tests of the parser: texts with their trees or errors.

mod condition;
mod grammar;
mod key;
mod nesting;
mod placeholders;
mod projection;
mod random;
mod update;

use std::fmt::Debug;

use super::Parser;
use crate::error::{Error, Result};
use crate::expr::tests::{NAMES, VALUES};

/// Parses with the placeholders of the fixture, which need not all be used.
fn parse<T>(text: &str, read: fn(&mut Parser<'static>, &str) -> Result<T>) -> Result<T> {
    read(&mut Parser::new(Some(&NAMES), Some(&VALUES)), text)
}

/// Asserts that the text is rejected with this message after the name of the parameter.
#[track_caller]
fn rejected<T: Debug>(
    text: &str,
    read: fn(&mut Parser<'static>, &str) -> Result<T>,
    parameter: &str,
    detail: &str,
) {
    let expected = Error::validation(format!("Invalid {parameter}: {detail}"));
    match parse(text, read) {
        Err(error) => assert_eq!(error, expected, "text={text}"),
        Ok(tree) => panic!("the text should be rejected: text={text} tree={tree:?}"),
    }
}

/// The message of a syntax error.
fn syntax(token: &str, near: &str) -> String {
    format!("Syntax error; token: \"{token}\", near: \"{near}\"")
}
