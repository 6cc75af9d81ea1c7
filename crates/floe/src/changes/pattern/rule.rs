//! Rules: conditions on values.

use std::cmp::Ordering;

use floe_store::Number;
use serde_json::Value as Json;

/// A condition on a value of the envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule(pub(super) Condition);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    Is(Scalar),
    Text(Text),
    /// All bounds hold.
    Numeric(Vec<(Bound, Number)>),
    /// The value exists and satisfies none of these.
    AnythingBut(Vec<Condition>),
    Exists(bool),
}

/// A scalar value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Text(String),
    Number(Number),
    Bool(bool),
    Null,
}

/// A comparison of text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Text {
    Prefix(String),
    PrefixIgnoreCase(String),
    Suffix(String),
    SuffixIgnoreCase(String),
    EqualsIgnoreCase(String),
    /// The literal parts between the asterisks.
    Wildcard(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Equal,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Rule {
    /// Matches this value.
    pub fn is(value: impl Into<Self>) -> Self {
        value.into()
    }

    /// Matches the null value.
    pub const fn null() -> Self {
        Self(Condition::Is(Scalar::Null))
    }

    /// Matches text with this prefix.
    pub fn prefix(prefix: impl Into<String>) -> Self {
        Self(Condition::Text(Text::Prefix(prefix.into())))
    }

    /// Matches text with this suffix.
    pub fn suffix(suffix: impl Into<String>) -> Self {
        Self(Condition::Text(Text::Suffix(suffix.into())))
    }

    /// Matches this text, ignoring case.
    pub fn equals_ignore_case(text: impl Into<String>) -> Self {
        Self(Condition::Text(Text::EqualsIgnoreCase(text.into())))
    }

    /// Matches a present value that none of these rules matches.
    pub fn anything_but(rules: impl IntoIterator<Item = impl Into<Self>>) -> Self {
        let rules = rules.into_iter().map(|rule| rule.into().0);
        Self(Condition::AnythingBut(rules.collect()))
    }

    /// Matches numbers below the bound.
    pub fn below(bound: impl Into<Number>) -> Self {
        Self(Condition::Numeric(vec![(Bound::Less, bound.into())]))
    }

    /// Matches numbers up to the bound.
    pub fn at_most(bound: impl Into<Number>) -> Self {
        Self(Condition::Numeric(vec![(Bound::AtMost, bound.into())]))
    }

    /// Matches numbers above the bound.
    pub fn above(bound: impl Into<Number>) -> Self {
        Self(Condition::Numeric(vec![(Bound::More, bound.into())]))
    }

    /// Matches numbers from the bound.
    pub fn at_least(bound: impl Into<Number>) -> Self {
        Self(Condition::Numeric(vec![(Bound::AtLeast, bound.into())]))
    }

    /// Matches numbers from `low` to `high`, inclusive.
    pub fn between(low: impl Into<Number>, high: impl Into<Number>) -> Self {
        Self(Condition::Numeric(vec![
            (Bound::AtLeast, low.into()),
            (Bound::AtMost, high.into()),
        ]))
    }

    /// Matches any present value.
    pub const fn exists() -> Self {
        Self(Condition::Exists(true))
    }

    /// Matches an absent value.
    pub const fn absent() -> Self {
        Self(Condition::Exists(false))
    }

    /// Whether the rule matches the values of a field, one of which is enough.
    pub(super) fn matches(&self, values: &[&Json], name: &str) -> bool {
        match &self.0 {
            Condition::Exists(exists) => *exists != values.is_empty(),
            condition => values.iter().any(|value| condition.holds(value, name)),
        }
    }
}

impl From<&str> for Rule {
    fn from(text: &str) -> Self {
        Self(Condition::Is(Scalar::Text(text.to_owned())))
    }
}

impl From<i64> for Rule {
    fn from(number: i64) -> Self {
        Self(Condition::Is(Scalar::Number(Number::from(number))))
    }
}

impl From<bool> for Rule {
    fn from(flag: bool) -> Self {
        Self(Condition::Is(Scalar::Bool(flag)))
    }
}

impl Condition {
    fn holds(&self, value: &Json, name: &str) -> bool {
        match self {
            Self::Is(scalar) => scalar.equals(value, name),
            Self::Text(text) => value.as_str().is_some_and(|value| text.matches(value)),
            Self::Numeric(bounds) => number(value, name).is_some_and(|number| {
                let mut bounds = bounds.iter();
                bounds.all(|(bound, limit)| bound.admits(number.cmp(limit)))
            }),
            Self::AnythingBut(conditions) => !conditions
                .iter()
                .any(|condition| condition.holds(value, name)),
            Self::Exists(exists) => *exists,
        }
    }
}

impl Scalar {
    fn equals(&self, value: &Json, name: &str) -> bool {
        match (self, value) {
            (Self::Text(text), Json::String(value)) => text == value,
            (Self::Number(one), value) => number(value, name) == Some(*one),
            (Self::Bool(one), Json::Bool(value)) => one == value,
            (Self::Null, Json::Null) => true,
            _ => false,
        }
    }
}

/// The number in a value: a JSON number, or the text of an `N` attribute.
fn number(value: &Json, name: &str) -> Option<Number> {
    match value {
        Json::Number(number) => number.to_string().parse().ok(),
        Json::String(text) if name == "N" => text.parse().ok(),
        _ => None,
    }
}

impl Bound {
    fn admits(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

impl Text {
    fn matches(&self, value: &str) -> bool {
        match self {
            Self::Prefix(text) => value.starts_with(text),
            Self::Suffix(text) => value.ends_with(text),
            Self::PrefixIgnoreCase(text) => lower(value).starts_with(&lower(text)),
            Self::SuffixIgnoreCase(text) => lower(value).ends_with(&lower(text)),
            Self::EqualsIgnoreCase(text) => lower(value) == lower(text),
            Self::Wildcard(parts) => matches_parts(parts, value),
        }
    }
}

fn lower(text: &str) -> String {
    text.to_lowercase()
}

/// Whether the text starts with the first part, ends with the last, and contains the others in order between them.
fn matches_parts(parts: &[String], text: &str) -> bool {
    let Some((first, rest)) = parts.split_first() else {
        return text.is_empty();
    };
    let Some(mut text) = text.strip_prefix(first.as_str()) else {
        return false;
    };
    let Some((last, middle)) = rest.split_last() else {
        return text.is_empty();
    };
    for part in middle {
        // The first occurrence leaves the most text for the remaining parts.
        match text.split_once(part.as_str()) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    text.ends_with(last.as_str())
}
