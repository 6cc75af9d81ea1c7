//! Patterns: which changes are meant, in the language of Amazon EventBridge's rules.
//!
//! A pattern has the form of the [envelope](super::envelope) of a change. A field that it names must match one of the
//! values in its list; what it does not name may be anything.
//!
//! ```
//! use floe::changes::Pattern;
//!
//! // The rule of the layers: whatever was removed of them.
//! let pattern = Pattern::parse(r#"{
//!     "source": ["klayers"],
//!     "detail-type": ["REMOVE"],
//!     "detail": { "pk_type": ["lyr"], "sk_type": [{ "anything-but": "lyrVrsn0" }] }
//! }"#)?;
//!
//! let error = Pattern::parse(r#"{ "detail": { "pk_type": [{ "prefx": "l" }] } }"#).unwrap_err();
//! assert_eq!(error.to_string(), "no such comparison: comparison=prefx at=detail.pk_type[0]");
//! # Ok::<(), floe::Error>(())
//! ```
//!
//! | in a list | matches |
//! |---|---|
//! | `"text"`, `7`, `true`, `null`, `""` | that value |
//! | `{"prefix": "a"}`, `{"suffix": "z"}` | text that begins or ends so; `{"prefix": {"equals-ignore-case": "a"}}` in any case |
//! | `{"equals-ignore-case": "a"}` | text, in whatever case |
//! | `{"wildcard": "a*z"}` | text, with anything in place of each `*` (`\*` is the sign itself) |
//! | `{"numeric": [">", 0, "<=", 5]}` | numbers: `=`, or a bound, or two |
//! | `{"anything-but": ..}` | what is there and is none of: a value, a list, a `prefix`, `suffix`, `wildcard` or `equals-ignore-case` |
//! | `{"exists": true}`, `{"exists": false}` | that a value is there, or is not |
//!
//! `"$or": [{..}, {..}]` in an object matches if one of its patterns does. A list in the envelope matches if one of its
//! elements does.
//!
//! # Where it differs from EventBridge
//!
//! - The record holds items as DynamoDB writes them, with numbers as text (`{"N": "5"}`). `numeric` and plain numbers match
//!   the text of an `N`. On the bus itself they do not: there, match `"N": ["5"]`.
//! - Numbers are equal if they are the same number: `5` matches `5.0`.
//! - A field that no envelope has is refused. `cidr` is not there.

mod parse;
mod rule;

use floe_store::op::ChangeKind;
use serde_json::Value as Json;

pub use self::rule::Rule;
use super::envelope::{Envelope, Sight};
use crate::error::Result;

/// Which changes are meant. Made once, and checked then.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    root: Node,
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// What must hold of an object.
    Object(Fields),
    /// The rules for a value, of which one must hold.
    Leaf(Vec<Rule>),
}

/// What must hold of an object: all of it.
#[derive(Clone, Debug, PartialEq, Default)]
struct Fields {
    fields: Vec<(String, Node)>,
    /// Of each, one must hold.
    choices: Vec<Vec<Node>>,
}

const SOURCE: &str = "source";
const DETAIL_TYPE: &str = "detail-type";
const DETAIL: &str = "detail";
const PK_TYPE: &str = "pk_type";
const SK_TYPE: &str = "sk_type";
const RECORD: &str = "record";

impl Pattern {
    /// Every change.
    pub fn any() -> Self {
        Self {
            root: Node::Object(Fields::default()),
        }
    }

    /// The pattern of this JSON.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) when it is none; the message tells where.
    pub fn parse(json: &str) -> Result<Self> {
        parse::pattern(json)
    }

    /// Of this source alone: the name of the table, unless the router gives it another one.
    #[must_use]
    pub fn source(self, source: impl Into<Rule>) -> Self {
        self.with(&[SOURCE], vec![source.into()])
    }

