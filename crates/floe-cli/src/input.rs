//! What commands are given: items, keys and values as JSON, from the command line, a file or the standard input.
//!
//! JSON comes in two forms. DynamoDB's own says the type of each value (`{"id":{"S":"a"},"n":{"N":"5"}}`), and so can
//! say everything. Plain JSON (`{"id":"a","n":5}`) is what people write; it knows neither sets nor bytes. Which of them
//! it is shows in the values: if each is an object whose only name is a type, it is DynamoDB's; if none is, it is plain;
//! anything between is refused, and `--input` says what is meant.

use std::collections::BTreeMap;
use std::io::Read as _;

use clap::{Args, ValueEnum};
use floe_store::expr::Parser;
use floe_store::json::{Malformed, Reader, Token, Unsound, sound_item};
use floe_store::limits::NESTING_LEVELS_MAX;
use floe_store::{Item, Name, Number, Value};

use super::{Failure, Result};

/// What is said below the help of commands that take items.
const FORMS: &str = "\
JSON is plain ({\"id\":\"a\",\"n\":5}) or DynamoDB's own ({\"id\":{\"S\":\"a\"},\"n\":{\"N\":\"5\"}}), which alone knows sets and \
bytes. If each value is an object whose only name is a type, it is DynamoDB's; if none is, it is plain; a mixture is \
refused, and --input says what is meant. @FILE stands for what is in a file, - for the standard input.";

/// The end of the help of a command that takes items: its own, and how items are given.
pub(super) fn with_forms(help: &str) -> String {
    format!("{help}\n\n{FORMS}")
}

/// The types by which DynamoDB's JSON differs from plain JSON.
const TYPES: [&str; 10] = ["S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"];

/// How JSON is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Form {
    /// What it looks like
    #[default]
    Auto,
    /// Plain JSON: {"id":"a","n":5}
    Plain,
    /// DynamoDB's JSON: {"id":{"S":"a"},"n":{"N":"5"}}
    Dynamodb,
}

/// How JSON is meant.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Input {
    /// Which JSON is given, if it is not to be told from what it looks like
    #[arg(long = "input", default_value = "auto")]
    pub(super) form: Form,
}

/// The placeholders of expressions.
#[derive(Debug, Args)]
pub(super) struct Placeholders {
    /// What #names stand for: {"#s":"status"}
    #[arg(long, value_name = "JSON")]
    names: Option<String>,

    /// What :values stand for: {":s":"open"}
    #[arg(long, value_name = "JSON")]
    values: Option<String>,
}

/// The placeholders of expressions, as the parser takes them.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    names: Option<BTreeMap<String, Name>>,
    values: Option<BTreeMap<String, Value>>,
}

impl Resolved {
    /// A parser of expressions that know them.
    pub(super) fn parser(&self) -> Parser<'_> {
        Parser::new(self.names.as_ref(), self.values.as_ref())
    }
}

impl Placeholders {
    pub(super) fn resolve(&self, input: Input) -> Result<Resolved> {
        let names = self.names.as_deref().map(names).transpose()?;
        let values = self.values.as_deref();
        let values = values.map(|text| input.item("--values", text));
        let values = values.transpose()?;
        let named = |item: Item| {
            let pairs = item.iter();
            pairs
                .map(|(name, value)| (name.as_str().to_owned(), value.clone()))
                .collect()
        };
        Ok(Resolved {
            names,
            values: values.map(named),
        })
    }
}

impl Input {
    /// Reads an item or a key that an option has given.
    pub(super) fn item(self, option: &str, given: &str) -> Result<Item> {
        let text = text(option, given)?;
        let form = match self.form {
            Form::Auto => guess(option, &text)?,
            form => form,
        };
        match form {
            Form::Dynamodb => dynamodb(option, &text),
            Form::Auto | Form::Plain => plain(option, &text),
        }
    }
}

