//! Reading patterns from JSON, and checking them.

use floe_store::Number;
use serde_json::{Map, Value as Json};

use super::rule::{Bound, Form, Plain, Text};
use super::{DETAIL, DETAIL_TYPE, Fields, Node, PK_TYPE, Pattern, RECORD, Rule, SK_TYPE, SOURCE};
use crate::error::{Error, ErrorKind, Result};

/// The fields of an envelope.
const FIELDS: [&str; 7] = [
    SOURCE,
    DETAIL_TYPE,
    DETAIL,
    "id",
    "time",
    "version",
    "resources",
];
/// The fields of what an envelope tells.
const DETAIL_FIELDS: [&str; 3] = [PK_TYPE, SK_TYPE, RECORD];

const OR: &str = "$or";

pub(super) fn pattern(json: &str) -> Result<Pattern> {
    let json: Json = serde_json::from_str(json).map_err(|error| {
        let message = format!("a pattern is JSON: {error}");
        Error::new(ErrorKind::InvalidUse, message)
    })?;
    let Json::Object(object) = &json else {
        return Err(refused("a pattern is an object", "", ""));
    };
    let root = Node::Object(fields(object, "")?);
    check_fields(&root, &mut Vec::new())?;
    Ok(Pattern { root })
}

/// Sees that an envelope has a field of this path.
pub(super) fn check_path(names: &[&str], path: &str) -> Result<()> {
    let is_known = match names {
        [DETAIL] | [] => false,
        [DETAIL, field] => *field != RECORD && DETAIL_FIELDS.contains(field),
        [DETAIL, field, ..] => *field == RECORD,
        [field] => FIELDS.contains(field),
        _ => false,
    };
    if is_known && !names.contains(&"") {
        return Ok(());
    }
    Err(refused("no envelope has such a field", "", path))
}

pub(super) fn check_rules(rules: &[Rule], path: &str) -> Result<()> {
    if rules.is_empty() {
        return Err(refused("a field needs at least one rule", "", path));
    }
    Ok(())
}

/// Sees that an envelope has every field of which something is said.
fn check_fields<'n>(node: &'n Node, path: &mut Vec<&'n str>) -> Result<()> {
    match node {
        Node::Leaf(_) => check_path(path, &path.join(".")),
        Node::Object(Fields { fields, choices }) => {
            for (name, node) in fields {
                path.push(name);
                check_fields(node, path)?;
                path.pop();
            }
            let mut choices = choices.iter().flatten();
            choices.try_for_each(|node| check_fields(node, path))
        }
    }
}

fn fields(object: &Map<String, Json>, at: &str) -> Result<Fields> {
    if object.is_empty() {
        return Err(refused("an object in a pattern has fields", "", at));
    }
    let mut fields = Fields::default();
    for (name, json) in object {
        let at = if at.is_empty() {
            name.clone()
        } else {
            format!("{at}.{name}")
        };
        if name == OR {
            fields.choices.push(choice(json, &at)?);
            continue;
        }
        let node = match json {
            Json::Object(object) => Node::Object(self::fields(object, &at)?),
            Json::Array(list) => Node::Leaf(each(list, &at, |json, at| form(json, at).map(Rule))?),
            _ => return Err(refused("a value stands in a list", "", &at)),
        };
        fields.fields.push((name.clone(), node));
    }
    Ok(fields)
}

fn choice(json: &Json, at: &str) -> Result<Vec<Node>> {
    let list = json.as_array().filter(|list| list.len() > 1);
    let list = list.ok_or_else(|| refused("$or is a list of two patterns or more", "", at))?;
    let pattern = |(place, json): (usize, &Json)| match json {
        Json::Object(object) => fields(object, &format!("{at}[{place}]")).map(Node::Object),
        _ => Err(refused("$or is a list of objects", "", at)),
    };
    list.iter().enumerate().map(pattern).collect()
}

fn each<T>(list: &[Json], at: &str, read: impl Fn(&Json, &str) -> Result<T>) -> Result<Vec<T>> {
    if list.is_empty() {
        return Err(refused("a list in a pattern has values", "", at));
    }
    let places = list.iter().enumerate();
    places
        .map(|(place, json)| read(json, &format!("{at}[{place}]")))
        .collect()
}

fn form(json: &Json, at: &str) -> Result<Form> {
    let Json::Object(object) = json else {
        return plain(json, at).map(Form::Is);
    };
    let (name, json) = only(object, at)?;
    Ok(match name {
        "exists" => {
            let exists = json.as_bool();
            Form::Exists(exists.ok_or_else(|| refused("exists is true or false", "", at))?)
        }
        "numeric" => Form::Numeric(bounds(json, at)?),
        "anything-but" => Form::AnythingBut(excluded(json, at)?),
        _ => Form::Text(comparison(name, json, at)?),
    })
}

/// The only field of a comparison.
fn only<'j>(object: &'j Map<String, Json>, at: &str) -> Result<(&'j str, &'j Json)> {
    let mut fields = object.iter();
    match (fields.next(), fields.next()) {
        (Some((name, json)), None) => Ok((name, json)),
        _ => Err(refused("a comparison has one field", "", at)),
    }
}

