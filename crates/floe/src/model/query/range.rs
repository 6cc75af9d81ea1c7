//! From conditions on key fields to the range of keys that a query reads.
//!
//! In an index, every field of the key is an attribute of its own and the store takes the conditions as they
//! are. In the table itself the fields of the sort key are joined in one text, `_sk`, and a condition on one
//! of them becomes a range of texts: NUL, which stands between the parts, is less than every character
//! of a part, so the order of the texts is the order of their parts. A store takes one condition on `_sk`, so
//! the ends of some ranges are one key too wide; what is there is left out by [`Bounds::has`].

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::limits::SORT_KEY_BYTES_MAX;
use floe_store::{Item, Value};

use super::predicate::{Ask, Node, Term};
use crate::error::{Error, ErrorKind, Result};
use crate::model::keys::{encode_id, sort_fields, sort_text};
use crate::model::schema::{
    FieldKind, FieldSchema, IndexSchema, PARTITION_ATTRIBUTE, SORT_ATTRIBUTE, Schema,
    SortKeyEncoding,
};

/// Ends every part of a sort key but the last. No part contains it.
const SEPARATOR: char = '\0';
/// The first text behind all that begin with a part and its separator.
const BEHIND: char = '\u{1}';

/// The keys that a query reads.
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub(super) condition: KeyCondition,
    /// Where the condition is wider than what was asked for.
    pub(super) bounds: Option<Bounds>,
}

/// The range of one part of a sort key.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// What stands before the part.
    lead: String,
    ask: TextAsk,
}

/// What is asked of a part, by its text.
#[derive(Clone, Debug)]
enum TextAsk {
    Lt(String),
    Le(String),
    Gt(String),
    Ge(String),
    Between(String, String),
    Prefix(String),
}

impl Bounds {
    /// Whether the key of an item is within the range.
    pub(super) fn has(&self, item: &Item) -> bool {
        let text = item.get(SORT_ATTRIBUTE).and_then(Value::as_s);
        let rest = text.and_then(|text| text.strip_prefix(self.lead.as_str()));
        let Some(part) = rest.and_then(|rest| rest.split(SEPARATOR).next()) else {
            return false;
        };
        match &self.ask {
            TextAsk::Lt(end) => part < end.as_str(),
            TextAsk::Le(end) => part <= end.as_str(),
            TextAsk::Gt(end) => part > end.as_str(),
            TextAsk::Ge(end) => part >= end.as_str(),
            TextAsk::Between(low, high) => low.as_str() <= part && part <= high.as_str(),
            TextAsk::Prefix(prefix) => part.starts_with(prefix.as_str()),
        }
    }
}

/// The range of a predicate: comparisons of key fields, joined by `and`.
///
/// # Errors
///
/// [`InvalidUse`](ErrorKind::InvalidUse) when it asks what the key cannot answer, with what it can.
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
        Some(index) => terms.of_index(index)?,
        None => terms.of_table()?,
    };
    match terms.terms.first() {
        Some(term) => Err(terms.misfit(term, "the key has no place for this condition")),
        None => Ok(range),
    }
}

