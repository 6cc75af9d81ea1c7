//! The input of commands: items, keys and values as JSON, from the command line, a file or standard input.
//!
//! JSON comes in two formats. DynamoDB JSON has the type of each value (`{"id":{"S":"a"},"n":{"N":"5"}}`) and can express
//! all values. Plain JSON (`{"id":"a","n":5}`) is easier to write, but cannot express sets and bytes. The format is detected
//! from the values of the attributes: if every value is an object whose only name is a type, it is DynamoDB JSON; if there is
//! no such object, not inside of a value either, it is plain; everything else is ambiguous and rejected, unless `--input`
//! sets the format.

use std::collections::BTreeMap;
use std::io::Read as _;

use clap::{Args, ValueEnum};
use floe_store::expr::Parser;
use floe_store::json::{DecodeError, Malformed, Reader, Token, decode_item};
use floe_store::limits::NESTING_LEVELS_MAX;
use floe_store::{Item, Name, Number, Value, ValueType};

use super::{Failure, Result};

/// The end of the help of commands that take items.
const FORMATS: &str = "\
JSON is plain ({\"id\":\"a\",\"n\":5}) or DynamoDB JSON ({\"id\":{\"S\":\"a\"},\"n\":{\"N\":\"5\"}}), which also has sets and \
bytes. The format is detected: if every value is an object whose only name is a type, it is DynamoDB JSON; if there is no such \
object, it is plain; a mixture is ambiguous and rejected, unless --input sets the format. @FILE reads a file, - reads standard \
input.";

/// Appends the description of the JSON formats to the help of a command that takes items.
pub(super) fn with_formats(help: &str) -> String {
    format!("{help}\n\n{FORMATS}")
}

/// A format of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum JsonFormat {
    /// Detected from the values
    #[default]
    Auto,
    /// Plain JSON: {"id":"a","n":5}
    Plain,
    /// DynamoDB JSON: {"id":{"S":"a"},"n":{"N":"5"}}
    Dynamodb,
}

/// The format of JSON input.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Input {
    /// Format of JSON arguments
    #[arg(long = "input", default_value = "auto")]
    pub(super) form: JsonFormat,
}

/// The placeholders of expressions.
#[derive(Debug, Args)]
pub(super) struct Placeholders {
    /// Values of #name placeholders: {"#s":"status"}
    #[arg(long, value_name = "JSON")]
    names: Option<String>,

    /// Values of :value placeholders: {":s":"open"}
    #[arg(long, value_name = "JSON")]
    values: Option<String>,
}

/// The placeholders of expressions, parsed.
#[derive(Debug, Default)]
pub(super) struct ResolvedPlaceholders {
    names: Option<BTreeMap<String, Name>>,
    values: Option<BTreeMap<String, Value>>,
}

impl ResolvedPlaceholders {
    /// A parser of expressions with these placeholders.
    pub(super) fn parser(&self) -> Parser<'_> {
        Parser::new(self.names.as_ref(), self.values.as_ref())
    }
}

impl Placeholders {
    pub(super) fn resolve(&self, input: Input) -> Result<ResolvedPlaceholders> {
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
        Ok(ResolvedPlaceholders {
            names,
            values: values.map(named),
        })
    }
}

impl Input {
    /// Parses the item or key in the argument of an option.
    pub(super) fn item(self, option: &str, argument: &str) -> Result<Item> {
        self.parse(option, &text(option, argument)?)
    }

    /// Parses an item or a key. `source` says where the text is from, for errors.
    pub(super) fn parse(self, source: &str, text: &str) -> Result<Item> {
        match self.form {
            JsonFormat::Dynamodb => dynamodb(source, text),
            JsonFormat::Plain => plain(source, text, Typed::AreMaps),
            JsonFormat::Auto => match detect_format(source, text)? {
                JsonFormat::Dynamodb => dynamodb(source, text),
                JsonFormat::Auto | JsonFormat::Plain => plain(source, text, Typed::AreAmbiguous),
            },
        }
    }
}

/// The text of an option's argument: itself, the content of a file (`@path`), or standard input (`-`).
pub(super) fn text(option: &str, argument: &str) -> Result<String> {
    let unreadable = |error: std::io::Error| {
        Failure::failed(format!(
            "{option} cannot be read, {error}: argument={argument}"
        ))
    };
    match argument.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(unreadable),
        None if argument == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(unreadable)?;
            Ok(text)
        }
        None => Ok(argument.to_owned()),
    }
}

