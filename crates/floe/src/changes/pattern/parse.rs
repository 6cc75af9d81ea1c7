//! Parses patterns from JSON and validates them.

use floe_store::Number;
use serde_json::{Map, Value as Json};

use super::rule::{Bound, Condition, Scalar, Text};
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
/// The fields of an envelope's detail.
const DETAIL_FIELDS: [&str; 3] = [PK_TYPE, SK_TYPE, RECORD];

const OR: &str = "$or";

pub(super) fn pattern(json: &str) -> Result<Pattern> {
    let json: Json = serde_json::from_str(json).map_err(|error| {
        let message = format!("the pattern is not JSON: {error}");
        Error::new(ErrorKind::InvalidUse, message)
    })?;
    let Json::Object(object) = &json else {
        return Err(invalid("a pattern must be an object", "", ""));
    };
    let root = Node::Object(fields(object, "")?);
    check_fields(&root, &mut Vec::new())?;
    Ok(Pattern { root })
}

/// Checks that envelopes have a field with this path.
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
    Err(invalid("unknown envelope field", "", path))
}

pub(super) fn check_rules(rules: &[Rule], path: &str) -> Result<()> {
    if rules.is_empty() {
        return Err(invalid("a field needs at least one rule", "", path));
    }
    Ok(())
}

/// Checks that envelopes have every field of the pattern.
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
        return Err(invalid("an object in a pattern must have fields", "", at));
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
            Json::Array(list) => {
                Node::Leaf(each(list, &at, |json, at| condition(json, at).map(Rule))?)
            }
            _ => return Err(invalid("values must be in a list", "", &at)),
        };
        fields.fields.push((name.clone(), node));
    }
    Ok(fields)
}

fn choice(json: &Json, at: &str) -> Result<Vec<Node>> {
    let list = json.as_array().filter(|list| list.len() > 1);
    let list = list.ok_or_else(|| invalid("$or needs a list of at least two patterns", "", at))?;
    let pattern = |(index, json): (usize, &Json)| match json {
        Json::Object(object) => fields(object, &format!("{at}[{index}]")).map(Node::Object),
        _ => Err(invalid("$or needs a list of objects", "", at)),
    };
    list.iter().enumerate().map(pattern).collect()
}

fn each<T>(list: &[Json], at: &str, read: impl Fn(&Json, &str) -> Result<T>) -> Result<Vec<T>> {
    if list.is_empty() {
        return Err(invalid("a list in a pattern must not be empty", "", at));
    }
    let entries = list.iter().enumerate();
    entries
        .map(|(index, json)| read(json, &format!("{at}[{index}]")))
        .collect()
}

fn condition(json: &Json, at: &str) -> Result<Condition> {
    let Json::Object(object) = json else {
        return scalar(json, at).map(Condition::Is);
    };
    let (name, json) = only(object, at)?;
    Ok(match name {
        "exists" => {
            let exists = json.as_bool();
            Condition::Exists(
                exists.ok_or_else(|| invalid("exists must be true or false", "", at))?,
            )
        }
        "numeric" => Condition::Numeric(bounds(json, at)?),
        "anything-but" => Condition::AnythingBut(anything_but(json, at)?),
        _ => Condition::Text(comparison(name, json, at)?),
    })
}

/// The only field of a comparison.
fn only<'j>(object: &'j Map<String, Json>, at: &str) -> Result<(&'j str, &'j Json)> {
    let mut fields = object.iter();
    match (fields.next(), fields.next()) {
        (Some((name, json)), None) => Ok((name, json)),
        _ => Err(invalid("a comparison must have one field", "", at)),
    }
}

fn scalar(json: &Json, at: &str) -> Result<Scalar> {
    Ok(match json {
        Json::String(text) => Scalar::Text(text.clone()),
        Json::Bool(flag) => Scalar::Bool(*flag),
        Json::Null => Scalar::Null,
        Json::Number(_) => Scalar::Number(number(json, at)?),
        _ => {
            return Err(invalid(
                "a list may contain values and comparisons only",
                "",
                at,
            ));
        }
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
    let invalid = |reason: &str| invalid(reason, &format!("comparison={name}"), at);
    if !known.contains(&name) {
        return Err(invalid("unknown comparison"));
    }
    let text = text.ok_or_else(|| invalid("the comparison needs text"))?;
    let text = text.to_owned();
    Ok(match (name, ignores_case) {
        ("prefix", false) => Text::Prefix(text),
        ("prefix", true) => Text::PrefixIgnoreCase(text),
        ("suffix", false) => Text::Suffix(text),
        ("suffix", true) => Text::SuffixIgnoreCase(text),
        ("equals-ignore-case", false) => Text::EqualsIgnoreCase(text),
        ("wildcard", false) => Text::Wildcard(parts(&text, at)?),
        _ => return Err(invalid("the comparison is not allowed here")),
    })
}

/// The conditions of an `anything-but`.
fn anything_but(json: &Json, at: &str) -> Result<Vec<Condition>> {
    let at = format!("{at}.anything-but");
    match json {
        Json::Object(object) => {
            let (name, json) = only(object, &at)?;
            let text = |json: &Json, at: &str| comparison(name, json, at).map(Condition::Text);
            match json {
                Json::Array(list) => each(list, &at, text),
                json => Ok(vec![text(json, &at)?]),
            }
        }
        Json::Array(list) => each(list, &at, |json, at| scalar(json, at).map(Condition::Is)),
        json => Ok(vec![Condition::Is(scalar(json, &at)?)]),
    }
}

/// One bound, or a lower and an upper one.
fn bounds(json: &Json, at: &str) -> Result<Vec<(Bound, Number)>> {
    let list = json.as_array().map(Vec::as_slice).unwrap_or_default();
    let malformed = || {
        let reason = "numeric must be `=` or a bound with a number, or a lower and an upper bound";
        invalid(reason, "", at)
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
        _ => return Err(invalid("a bound must be a number", "", at)),
    };
    let number = text.parse();
    number.map_err(|_| invalid("the number cannot be stored", &format!("value={text}"), at))
}

/// Splits a wildcard at each `*`.
fn parts(text: &str, at: &str) -> Result<Vec<String>> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    while let Some(sign) = chars.next() {
        match sign {
            '*' if chars.peek() == Some(&'*') => {
                return Err(invalid("a wildcard must not contain `**`", "", at));
            }
            '*' => parts.push(std::mem::take(&mut part)),
            '\\' => match chars.next() {
                Some(sign @ ('*' | '\\')) => part.push(sign),
                _ => return Err(invalid("`\\` must be followed by `*` or `\\`", "", at)),
            },
            sign => part.push(sign),
        }
    }
    parts.push(part);
    Ok(parts)
}

fn invalid(reason: &str, fact: &str, at: &str) -> Error {
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