    /// Of this kind alone.
    #[must_use]
    pub fn kind(self, kind: ChangeKind) -> Self {
        self.with(&[DETAIL_TYPE], vec![kind.as_str().into()])
    }

    /// Only items whose partition key has this text before its first `#`.
    #[must_use]
    pub fn pk_type(self, pk_type: impl Into<Rule>) -> Self {
        self.with(&[DETAIL, PK_TYPE], vec![pk_type.into()])
    }

    /// Only items whose sort key has this text before its first `#`.
    #[must_use]
    pub fn sk_type(self, sk_type: impl Into<Rule>) -> Self {
        self.with(&[DETAIL, SK_TYPE], vec![sk_type.into()])
    }

    /// Only where the field of the envelope at this path, with `.` between the names, matches one of the rules.
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
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) when no envelope has such a field, or there is no rule.
    pub fn field(self, path: &str, rules: impl IntoIterator<Item = Rule>) -> Result<Self> {
        let names: Vec<&str> = path.split('.').collect();
        let rules: Vec<Rule> = rules.into_iter().collect();
        parse::check_path(&names, path)?;
        parse::check_rules(&rules, path)?;
        Ok(self.with(&names, rules))
    }

    /// And also one of these: their parts must match the same change.
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

    /// Whether the change in the envelope is meant.
    pub fn matches(&self, envelope: &Envelope) -> bool {
        // Most are told apart by what takes no look at the record, which takes longest to write.
        let is_possible = self.root.matches(Some(&envelope.head()), "", Sight::Head);
        is_possible
            && (!self.root.reads_record()
                || self
                    .root
                    .matches(Some(&envelope.to_json()), "", Sight::Whole))
    }
}

impl Node {
    fn set(&mut self, path: &[&str], rules: Vec<Rule>) {
        let (Self::Object(fields), Some((name, rest))) = (&mut *self, path.split_first()) else {
            *self = Self::Leaf(rules);
            return;
        };
        let place = fields.fields.iter().position(|(known, _)| known == name);
        let place = place.unwrap_or_else(|| {
            let node = Self::Object(Fields::default());
            fields.fields.push(((*name).to_owned(), node));
            fields.fields.len() - 1
        });
        if let Some((_, node)) = fields.fields.get_mut(place) {
            node.set(rest, rules);
        }
    }

    /// Whether it says anything of the record.
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

    /// Whether it holds of a value, or of its absence. A value stands in a field of this name.
    fn matches(&self, value: Option<&Json>, name: &str, sight: Sight) -> bool {
        match (self, value) {
            (Self::Leaf(rules), value) => {
                let mut values = Vec::new();
                flatten(value, &mut values);
                rules.iter().any(|rule| rule.matches(&values, name))
            }
            // One element of a list must match as a whole.
            (Self::Object(_), Some(Json::Array(list))) if !list.is_empty() => {
                let mut list = list.iter();
                list.any(|value| self.matches(Some(value), name, sight))
            }
            (Self::Object(fields), value) => fields.match_all(value, sight),
        }
    }
}

impl Fields {
    fn match_all(&self, value: Option<&Json>, sight: Sight) -> bool {
        let holds = |(name, node): &(String, Node)| {
            (sight == Sight::Head && name == RECORD)
                || node.matches(value.and_then(|value| value.get(name)), name, sight)
        };
        let is_chosen = |choice: &Vec<Node>| {
            let mut choice = choice.iter();
            choice.any(|node| node.matches(value, "", sight))
        };
        self.fields.iter().all(holds) && self.choices.iter().all(is_chosen)
    }
}

/// The plain values of a field: lists match by their elements, and an object is no value.
fn flatten<'j>(value: Option<&'j Json>, values: &mut Vec<&'j Json>) {
    match value {
        Some(Json::Array(list)) => list.iter().for_each(|value| flatten(Some(value), values)),
        Some(Json::Object(_)) | None => {}
        Some(value) => values.push(value),
    }
}

#[cfg(test)]
mod tests;