fn not_json(option: &str, reader: &Reader<'_>) -> Failure {
    Failure::usage(format!(
        "{option} is not valid JSON: offset={}; example: {{\"id\":\"a\"}}",
        reader.position()
    ))
}

/// Detects the format of an object.
fn detect_format(option: &str, text: &str) -> Result<JsonFormat> {
    let mut reader = Reader::new(text);
    let (typed, plain) = count_members(&mut reader).map_err(|_| not_json(option, &reader))?;
    match (typed, plain) {
        (0, _) => Ok(JsonFormat::Plain),
        (_, 0) => Ok(JsonFormat::Dynamodb),
        _ => Err(Failure::usage(format!(
            "{option} mixes plain and DynamoDB JSON: plain={plain} dynamodb={typed}; set the format with --input"
        ))),
    }
}

/// Counts the members of an object that are typed values of DynamoDB JSON, and the others.
fn count_members(reader: &mut Reader<'_>) -> Result<(usize, usize), Malformed> {
    reader.begin_object()?;
    let (mut typed, mut plain) = (0, 0);
    while reader.next_name()?.is_some() {
        let mut ahead = reader.revisit(reader.position());
        if is_typed(&mut ahead) {
            typed += 1;
        } else {
            plain += 1;
        }
        reader.skip()?;
    }
    Ok((typed, plain))
}

fn is_typed(reader: &mut Reader<'_>) -> bool {
    if reader.peek() != Ok(Token::Object) || reader.begin_object().is_err() {
        return false;
    }
    let is_type =
        matches!(reader.next_name(), Ok(Some(name)) if ValueType::from_name(&name).is_some());
    is_type && reader.skip().is_ok() && matches!(reader.next_name(), Ok(None))
}

fn dynamodb(option: &str, text: &str) -> Result<Item> {
    let mut reader = Reader::new(text);
    let item = decode_item(&mut reader).map_err(|unsound| match unsound {
        DecodeError::Malformed => not_json(option, &reader),
        unsound => Failure::usage(format!("{option} is not valid DynamoDB JSON, {unsound}")),
    })?;
    finish(option, reader)?;
    Ok(item)
}

/// What objects in plain JSON are whose only name is a type of DynamoDB JSON: `{"M":3}`, `{"SS":["a"]}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Typed {
    AreMaps,
    AreAmbiguous,
}

fn plain(option: &str, text: &str, typed: Typed) -> Result<Item> {
    let mut reader = Reader::new(text);
    let item = plain_item(&mut reader, 1, typed).map_err(|error| match error {
        PlainError::Json => not_json(option, &reader),
        PlainError::Value(message) => Failure::usage(format!("{option}: {message}")),
    })?;
    finish(option, reader)?;
    Ok(item)
}

fn finish(option: &str, reader: Reader<'_>) -> Result {
    let offset = reader.position();
    reader.finish().map_err(|_| {
        Failure::usage(format!(
            "{option}: unexpected text after the JSON: offset={offset}"
        ))
    })
}

/// An error in plain JSON.
enum PlainError {
    Json,
    Value(String),
}

impl From<Malformed> for PlainError {
    fn from(_: Malformed) -> Self {
        Self::Json
    }
}

fn plain_item(reader: &mut Reader<'_>, level: usize, typed: Typed) -> Result<Item, PlainError> {
    reader.begin_object()?;
    let mut item = Item::new();
    while let Some(name) = reader.next_name()? {
        let value = plain_value(reader, level, typed)?;
        if item.insert(&*name, value).is_some() {
            return Err(PlainError::Value(format!("duplicate name: name={name}")));
        }
    }
    Ok(item)
}

fn plain_value(reader: &mut Reader<'_>, level: usize, typed: Typed) -> Result<Value, PlainError> {
    if level > NESTING_LEVELS_MAX {
        return Err(PlainError::Value(format!(
            "nested too deeply: levels_max={NESTING_LEVELS_MAX}"
        )));
    }
    if typed == Typed::AreAmbiguous && is_typed(&mut reader.revisit(reader.position())) {
        return Err(PlainError::Value(format!(
            "a value can be a map, or a value of DynamoDB JSON: offset={}; set the format with --input, or print items with \
                         --json=dynamodb",
            reader.position()
        )));
    }
    Ok(match reader.peek()? {
        Token::String => Value::from(&*reader.string()?),
        Token::Number => {
            let text = reader.number()?;
            let number = text.parse::<Number>();
            Value::N(number.map_err(|error| PlainError::Value(error.message(text)))?)
        }
        Token::Bool => Value::from(reader.bool()?),
        Token::Null => {
            reader.null()?;
            Value::Null
        }
        Token::Object => Value::M(plain_item(reader, level + 1, typed)?),
        Token::Array => {
            reader.begin_array()?;
            let mut values = Vec::new();
            while reader.next_element()? {
                values.push(plain_value(reader, level + 1, typed)?);
            }
            Value::L(values)
        }
        #[expect(unreachable_patterns, reason = "`Token` may gain variants")]
        _ => return Err(PlainError::Json),
    })
}