fn plain(json: &Json, at: &str) -> Result<Plain> {
    Ok(match json {
        Json::String(text) => Plain::Text(text.clone()),
        Json::Bool(flag) => Plain::Bool(*flag),
        Json::Null => Plain::Null,
        Json::Number(_) => Plain::Number(number(json, at)?),
        _ => return Err(refused("a list holds values and comparisons", "", at)),
    })
}

fn comparison(name: &str, json: &Json, at: &str) -> Result<Text> {
    let ignores_case = json.as_object().and_then(|o| o.get("equals-ignore-case"));
    let (text, ignores_case) = match ignores_case {
        Some(json) => (json.as_str(), true),
        None => (json.as_str(), false),
    };
    let known = [
        "prefix",
        "suffix",
        "equals-ignore-case",
        "wildcard",
        "numeric",
        "anything-but",
        "exists",
    ];
    let refused = |reason: &str| refused(reason, &format!("comparison={name}"), at);
    if !known.contains(&name) {
        return Err(refused("no such comparison"));
    }
    let text = text.ok_or_else(|| refused("it compares with text"))?;
    let text = text.to_owned();
    Ok(match (name, ignores_case) {
        ("prefix", false) => Text::Prefix(text),
        ("prefix", true) => Text::PrefixIgnoreCase(text),
        ("suffix", false) => Text::Suffix(text),
        ("suffix", true) => Text::SuffixIgnoreCase(text),
        ("equals-ignore-case", false) => Text::EqualsIgnoreCase(text),
        ("wildcard", false) => Text::Wildcard(parts(&text, at)?),
        _ => return Err(refused("it cannot stand here")),
    })
}

/// What anything may be but.
fn excluded(json: &Json, at: &str) -> Result<Vec<Form>> {
    let at = format!("{at}.anything-but");
    match json {
        Json::Object(object) => {
            let (name, json) = only(object, &at)?;
            let text = |json: &Json, at: &str| comparison(name, json, at).map(Form::Text);
            match json {
                Json::Array(list) => each(list, &at, text),
                json => Ok(vec![text(json, &at)?]),
            }
        }
        Json::Array(list) => each(list, &at, |json, at| plain(json, at).map(Form::Is)),
        json => Ok(vec![Form::Is(plain(json, &at)?)]),
    }
}

/// One bound, or a lower and an upper one.
fn bounds(json: &Json, at: &str) -> Result<Vec<(Bound, Number)>> {
    let list = json.as_array().map(Vec::as_slice).unwrap_or_default();
    let malformed = || {
        let reason = "numeric is `=` or a bound with a number, or a lower and an upper one";
        refused(reason, "", at)
    };
    if list.is_empty() || !list.len().is_multiple_of(2) {
        return Err(malformed());
    }
    let mut bounds = Vec::new();
    for pair in list.chunks(2) {
        let [sign, limit] = pair else {
            return Err(malformed());
        };
        let bound = match sign.as_str() {
            Some("=") => Bound::Equal,
            Some("<") => Bound::Less,
            Some("<=") => Bound::AtMost,
            Some(">") => Bound::More,
            Some(">=") => Bound::AtLeast,
            _ => return Err(malformed()),
        };
        bounds.push((bound, number(limit, at)?));
    }
    match bounds[..] {
        [_] => Ok(bounds),
        [
            (Bound::More | Bound::AtLeast, low),
            (Bound::Less | Bound::AtMost, high),
        ] if low < high => Ok(bounds),
        _ => Err(malformed()),
    }
}

fn number(json: &Json, at: &str) -> Result<Number> {
    let text = match json {
        Json::Number(number) => number.to_string(),
        _ => return Err(refused("a bound is a number", "", at)),
    };
    let number = text.parse();
    number.map_err(|_| refused("the number cannot be stored", &format!("value={text}"), at))
}

/// The parts of a text between its `*`.
fn parts(text: &str, at: &str) -> Result<Vec<String>> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '*' if signs.peek() == Some(&'*') => {
                return Err(refused("a wildcard has no `*` beside another", "", at));
            }
            '*' => parts.push(std::mem::take(&mut part)),
            '\\' => match signs.next() {
                Some(sign @ ('*' | '\\')) => part.push(sign),
                _ => return Err(refused("`\\` stands before `*` or `\\`", "", at)),
            },
            sign => part.push(sign),
        }
    }
    parts.push(part);
    Ok(parts)
}

fn refused(reason: &str, fact: &str, at: &str) -> Error {
    let at = if at.is_empty() {
        ""
    } else {
        &format!("at={at}")
    };
    let facts: Vec<&str> = [fact, at]
        .into_iter()
        .filter(|fact| !fact.is_empty())
        .collect();
    let message = match facts[..] {
        [] => reason.to_owned(),
        _ => format!("{reason}: {}", facts.join(" ")),
    };
    Error::new(ErrorKind::InvalidUse, message)
}
