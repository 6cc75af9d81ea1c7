//! Texts and what they parse to, or are refused with.

mod condition;
mod grammar;
mod key;
mod nesting;
mod placeholders;
mod projection;
mod soup;
mod update;

use std::fmt::Debug;

use super::Parser;
use crate::error::{Error, Result};
use crate::expr::tests::{NAMES, VALUES};

/// Parses with the placeholders of the fixture, of which any may stay unused.
fn parse<T>(text: &str, read: fn(&mut Parser<'static>, &str) -> Result<T>) -> Result<T> {
    read(&mut Parser::new(Some(&NAMES), Some(&VALUES)), text)
}

/// The text is refused with this detail behind the name of the parameter.
#[track_caller]
fn refused<T: Debug>(
    text: &str,
    read: fn(&mut Parser<'static>, &str) -> Result<T>,
    parameter: &str,
    detail: &str,
) {
    let expected = Error::validation(format!("Invalid {parameter}: {detail}"));
    match parse(text, read) {
        Err(error) => assert_eq!(error, expected, "text={text}"),
        Ok(tree) => panic!("the text should be refused: text={text} tree={tree:?}"),
    }
}

/// The detail of a syntax error.
fn syntax(token: &str, near: &str) -> String {
    format!("Syntax error; token: \"{token}\", near: \"{near}\"")
}