/// What an option stands for: itself, a file, or the standard input.
pub(super) fn text(option: &str, given: &str) -> Result<String> {
    let unread = |error: std::io::Error| {
        Failure::broken(format!("{option} cannot be read, {error}: given={given}"))
    };
    match given.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(unread),
        None if given == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(unread)?;
            Ok(text)
        }
        None => Ok(given.to_owned()),
    }
}

fn not_json(option: &str, reader: &Reader<'_>) -> Failure {
    Failure::usage(format!(
        "{option} is not JSON: at={}; an example is {{\"id\":\"a\"}}",
        reader.position()
    ))
}

/// Which form an object has.
fn guess(option: &str, text: &str) -> Result<Form> {
    let mut reader = Reader::new(text);
    let (typed, others) = count(&mut reader).map_err(|_| not_json(option, &reader))?;
    match (typed, others) {
        (0, _) => Ok(Form::Plain),
        (_, 0) => Ok(Form::Dynamodb),
        _ => Err(Failure::usage(format!(
            "{option} is plain JSON in part and DynamoDB's in part: plain={others} dynamodb={typed}; say which with --input"
        ))),
    }
}

/// How many members of an object are values of DynamoDB's JSON, and how many are not.
fn count(reader: &mut Reader<'_>) -> Result<(usize, usize), Malformed> {
    reader.begin_object()?;
    let (mut typed, mut others) = (0, 0);
    while reader.next_name()?.is_some() {
        let mut ahead = reader.revisit(reader.position());
        match is_typed(&mut ahead) {
            true => typed += 1,
            false => others += 1,
        }
        reader.skip()?;
    }
    Ok((typed, others))
}

fn is_typed(reader: &mut Reader<'_>) -> bool {
    if reader.peek() != Ok(Token::Object) || reader.begin_object().is_err() {
        return false;
    }
    let is_type = matches!(reader.next_name(), Ok(Some(name)) if TYPES.contains(&&*name));
    is_type && reader.skip().is_ok() && matches!(reader.next_name(), Ok(None))
}

fn dynamodb(option: &str, text: &str) -> Result<Item> {
    let mut reader = Reader::new(text);
    let item = sound_item(&mut reader).map_err(|unsound| match unsound {
        Unsound::Malformed => not_json(option, &reader),
        wrong => Failure::usage(format!("{option} is not DynamoDB's JSON, {wrong}")),
    })?;
    finish(option, reader)?;
    Ok(item)
}

fn plain(option: &str, text: &str) -> Result<Item> {
    let mut reader = Reader::new(text);
    let item = plain_item(&mut reader, 1).map_err(|fault| match fault {
        Fault::Json => not_json(option, &reader),
        Fault::Value(message) => Failure::usage(format!("{option}: {message}")),
    })?;
    finish(option, reader)?;
    Ok(item)
}

fn finish(option: &str, reader: Reader<'_>) -> Result {
    let at = reader.position();
    reader.finish().map_err(|_| {
        Failure::usage(format!(
            "{option}: something follows behind the JSON: at={at}"
        ))
    })
}

/// What is wrong with plain JSON.
enum Fault {
    Json,
    Value(String),
}

impl From<Malformed> for Fault {
    fn from(_: Malformed) -> Self {
        Self::Json
    }
}

fn plain_item(reader: &mut Reader<'_>, level: usize) -> Result<Item, Fault> {
    reader.begin_object()?;
    let mut item = Item::new();
    while let Some(name) = reader.next_name()? {
        let value = plain_value(reader, level)?;
        if item.insert(&*name, value).is_some() {
            return Err(Fault::Value(format!("a name comes twice: name={name}")));
        }
    }
    Ok(item)
}