/// The terms of a predicate that are not yet in the range.
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
                Err(self.misfit(
                    &term,
                    "a field of the key has two conditions; take `between`",
                ))
            }
            Node::Term(term) => {
                self.terms.push(*term);
                Ok(())
            }
            Node::Or(..) | Node::Not(_) => Err(Error::new(
                ErrorKind::InvalidUse,
                format!(
                    "a key is found by comparisons joined by `and`; put the rest into `filter`: \
                     model={}",
                    self.schema.model
                ),
            )),
        }
    }

    fn take(&mut self, field: &str) -> Option<Term> {
        let at = self.terms.iter().position(|term| term.field == field)?;
        Some(self.terms.remove(at))
    }

    /// The value that a field is asked to be equal to, if it is.
    fn take_equal(&mut self, field: &str) -> Result<Option<Value>> {
        let is_equal = |term: &Term| term.field == field && matches!(term.ask, Ask::Eq(Some(_)));
        if !self.terms.iter().any(is_equal) {
            return Ok(None);
        }
        let Some(term) = self.take(field) else {
            return Ok(None);
        };
        term.allowed?;
        match term.ask {
            Ask::Eq(value) => Ok(value),
            _ => Ok(None),
        }
    }

    fn required(&mut self, field: &'static str) -> Result<Value> {
        let value = self.take_equal(field)?;
        value.ok_or_else(|| self.missing(field))
    }

    fn of_index(&mut self, index: &'static IndexSchema) -> Result<Range> {
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
                let op = key_op(&term).ok_or_else(|| self.unfit(&term))?;
                terms.push((attribute(name).into(), op));
            }
            break;
        }
        Ok(Range {
            condition: KeyCondition { terms },
            bounds: None,
        })
    }

    fn of_table(&mut self) -> Result<Range> {
        let schema = self.schema;
        let mut values = Vec::new();
        for field in schema.partition() {
            values.push((field.name, self.required(field.name)?));
        }
        let id = encode_id(schema, |field| {
            let value = values.iter().find(|(name, _)| *name == field.name);
            value
                .map(|(_, value)| value.clone())
                .ok_or_else(|| self.missing(field.name))
        })?;
        let condition = KeyCondition::partition(PARTITION_ATTRIBUTE, id);
        let (op, bounds) = self.sort_range()?;
        let condition = match op {
            Some(op) => condition.and(SORT_ATTRIBUTE, op),
            None => condition,
        };
        Ok(Range { condition, bounds })
    }

    /// What is asked of `_sk`.
    fn sort_range(&mut self) -> Result<(Option<KeyOp>, Option<Bounds>)> {
        let schema = self.schema;
        let fields = sort_fields(schema);
        let mut lead: String = schema.sort_constant.into_iter().collect();
        let mut has_parts = schema.sort_constant.is_some();
        for (at, field) in fields.iter().enumerate() {
            let end = if has_parts {
                SEPARATOR.to_string()
            } else {
                String::new()
            };
            if let Some(value) = self.take_equal(field.name)? {
                lead = lead + &end + &self.text(field, &value)?;
                has_parts = true;
                continue;
            }
            let lead = lead + &end;
            let Some(term) = self.take(field.name) else {
                let all = (!lead.is_empty()).then(|| KeyOp::BeginsWith(Value::from(lead)));
                return Ok((all, None));
            };
            let is_last = at + 1 == fields.len();
            let bounds = Bounds {
                ask: self.text_ask(field, &term)?,
                lead,
            };
            let op = bounds.key_op(is_last);
            self.check_length(&term, &op)?;
            return Ok((Some(op).filter(|op| !is_everything(op)), Some(bounds)));
        }
        let op = has_parts.then(|| KeyOp::Eq(Value::from(lead)));
        Ok((op, None))
    }

    fn text(&self, field: &FieldSchema, value: &Value) -> Result<String> {
        let text = sort_text(self.schema, field, value);
        text.map_err(|invalid| Error::invalid(self.schema.model, field.name, &invalid))
    }

    fn text_ask(&self, field: &FieldSchema, term: &Term) -> Result<TextAsk> {
        let is_ordered = match field.kind {
            FieldKind::Text => true,
            FieldKind::Number => self.schema.sort_key_encoding == SortKeyEncoding::Ordered,
            FieldKind::Bytes | FieldKind::Other => false,
        };
        if !is_ordered {
            let what = "the stored text of this field has another order than its values";
            return Err(self.misfit(term, what));
        }
        let text = |value: &Value| self.text(field, value);
        Ok(match &term.ask {
            Ask::Lt(end) => TextAsk::Lt(text(end)?),
            Ask::Le(end) => TextAsk::Le(text(end)?),
            Ask::Gt(end) => TextAsk::Gt(text(end)?),
            Ask::Ge(end) => TextAsk::Ge(text(end)?),
            Ask::Between(low, high) => TextAsk::Between(text(low)?, text(high)?),
            Ask::Prefix(prefix) => TextAsk::Prefix(text(prefix)?),
            Ask::Eq(_) | Ask::Ne(_) | Ask::OneOf(_) | Ask::Contains(_) => {
                return Err(self.unfit(term));
            }
        })
    }

    /// The ends of a range are keys themselves, with a character more at most.
    fn check_length(&self, term: &Term, op: &KeyOp) -> Result<()> {
        let lengths = op.values().filter_map(Value::as_s).map(str::len);
        match lengths.max() {
            Some(bytes) if bytes > SORT_KEY_BYTES_MAX => {
                let what = format!("the key is too long: bytes={bytes} max={SORT_KEY_BYTES_MAX}");
                let invalid = crate::attribute::Invalid::new(what);
                Err(Error::invalid(self.schema.model, term.field, &invalid))
            }
            _ => Ok(()),
        }
    }

    fn unfit(&self, term: &Term) -> Error {
        self.misfit(
            term,
            "a key is found by equality, order and prefix; put this into `filter`",
        )
    }

    fn missing(&self, field: &str) -> Error {
        let Keys { place, fields } = self.keys();
        Error::new(
            ErrorKind::InvalidUse,
            format!(
                "a query needs `eq` on every field of the partition key: model={} {place} \
                 missing={field}{fields}",
                self.schema.model
            ),
        )
    }

    fn misfit(&self, term: &Term, what: &str) -> Error {
        let Keys { place, fields } = self.keys();
        Error::new(
            ErrorKind::InvalidUse,
            format!(
                "{what}: model={} {place} field={}{fields}",
                term.model, term.field
            ),
        )
    }

    /// The key that is asked, for errors; and the indexes that have others.
    fn keys(&self) -> Keys {
        let names = |fields: Vec<&str>| fields.join(",");
        let (place, key, sort) = match self.index {
            Some(index) => (
                format!("index={}", index.name),
                names(index.key.to_vec()),
                names(index.sort.to_vec()),
            ),
            None => (
                format!("table={}", self.schema.table),
                names(self.schema.partition().map(|field| field.name).collect()),
                names(
                    sort_fields(self.schema)
                        .iter()
                        .map(|field| field.name)
                        .collect(),
                ),
            ),
        };
        let sort = if sort.is_empty() {
            sort
        } else {
            format!(" sort_key={sort}")
        };
        let others: Vec<&str> = self.schema.indexes.iter().map(|index| index.name).collect();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!(" indexes={}", names(others)),
        };
        Keys {
            place,
            fields: format!(" key={key}{sort}{others}"),
        }
    }
}

