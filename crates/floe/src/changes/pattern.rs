//! Patterns select changes, with the syntax of Amazon EventBridge's rules.
//!
//! A pattern has the structure of the [envelope](super::envelope) of a change. A field in the pattern must match one
//! of the values in its list; other fields may have any value.
//!
//! ```
//! use floe::changes::Pattern;
//!
// The rule for layers: every removal of a layer version.
//! let pattern = Pattern::parse(r#"{
//!     "source": ["klayers"],
//!     "detail-type": ["REMOVE"],
//!     "detail": { "pk_type": ["lyr"], "sk_type": [{ "anything-but": "lyrVrsn0" }] }
//! }"#)?;
//!
//! let error = Pattern::parse(r#"{ "detail": { "pk_type": [{ "prefx": "l" }] } }"#).unwrap_err();
//! assert_eq!(error.to_string(), "unknown comparison: comparison=prefx at=detail.pk_type[0]");
//! # Ok::<(), floe::Error>(())
//! ```
//!
//! | in a list | matches |
//! |---|---|
//! | `"text"`, `7`, `true`, `null`, `""` | that value |
//! | `{"prefix": "a"}`, `{"suffix": "z"}` | text with this prefix or suffix; `{"prefix": {"equals-ignore-case": "a"}}` ignores case |
//! | `{"equals-ignore-case": "a"}` | the text, ignoring case |
//! | `{"wildcard": "a*z"}` | text in which each `*` stands for any text (`\*` is a literal asterisk) |
//! | `{"numeric": [">", 0, "<=", 5]}` | numbers: `=`, one bound, or two bounds |
//! | `{"anything-but": ..}` | present values other than: a value, a list, a `prefix`, `suffix`, `wildcard` or `equals-ignore-case` |
//! | `{"exists": true}`, `{"exists": false}` | a present, or absent, value |
//!
//! `"$or": [{..}, {..}]` in an object matches if one of its patterns matches. A list in the envelope matches if one
//! of its elements matches.
//!
//! # Differences from EventBridge
//!
//! - The record contains items in DynamoDB's JSON, with numbers as text (`{"N": "5"}`). `numeric` and plain numbers
//!   match the text of an `N`. On a real bus they do not: there, match `"N": ["5"]`.
//! - Numbers are compared by value: `5` matches `5.0`.
//! - A field that no envelope has is rejected. `cidr` is not supported.

mod parse;
mod rule;

use floe_store::op::ChangeKind;
use serde_json::Value as Json;

pub use self::rule::Rule;
use super::envelope::{Envelope, EnvelopePart};
use crate::error::Result;

/// Selects changes. Validated when it is created.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    root: Node,
}

/// A node of a pattern.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// Conditions on an object.
    Object(Fields),
    /// Rules for a value, one of which must match.
    Leaf(Vec<Rule>),
}

/// Conditions on an object, all of which must hold.
#[derive(Clone, Debug, PartialEq, Default)]
struct Fields {
    fields: Vec<(String, Node)>,
    /// One node of each choice must match.
    choices: Vec<Vec<Node>>,
}

const SOURCE: &str = "source";
const DETAIL_TYPE: &str = "detail-type";
const DETAIL: &str = "detail";
const PK_TYPE: &str = "pk_type";
const SK_TYPE: &str = "sk_type";
const RECORD: &str = "record";

impl Pattern {
    /// Matches every change.
    pub fn any() -> Self {
        Self {
            root: Node::Object(Fields::default()),
        }
    }

    /// Parses a pattern from JSON.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if the JSON is not a pattern; the message contains the path.
    pub fn parse(json: &str) -> Result<Self> {
        parse::pattern(json)
    }

    /// Matches this source only: the name of the table, unless the router sets another one.
    #[must_use]
    pub fn source(self, source: impl Into<Rule>) -> Self {
        self.with(&[SOURCE], vec![source.into()])
    }

    /// Matches this kind of change only.
    #[must_use]
    pub fn kind(self, kind: ChangeKind) -> Self {
        self.with(&[DETAIL_TYPE], vec![kind.as_str().into()])
    }

    /// Matches items whose partition key has this text before its first `#`.
    #[must_use]
    pub fn pk_type(self, pk_type: impl Into<Rule>) -> Self {
        self.with(&[DETAIL, PK_TYPE], vec![pk_type.into()])
    }

    /// Matches items whose sort key has this text before its first `#`.
    #[must_use]
    pub fn sk_type(self, sk_type: impl Into<Rule>) -> Self {
        self.with(&[DETAIL, SK_TYPE], vec![sk_type.into()])
    }

