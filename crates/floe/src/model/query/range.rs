//! Turns conditions on key fields into the range of keys that a query reads.
//!
//! In an index, every key field is a separate attribute, and the conditions are sent unchanged. In the table itself the
//! fields of the sort key are joined in one text, `_sk`, and a condition on one of them becomes a range of texts. The
//! separator NUL is less than every character of a part, so the texts sort like their parts. A store accepts only one
//! condition on `_sk`, so the ends of some ranges are one key too wide; [`Bounds::contains`] removes these keys.

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::limits::SORT_KEY_BYTES_MAX;
use floe_store::{Item, Value};

use super::predicate::{Comparison, Node, Term};
use crate::attribute::Invalid;
use crate::error::{Error, Result};
use crate::model::keys::{encode_id, is_ordered, sort_fields, sort_text};
use crate::model::schema::{
    FieldKind, FieldSchema, IndexSchema, PARTITION_ATTRIBUTE, SORT_ATTRIBUTE, Schema,
};

/// Separates the parts of a sort key. No part contains it.
const SEPARATOR: char = '\0';
/// Follows all texts that begin with a part and its separator.
const AFTER: &str = "\u{1}";

/// The keys that a query reads.
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub(super) condition: KeyCondition,
    /// The exact range, if the condition is wider.
    pub(super) bounds: Option<Bounds>,
}

/// The range of one part of a sort key.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// The text before the part.
    prefix: String,
    /// The comparison with the text of the part.
    comparison: KeyOp,
}

impl Bounds {
    /// Whether the range contains the key of an item.
    pub(super) fn contains(&self, item: &Item) -> bool {
        let text = item.get(SORT_ATTRIBUTE).and_then(Value::as_s);
        let rest = text.and_then(|text| text.strip_prefix(self.prefix.as_str()));
        let Some(part) = rest.and_then(|rest| rest.split(SEPARATOR).next()) else {
            return false;
        };
        match &self.comparison {
            KeyOp::Eq(value) => part == text_of(value),
            KeyOp::Lt(end) => part < text_of(end),
            KeyOp::Le(end) => part <= text_of(end),
            KeyOp::Gt(end) => part > text_of(end),
            KeyOp::Ge(end) => part >= text_of(end),
            KeyOp::Between(low, high) => text_of(low) <= part && part <= text_of(high),
            KeyOp::BeginsWith(start) => part.starts_with(text_of(start)),
        }
    }
}

/// Returns the range of a predicate: comparisons of key fields, joined by `and`.
///
/// # Errors
///
/// [`InvalidUse`](crate::ErrorKind::InvalidUse) if the key does not support the condition. The message names its fields.
pub(super) fn range(
    schema: &'static Schema,
    index: Option<&'static IndexSchema>,
    key: Node,
) -> Result<Range> {
    let mut terms = Terms {
        schema,
        index,
        terms: Vec::new(),
    };
    terms.add(key)?;
    let range = match index {
        Some(index) => terms.index_range(index)?,
        None => terms.table_range()?,
    };
    match terms.terms.first() {
        Some(term) => {
            Err(terms.invalid_term(term, "the condition is not on a leading field of the key"))
        }
        None => Ok(range),
    }
}

/// The terms of a predicate that are not part of the range yet.
struct Terms {
    schema: &'static Schema,
    index: Option<&'static IndexSchema>,
    terms: Vec<Term>,
}

impl Terms {
    fn add(&mut self, node: Node) -> Result<()> {
        match node {
            Node::Invalid(error) => Err(error),
            Node::And(one, other) => {
                self.add(*one)?;
                self.add(*other)
            }
            Node::Term(term) if self.terms.iter().any(|other| other.field == term.field) => {
                let what = "a key field has two conditions; use `between`";
                Err(self.invalid_term(&term, what))
            }
            Node::Term(term) => {
                self.terms.push(*term);
                Ok(())
            }
            Node::Or(..) | Node::Not(_) => Err(Error::invalid_use(format!(
                "a key condition is a list of comparisons joined by `and`; move the rest to `filter`: \
                 model={}",
                self.schema.model
            ))),
        }
    }

    fn take(&mut self, field: &str) -> Option<Term> {
        let at = self.terms.iter().position(|term| term.field == field)?;
        Some(self.terms.remove(at))
    }

    /// Removes the equality on a field, and returns its value.
    fn take_equal(&mut self, field: &str) -> Result<Option<Value>> {
        let is_equal =
            |term: &Term| term.field == field && matches!(term.comparison, Comparison::Eq(Some(_)));
        let Some(at) = self.terms.iter().position(is_equal) else {
            return Ok(None);
        };
        let term = self.terms.remove(at);
        term.allowed?;
        match term.comparison {
            Comparison::Eq(value) => Ok(value),
            _ => Ok(None),
        }
    }