struct Keys {
    place: String,
    fields: String,
}

impl Bounds {
    /// The one condition on `_sk` that has the range in it. A key goes on behind a part that is not the last
    /// one, so no key is equal to the end of such a range.
    fn key_op(&self, is_last: bool) -> KeyOp {
        let at = |text: &str| format!("{}{text}", self.lead);
        let behind = |text: &str| match is_last {
            true => at(text),
            false => format!("{}{BEHIND}", at(text)),
        };
        let op = |op: fn(Value) -> KeyOp, text: String| op(Value::from(text));
        let between = |low: String, high: String| KeyOp::Between(low.into(), high.into());
        let Some(before) = self.lead.strip_suffix(SEPARATOR) else {
            return match &self.ask {
                TextAsk::Lt(end) => op(KeyOp::Lt, at(end)),
                TextAsk::Le(end) => op(KeyOp::Le, behind(end)),
                TextAsk::Gt(end) => op(KeyOp::Gt, behind(end)),
                TextAsk::Ge(end) => op(KeyOp::Ge, at(end)),
                TextAsk::Between(low, high) => between(at(low), behind(high)),
                TextAsk::Prefix(prefix) => op(KeyOp::BeginsWith, at(prefix)),
            };
        };
        let (begin, end) = (self.lead.clone(), format!("{before}{BEHIND}"));
        match &self.ask {
            TextAsk::Lt(high) => between(begin, at(high)),
            TextAsk::Le(high) => between(begin, behind(high)),
            TextAsk::Gt(low) => between(behind(low), end),
            TextAsk::Ge(low) => between(at(low), end),
            TextAsk::Between(low, high) => between(at(low), behind(high)),
            TextAsk::Prefix(prefix) => op(KeyOp::BeginsWith, at(prefix)),
        }
    }
}

/// Whether the condition holds of every key. A store takes no empty text as a key, not even to compare with.
fn is_everything(op: &KeyOp) -> bool {
    let is_from = matches!(op, KeyOp::Gt(_) | KeyOp::Ge(_) | KeyOp::BeginsWith(_));
    is_from && op.values().all(|value| value.as_s() == Some(""))
}

fn key_op(term: &Term) -> Option<KeyOp> {
    Some(match term.ask.clone() {
        Ask::Lt(value) => KeyOp::Lt(value),
        Ask::Le(value) => KeyOp::Le(value),
        Ask::Gt(value) => KeyOp::Gt(value),
        Ask::Ge(value) => KeyOp::Ge(value),
        Ask::Between(low, high) => KeyOp::Between(low, high),
        Ask::Prefix(value) => KeyOp::BeginsWith(value),
        Ask::Eq(_) | Ask::Ne(_) | Ask::OneOf(_) | Ask::Contains(_) => return None,
    })
}
