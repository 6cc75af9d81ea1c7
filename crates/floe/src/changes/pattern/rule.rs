//! Rules: what a value must be.

use std::cmp::Ordering;

use floe_store::Number;
use serde_json::Value as Json;

/// What a value of the envelope must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule(pub(super) Form);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    Is(Plain),
    Text(Text),
    /// All of these bounds hold.
    Numeric(Vec<(Bound, Number)>),
    /// It is there, and none of these.
    AnythingBut(Vec<Form>),
    Exists(bool),
}

/// A value without parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plain {
    Text(String),
    Number(Number),
    Bool(bool),
    Null,
}

/// How text is compared.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Text {
    Prefix(String),
    PrefixIgnoreCase(String),
    Suffix(String),
    SuffixIgnoreCase(String),
    EqualsIgnoreCase(String),
    /// The parts between the signs that stand for anything.
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
    /// This value.
    pub fn is(value: impl Into<Self>) -> Self {
        value.into()
    }

    /// The null value.
    pub const fn null() -> Self {
        Self(Form::Is(Plain::Null))
    }

    /// Text that begins so.
    pub fn prefix(prefix: impl Into<String>) -> Self {
        Self(Form::Text(Text::Prefix(prefix.into())))
    }

    /// Text that ends so.
    pub fn suffix(suffix: impl Into<String>) -> Self {
        Self(Form::Text(Text::Suffix(suffix.into())))
    }

    /// This text, in whatever case.
    pub fn equals_ignore_case(text: impl Into<String>) -> Self {
        Self(Form::Text(Text::EqualsIgnoreCase(text.into())))
    }

    /// A value that is there, and to which none of these applies.
    pub fn anything_but(rules: impl IntoIterator<Item = impl Into<Self>>) -> Self {
        let rules = rules.into_iter().map(|rule| rule.into().0);
        Self(Form::AnythingBut(rules.collect()))
    }

    /// A number that is less.
    pub fn below(bound: impl Into<Number>) -> Self {
        Self(Form::Numeric(vec![(Bound::Less, bound.into())]))
    }

    /// A number that is not more.
    pub fn at_most(bound: impl Into<Number>) -> Self {
        Self(Form::Numeric(vec![(Bound::AtMost, bound.into())]))
    }

    /// A number that is more.
    pub fn above(bound: impl Into<Number>) -> Self {
        Self(Form::Numeric(vec![(Bound::More, bound.into())]))
    }

    /// A number that is not less.
    pub fn at_least(bound: impl Into<Number>) -> Self {
        Self(Form::Numeric(vec![(Bound::AtLeast, bound.into())]))
    }

    /// A number that is neither less than the first nor more than the second.
    pub fn between(low: impl Into<Number>, high: impl Into<Number>) -> Self {
        Self(Form::Numeric(vec![
            (Bound::AtLeast, low.into()),
            (Bound::AtMost, high.into()),
        ]))
    }

    /// Whatever is there.
    pub const fn exists() -> Self {
        Self(Form::Exists(true))
    }

    /// Nothing is there.
    pub const fn absent() -> Self {
        Self(Form::Exists(false))
    }

    /// Whether it holds of the values of a field, of which one is enough.
    pub(super) fn matches(&self, values: &[&Json], name: &str) -> bool {
        match &self.0 {
            Form::Exists(exists) => *exists != values.is_empty(),
            form => values.iter().any(|value| form.holds(value, name)),
        }
    }
}

impl From<&str> for Rule {
    fn from(text: &str) -> Self {
        Self(Form::Is(Plain::Text(text.to_owned())))
    }
}

impl From<i64> for Rule {
    fn from(number: i64) -> Self {
        Self(Form::Is(Plain::Number(Number::from(number))))
    }
}

impl From<bool> for Rule {
    fn from(flag: bool) -> Self {
        Self(Form::Is(Plain::Bool(flag)))
    }
}

impl Form {
    fn holds(&self, value: &Json, name: &str) -> bool {
        match self {
            Self::Is(plain) => plain.equals(value, name),
            Self::Text(text) => value.as_str().is_some_and(|value| text.matches(value)),
            Self::Numeric(bounds) => number(value, name).is_some_and(|number| {
                let mut bounds = bounds.iter();
                bounds.all(|(bound, limit)| bound.admits(number.cmp(limit)))
            }),
            Self::AnythingBut(forms) => !forms.iter().any(|form| form.holds(value, name)),
            Self::Exists(exists) => *exists,
        }
    }
}

impl Plain {
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

/// The number of a value: itself, or the text of an attribute that is a number.
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

/// Whether the text begins with the first part, ends with the last, and has the others in between in their order.
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
        // The first place is the best one: it leaves most of the text.
        match text.split_once(part.as_str()) {
            Some((_, behind)) => text = behind,
            None => return false,
        }
    }
    text.ends_with(last.as_str())
}