    /// Matches changes whose envelope field at this path (names joined by `.`) matches one of the rules.
    ///
    /// ```
    /// use floe::changes::{Pattern, Rule};
    ///
    /// let level = "detail.record.dynamodb.NewImage.level.N";
    /// let pattern = Pattern::any().field(level, [Rule::at_least(10), Rule::is(1)])?;
    /// # Ok::<(), floe::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if no envelope has this field, or there are no rules.
    pub fn field(self, path: &str, rules: impl IntoIterator<Item = Rule>) -> Result<Self> {
        let names: Vec<&str> = path.split('.').collect();
        let rules: Vec<Rule> = rules.into_iter().collect();
        parse::check_path(&names, path)?;
        parse::check_rules(&rules, path)?;
        Ok(self.with(&names, rules))
    }

    /// Additionally requires one of these patterns to match the change.
    #[must_use]
    pub fn one_of(mut self, patterns: impl IntoIterator<Item = Self>) -> Self {
        let choice = patterns.into_iter().map(|pattern| pattern.root).collect();
        if let Node::Object(fields) = &mut self.root {
            fields.choices.push(choice);
        }
        self
    }

    fn with(mut self, path: &[&str], rules: Vec<Rule>) -> Self {
        self.root.set(path, rules);
        self
    }

    /// Whether the pattern matches the change in the envelope.
    pub fn matches(&self, envelope: &Envelope) -> bool {
        // Most changes are decided without the record, which is the most expensive part to write.
        let is_possible = self
            .root
            .matches(Some(&envelope.head()), "", EnvelopePart::Head);
        is_possible
            && (!self.root.reads_record()
                || self
                    .root
                    .matches(Some(&envelope.to_json()), "", EnvelopePart::Whole))
    }
}

impl Node {
    fn set(&mut self, path: &[&str], rules: Vec<Rule>) {
        let (Self::Object(fields), Some((name, rest))) = (&mut *self, path.split_first()) else {
            *self = Self::Leaf(rules);
            return;
        };
        let index = fields.fields.iter().position(|(known, _)| known == name);
        let index = index.unwrap_or_else(|| {
            let node = Self::Object(Fields::default());
            fields.fields.push(((*name).to_owned(), node));
            fields.fields.len() - 1
        });
        if let Some((_, node)) = fields.fields.get_mut(index) {
            node.set(rest, rules);
        }
    }

    /// Whether it has rules on the record.
    fn reads_record(&self) -> bool {
        let Self::Object(Fields { fields, choices }) = self else {
            return false;
        };
        let mut choices = choices.iter().flatten();
        fields
            .iter()
            .any(|(name, node)| name == RECORD || node.reads_record())
            || choices.any(Self::reads_record)
    }

    /// Whether it matches a value, or its absence. `name` is the field that contains the value.
    fn matches(&self, value: Option<&Json>, name: &str, part: EnvelopePart) -> bool {
        match (self, value) {
            (Self::Leaf(rules), value) => {
                let mut values = Vec::new();
                flatten(value, &mut values);
                rules.iter().any(|rule| rule.matches(&values, name))
            }
            // One element of a list must match completely.
            (Self::Object(_), Some(Json::Array(list))) if !list.is_empty() => {
                let mut list = list.iter();
                list.any(|value| self.matches(Some(value), name, part))
            }
            (Self::Object(fields), value) => fields.match_all(value, part),
        }
    }
}

impl Fields {
    fn match_all(&self, value: Option<&Json>, part: EnvelopePart) -> bool {
        let holds = |(name, node): &(String, Node)| {
            (part == EnvelopePart::Head && name == RECORD)
                || node.matches(value.and_then(|value| value.get(name)), name, part)
        };
        let is_chosen = |choice: &Vec<Node>| {
            let mut choice = choice.iter();
            choice.any(|node| node.matches(value, "", part))
        };
        self.fields.iter().all(holds) && self.choices.iter().all(is_chosen)
    }
}

/// Collects the scalar values of a field: lists by their elements; objects have no scalar value.
fn flatten<'j>(value: Option<&'j Json>, values: &mut Vec<&'j Json>) {
    match value {
        Some(Json::Array(list)) => list.iter().for_each(|value| flatten(Some(value), values)),
        Some(Json::Object(_)) | None => {}
        Some(value) => values.push(value),
    }
}

#[cfg(test)]
mod tests;