    fn required(&mut self, field: &'static str) -> Result<Value> {
        let value = self.take_equal(field)?;
        value.ok_or_else(|| self.missing(field))
    }

    fn index_range(&mut self, index: &'static IndexSchema) -> Result<Range> {
        let schema = self.schema;
        let attribute = |name: &str| schema.field(name).map_or("", |field| field.attribute);
        let mut terms = Vec::new();
        for name in index.key {
            let value = self.required(name)?;
            terms.push((attribute(name).into(), KeyOp::Eq(value)));
        }
        for name in index.sort {
            if let Some(value) = self.take_equal(name)? {
                terms.push((attribute(name).into(), KeyOp::Eq(value)));
                continue;
            }
            if let Some(term) = self.take(name) {
                let op = self.key_op(&term)?.clone();
                terms.push((attribute(name).into(), op));
            }
            break;
        }
        Ok(Range {
            condition: KeyCondition { terms },
            bounds: None,
        })
    }

    fn table_range(&mut self) -> Result<Range> {
        let schema = self.schema;
        let mut values = Vec::new();
        for field in schema.partition() {
            values.push((field.name, self.required(field.name)?));
        }
        let id = encode_id(schema, |field| {
            let found = values.iter().find(|(name, _)| *name == field.name);
            let value = found.map(|(_, value)| value.clone());
            value.ok_or_else(|| self.missing(field.name))
        })?;
        let condition = KeyCondition::partition(PARTITION_ATTRIBUTE, id);
        let (op, bounds) = self.sort_range()?;
        let condition = match op {
            Some(op) => condition.and(SORT_ATTRIBUTE, op),
            None => condition,
        };
        Ok(Range { condition, bounds })
    }

    /// The condition on `_sk`.
    fn sort_range(&mut self) -> Result<(Option<KeyOp>, Option<Bounds>)> {
        let schema = self.schema;
        let fields = sort_fields(schema);
        let mut prefix: String = schema.sort_constant.into_iter().collect();
        let mut has_parts = schema.sort_constant.is_some();
        for (at, field) in fields.iter().enumerate() {
            if has_parts {
                prefix.push(SEPARATOR);
            }
            if let Some(value) = self.take_equal(field.name)? {
                prefix += &self.text(field, &value)?;
                has_parts = true;
                continue;
            }
            let Some(term) = self.take(field.name) else {
                let all = (!prefix.is_empty()).then(|| KeyOp::BeginsWith(Value::from(prefix)));
                return Ok((all, None));
            };
            let is_last = at + 1 == fields.len();
            let bounds = Bounds {
                comparison: self.text_comparison(field, &term)?,
                prefix,
            };
            let op = bounds.key_op(is_last);
            self.check_length(&term, &op)?;
            return Ok((Some(op).filter(|op| !is_everything(op)), Some(bounds)));
        }
        let op = has_parts.then(|| KeyOp::Eq(Value::from(prefix)));
        Ok((op, None))
    }

    fn text(&self, field: &FieldSchema, value: &Value) -> Result<String> {
        let text = sort_text(self.schema, field, value);
        text.map_err(|invalid| Error::invalid(self.schema.model, field.name, &invalid))
    }

    fn text_comparison(&self, field: &FieldSchema, term: &Term) -> Result<KeyOp> {
        let is_ordered = match field.kind {
            FieldKind::Text => true,
            FieldKind::Number => is_ordered(self.schema),
            FieldKind::Bytes | FieldKind::Other => false,
        };
        if !is_ordered {
            let what = "the stored text of this field does not sort like its values";
            return Err(self.invalid_term(term, what));
        }
        map_values(self.key_op(term)?, |value| {
            Ok(Value::from(self.text(field, value)?))
        })
    }