fn plain_value(reader: &mut Reader<'_>, level: usize) -> Result<Value, Fault> {
    if level > NESTING_LEVELS_MAX {
        return Err(Fault::Value(format!(
            "it is nested too deep: levels_max={NESTING_LEVELS_MAX}"
        )));
    }
    Ok(match reader.peek()? {
        Token::String => Value::from(&*reader.string()?),
        Token::Number => {
            let text = reader.number()?;
            let number = text.parse::<Number>();
            Value::N(number.map_err(|error| Fault::Value(error.message(text)))?)
        }
        Token::Bool => Value::from(reader.bool()?),
        Token::Null => {
            reader.null()?;
            Value::Null
        }
        Token::Object => Value::M(plain_item(reader, level + 1)?),
        Token::Array => {
            reader.begin_array()?;
            let mut values = Vec::new();
            while reader.next_element()? {
                values.push(plain_value(reader, level + 1)?);
            }
            Value::L(values)
        }
        #[expect(unreachable_patterns, reason = "whatever else a reader may find")]
        _ => return Err(Fault::Json),
    })
}

/// What `#names` stand for.
fn names(given: &str) -> Result<BTreeMap<String, Name>> {
    let item = plain("--names", &text("--names", given)?)?;
    let name = |(placeholder, value): (&Name, &Value)| match value.as_s() {
        Some(name) => Ok((placeholder.as_str().to_owned(), Name::from(name))),
        None => Err(Failure::usage(format!(
            "--names: the name of an attribute is text: placeholder={placeholder}"
        ))),
    };
    item.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use floe_store::Set;

    use super::*;

    fn read(form: Form, text: &str) -> Result<Item, String> {
        let input = Input { form };
        input
            .item("--item", text)
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_form_shows_in_the_values() {
        let item = Item::new().with("id", "a").with("n", 5);
        for text in [
            r#"{"id":"a","n":5}"#,
            r#"{"id":{"S":"a"},"n":{"N":"5"}}"#,
            r#" { "id" : "a" , "n" : 5 } "#,
        ] {
            assert_eq!(read(Form::Auto, text), Ok(item.clone()), "{text}");
        }
        let map = Item::new().with("v", Item::new().with("S", "a").with("x", 1));
        assert_eq!(read(Form::Auto, r#"{"v":{"S":"a","x":1}}"#), Ok(map));
        let set = Item::new().with("v", Set::new(["a".to_owned()]).unwrap());
        assert_eq!(read(Form::Auto, r#"{"v":{"SS":["a"]}}"#), Ok(set));
    }

    #[test]
    fn a_mixture_is_refused_unless_it_is_said_what_is_meant() {
        let mixture = r#"{"id":"a","v":{"S":"x"}}"#;
        assert_eq!(
            read(Form::Auto, mixture),
            Err("--item is plain JSON in part and DynamoDB's in part: plain=1 dynamodb=1; say which with --input".to_owned())
        );
        let plain = Item::new()
            .with("id", "a")
            .with("v", Item::new().with("S", "x"));
        assert_eq!(read(Form::Plain, mixture), Ok(plain));
        let refused = read(Form::Dynamodb, mixture).unwrap_err();
        assert!(
            refused.starts_with("--item is not DynamoDB's JSON"),
            "{refused}"
        );
    }

    #[test]
    fn what_cannot_be_read_is_reported_with_its_place() {
        for (text, reported) in [
            ("", "--item is not JSON: at=0; an example is {\"id\":\"a\"}"),
            (
                "{\"id\":}",
                "--item is not JSON: at=6; an example is {\"id\":\"a\"}",
            ),
            (
                "{\"id\":\"a\"} x",
                "--item: something follows behind the JSON: at=10",
            ),
            ("{\"a\":1,\"a\":2}", "--item: a name comes twice: name=a"),
        ] {
            assert_eq!(read(Form::Auto, text), Err(reported.to_owned()), "{text}");
        }
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(40), "]".repeat(40));
        assert_eq!(
            read(Form::Plain, &deep),
            Err("--item: it is nested too deep: levels_max=32".to_owned())
        );
        assert!(read(Form::Plain, r#"{"n":1e999}"#).is_err());
    }
}