/// Parses the values of `#name` placeholders.
fn names(argument: &str) -> Result<BTreeMap<String, Name>> {
    let item = plain("--names", &text("--names", argument)?, Typed::AreMaps)?;
    let name = |(placeholder, value): (&Name, &Value)| match value.as_s() {
        Some(name) => Ok((placeholder.as_str().to_owned(), Name::from(name))),
        None => Err(Failure::usage(format!(
            "--names: an attribute name must be text: placeholder={placeholder}"
        ))),
    };
    item.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use floe_store::Set;

    use super::*;

    fn read(form: JsonFormat, text: &str) -> Result<Item, String> {
        let input = Input { form };
        input
            .item("--item", text)
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn format_is_detected_from_the_values() {
        let item = Item::new().with("id", "a").with("n", 5);
        for text in [
            r#"{"id":"a","n":5}"#,
            r#"{"id":{"S":"a"},"n":{"N":"5"}}"#,
            r#" { "id" : "a" , "n" : 5 } "#,
        ] {
            assert_eq!(read(JsonFormat::Auto, text), Ok(item.clone()), "{text}");
        }
        let map = Item::new().with("v", Item::new().with("S", "a").with("x", 1));
        assert_eq!(read(JsonFormat::Auto, r#"{"v":{"S":"a","x":1}}"#), Ok(map));
        let set = Item::new().with("v", Set::new(["a".to_owned()]).unwrap());
        assert_eq!(read(JsonFormat::Auto, r#"{"v":{"SS":["a"]}}"#), Ok(set));
    }

    #[test]
    fn mixed_formats_are_rejected_without_the_input_option() {
        let mixture = r#"{"id":"a","v":{"S":"x"}}"#;
        assert_eq!(
            read(JsonFormat::Auto, mixture),
            Err("--item mixes plain and DynamoDB JSON: plain=1 dynamodb=1; set the format with --input".to_owned())
        );
        let plain = Item::new()
            .with("id", "a")
            .with("v", Item::new().with("S", "x"));
        assert_eq!(read(JsonFormat::Plain, mixture), Ok(plain));
        let refused = read(JsonFormat::Dynamodb, mixture).unwrap_err();
        assert!(
            refused.starts_with("--item is not valid DynamoDB JSON"),
            "{refused}"
        );
        // Sets inside of values are printed with their types.
        for (nested, offset) in [
            (r#"{"id":"a","v":{"tags":{"SS":["x"]},"n":1}}"#, 22),
            (r#"{"id":"a","v":[1,{"B":"AQ=="}]}"#, 17),
        ] {
            let refused = read(JsonFormat::Auto, nested).unwrap_err();
            let expected = format!(
                "--item: a value can be a map, or a value of DynamoDB JSON: offset={offset}; set the format with --input"
            );
            assert!(refused.starts_with(&expected), "{refused}");
            assert!(read(JsonFormat::Plain, nested).is_ok(), "{nested}");
        }
        let map = Item::new().with("v", Item::new().with("m", Item::new().with("S", "x")));
        assert_eq!(
            read(
                JsonFormat::Dynamodb,
                r#"{"v":{"M":{"m":{"M":{"S":{"S":"x"}}}}}}"#
            ),
            Ok(map)
        );
    }

    #[test]
    fn parse_errors_report_the_offset() {
        for (text, message) in [
            (
                "",
                "--item is not valid JSON: offset=0; example: {\"id\":\"a\"}",
            ),
            (
                "{\"id\":}",
                "--item is not valid JSON: offset=6; example: {\"id\":\"a\"}",
            ),
            (
                "{\"id\":\"a\"} x",
                "--item: unexpected text after the JSON: offset=10",
            ),
            ("{\"a\":1,\"a\":2}", "--item: duplicate name: name=a"),
        ] {
            assert_eq!(
                read(JsonFormat::Auto, text),
                Err(message.to_owned()),
                "{text}"
            );
        }
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(40), "]".repeat(40));
        assert_eq!(
            read(JsonFormat::Plain, &deep),
            Err("--item: nested too deeply: levels_max=32".to_owned())
        );
        assert!(read(JsonFormat::Plain, r#"{"n":1e999}"#).is_err());
    }
}