    fn key_op<'t>(&self, term: &'t Term) -> Result<&'t KeyOp> {
        match &term.comparison {
            Comparison::Range(op) => Ok(op),
            Comparison::Eq(_)
            | Comparison::Ne(_)
            | Comparison::OneOf(_)
            | Comparison::Contains(_) => {
                let what = "a key condition supports only equality, order and prefix; move this condition to `filter`";
                Err(self.invalid_term(term, what))
            }
        }
    }

    /// Checks the length of the ends of a range, which are keys with at most one more character.
    fn check_length(&self, term: &Term, op: &KeyOp) -> Result<()> {
        let bytes = op.values().map(|end| text_of(end).len()).max().unwrap_or(0);
        if bytes <= SORT_KEY_BYTES_MAX {
            return Ok(());
        }
        let what = format!("the key is too long: bytes={bytes} max={SORT_KEY_BYTES_MAX}");
        Err(Error::invalid(
            self.schema.model,
            term.field,
            &Invalid::new(what),
        ))
    }

    fn missing(&self, field: &str) -> Error {
        let (source, fields) = self.keys();
        Error::invalid_use(format!(
            "a query needs `eq` on every field of the partition key: model={} {source} \
             missing={field}{fields}",
            self.schema.model
        ))
    }

    fn invalid_term(&self, term: &Term, what: &str) -> Error {
        let (source, fields) = self.keys();
        Error::invalid_use(format!(
            "{what}: model={} {source} field={}{fields}",
            term.model, term.field
        ))
    }

    /// The table or index for errors; and its key fields with the indexes of the model.
    fn keys(&self) -> (String, String) {
        let schema = self.schema;

        let (source, key, sort) = match self.index {
            Some(index) => (
                format!("index={}", index.name),
                index.key.to_vec(),
                index.sort.to_vec(),
            ),
            None => (
                format!("table={}", schema.table),
                names(schema.partition()),
                names(sort_fields(schema)),
            ),
        };
        let indexes: Vec<&str> = schema.indexes.iter().map(|index| index.name).collect();
        let mut fields = format!(" key={}", key.join(","));
        for (name, names) in [("sort_key", sort), ("indexes", indexes)] {
            if !names.is_empty() {
                fields += &format!(" {name}={}", names.join(","));
            }
        }
        (source, fields)
    }
}

impl Bounds {
    /// The single condition on `_sk` that covers the range. A part that is not the last one is followed by more text, so
    /// no key is equal to the end of such a range.
    fn key_op(&self, is_last: bool) -> KeyOp {
        let at = |text: &Value| Value::from(format!("{}{}", self.prefix, text_of(text)));
        let after = |text: &Value| {
            let end = if is_last { "" } else { AFTER };
            Value::from(format!("{}{}{end}", self.prefix, text_of(text)))
        };
        let op = match &self.comparison {
            KeyOp::Eq(value) => KeyOp::Eq(at(value)),
            KeyOp::Lt(end) => KeyOp::Lt(at(end)),
            KeyOp::Le(end) => KeyOp::Le(after(end)),
            KeyOp::Gt(end) => KeyOp::Gt(after(end)),
            KeyOp::Ge(end) => KeyOp::Ge(at(end)),
            KeyOp::Between(low, high) => KeyOp::Between(at(low), after(high)),
            KeyOp::BeginsWith(start) => KeyOp::BeginsWith(at(start)),
        };
        let Some(before) = self.prefix.strip_suffix(SEPARATOR) else {
            return op;
        };
        match op {
            KeyOp::Lt(high) | KeyOp::Le(high) => {
                KeyOp::Between(Value::from(self.prefix.as_str()), high)
            }
            KeyOp::Gt(low) | KeyOp::Ge(low) => {
                KeyOp::Between(low, Value::from(format!("{before}{AFTER}")))
            }
            op => op,
        }
    }
}

fn names(fields: impl IntoIterator<Item = &'static FieldSchema>) -> Vec<&'static str> {
    fields.into_iter().map(|field| field.name).collect()
}

/// The text of a key attribute.
fn text_of(value: &Value) -> &str {
    value.as_s().unwrap_or_default()
}

/// The same condition on other values.
fn map_values(op: &KeyOp, to: impl Fn(&Value) -> Result<Value>) -> Result<KeyOp> {
    Ok(match op {
        KeyOp::Eq(value) => KeyOp::Eq(to(value)?),
        KeyOp::Lt(value) => KeyOp::Lt(to(value)?),
        KeyOp::Le(value) => KeyOp::Le(to(value)?),
        KeyOp::Gt(value) => KeyOp::Gt(to(value)?),
        KeyOp::Ge(value) => KeyOp::Ge(to(value)?),
        KeyOp::Between(low, high) => KeyOp::Between(to(low)?, to(high)?),
        KeyOp::BeginsWith(prefix) => KeyOp::BeginsWith(to(prefix)?),
    })
}

/// Whether the condition holds for every key. A store rejects empty text in a key condition.
fn is_everything(op: &KeyOp) -> bool {
    let is_from = matches!(op, KeyOp::Gt(_) | KeyOp::Ge(_) | KeyOp::BeginsWith(_));
    is_from && op.values().all(|value| value.as_s() == Some(""))
}
