//! Key conditions: which items of one partition key a query reads.

use super::check::{check_bound_values, check_names, check_nesting};
use super::condition::Comparator;
use super::fault::{ExpressionKind, Fault};
use crate::error::{Error, Result, ensure, ensure_none};
use crate::key_length::{empty_value, key_bytes, partition_too_long, sort_too_long};
use crate::limits::{PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX};
use crate::table::{KeyAttribute, KeySchema};
use crate::text::Name;
use crate::value::Value;

/// The condition on one key attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyOp {
    /// `= value`
    Eq(Value),
    /// `< value`
    Lt(Value),
    /// `<= value`
    Le(Value),
    /// `> value`
    Gt(Value),
    /// `>= value`
    Ge(Value),
    /// `BETWEEN low AND high`
    Between(Value, Value),
    /// `begins_with(attribute, prefix)`
    BeginsWith(Value),
}

impl KeyOp {
    /// Returns the operands.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        let (first, second) = match self {
            Self::Between(low, high) => (low, Some(high)),
            Self::Eq(value)
            | Self::Lt(value)
            | Self::Le(value)
            | Self::Gt(value)
            | Self::Ge(value)
            | Self::BeginsWith(value) => (value, None),
        };
        std::iter::once(first).chain(second)
    }

    /// Returns the comparison operator, unless it is `BETWEEN` or `begins_with`.
    pub(crate) const fn comparator(&self) -> Option<Comparator> {
        Some(match self {
            Self::Eq(_) => Comparator::Eq,
            Self::Lt(_) => Comparator::Lt,
            Self::Le(_) => Comparator::Le,
            Self::Gt(_) => Comparator::Gt,
            Self::Ge(_) => Comparator::Ge,
            Self::Between(..) | Self::BeginsWith(_) => return None,
        })
    }

    /// Rejects values that do not match the operator, independently of the attribute.
    fn check(&self) -> Result<(), Fault> {
        let operator = match self {
            Self::Eq(_) => return Ok(()),
            Self::Between(..) => "BETWEEN",
            _ => self.comparator().map_or("begins_with", Comparator::as_str),
        };
        let suits = |value: &&Value| match value {
            Value::S(_) | Value::B(_) => true,
            Value::N(_) => !matches!(self, Self::BeginsWith(_)),
            _ => false,
        };
        ensure_none(self.values().find(|value| !suits(value)), |unfit| {
            Fault::operand_type(operator, unfit.value_type())
        })?;
        match self {
            Self::Between(low, high) => check_bound_values(low, high),
            _ => Ok(()),
        }
    }
}

/// A conjunction of conditions on key attributes.
///
/// ```
/// use floe_store::expr::{KeyCondition, KeyOp};
///
/// let condition = KeyCondition::partition("customer", "c-1").and("placed", KeyOp::Ge(20.into()));
/// assert_eq!(condition.terms.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KeyCondition {
    /// The conditions, in text order.
    pub terms: Vec<(Name, KeyOp)>,
}

impl KeyCondition {
    /// Selects all items of this partition key.
    pub fn partition(name: impl Into<Name>, value: impl Into<Value>) -> Self {
        Self {
            terms: vec![(name.into(), KeyOp::Eq(value.into()))],
        }
    }

    /// Adds a condition on another key attribute.
    #[must_use]
    pub fn and(mut self, name: impl Into<Name>, op: KeyOp) -> Self {
        self.terms.push((name.into(), op));
        self
    }

    /// Checks everything that does not depend on the key schema.
    ///
    /// # Errors
    ///
    /// Returns DynamoDB's error if an attribute has two conditions, a value does not match its operator, or a value is
    /// invalid.
    pub fn check(&self) -> Result<()> {
        let literals = || self.terms.iter().flat_map(|(_, op)| op.values());
        check_names(literals())?;
        self.check_terms()
            .map_err(|fault| ExpressionKind::KeyCondition.error(&fault))?;
        check_nesting(literals())
    }

    fn check_terms(&self) -> Result<(), Fault> {
        for (name, op) in &self.terms {
            ensure(!name.is_empty(), || Fault::EmptyName)?;
            op.check()?;
        }
        let earlier = |n: usize| self.terms.iter().take(n).map(|(name, _)| name);
        let mut names = self.terms.iter().map(|(name, _)| name).enumerate();
        let repeated = names.any(|(n, name)| earlier(n).any(|other| other == name));
        ensure(!repeated, || Fault::KeyConditionTwice)
    }

    /// Matches the condition with a key schema: equality on all partition attributes and on leading sort attributes,
    /// then at most one range on the next sort attribute.
    ///
    /// # Errors
    ///
    /// Returns DynamoDB's error if the condition does not pass the [check](KeyCondition::check) or does not match the
    /// schema, or if a value is empty, too long, or has the wrong type.
    ///
    /// ```
    /// use floe_store::expr::{KeyCondition, KeyOp};
    /// use floe_store::table::{KeyAttribute, KeyKind, KeySchema};
    ///
    /// let schema = KeySchema {
    ///     partition: vec![KeyAttribute::new("customer", KeyKind::S)],
    ///     sort: vec![KeyAttribute::new("placed", KeyKind::N)],
    /// };
    /// let condition = KeyCondition::partition("customer", "c-1").and("placed", KeyOp::Ge(20.into()));
    /// let range = condition.resolve(&schema)?;
    /// assert_eq!(range.partition, ["c-1".into()]);
    /// assert_eq!(range.range, Some(KeyOp::Ge(20.into())));
    ///
    /// let error = KeyCondition::partition("placed", 1).resolve(&schema).unwrap_err();
    /// assert_eq!(error.to_string(), "Query condition missed key schema element: customer");
    /// # Ok::<(), floe_store::Error>(())
    /// ```
    pub fn resolve(&self, schema: &KeySchema) -> Result<KeyRange> {
        self.check()?;
        let (given, defined) = (self.terms.len(), schema.attributes().count());
        ensure(given <= defined, || {
            Error::validation(format!(
                "The number of query conditions ({given}) exceeds the number of key attributes \
                 defined in the schema ({defined})"
            ))
        })?;
        let partition = self.partition_values(schema)?;
        self.check_attributes(schema)?;
        let (sort_prefix, range) = self.sort_conditions(schema)?;
        self.check_values(schema)?;
        let range = KeyRange {
            partition,
            sort_prefix,
            range,
        };
        range.check_length()?;
        Ok(range)
    }

    fn term(&self, attribute: &KeyAttribute) -> Option<&KeyOp> {
        let mut terms = self.terms.iter();
        let (_, op) = terms.find(|(name, _)| *name == attribute.name)?;
        Some(op)
    }

    /// Returns the value that an attribute must be equal to, if its condition is an equality.
    fn equal(&self, attribute: &KeyAttribute) -> Option<&Value> {
        match self.term(attribute) {
            Some(KeyOp::Eq(value)) => Some(value),
            _ => None,
        }
    }

    fn partition_values(&self, schema: &KeySchema) -> Result<Vec<Value>> {
        let unequal = self.unequal(&schema.partition);
        let Some(first) = unequal.first() else {
            let values = schema.partition.iter().filter_map(|a| self.equal(a));
            return Ok(values.cloned().collect());
        };
        let message = if schema.partition.len() > 1 || schema.sort.len() > 1 {
            format!(
                "HASH key attributes {} must have equality conditions specified in the query",
                names(&unequal)
            )
        } else if self.term(first).is_some() {
            "Query key condition not supported".to_owned()
        } else {
            missed(first)
        };
        Err(Error::validation(message))
    }

    /// Rejects conditions on attributes outside the key. There are at most as many conditions as attributes, and all
    /// partition attributes have theirs, so one sort attribute has none.
    fn check_attributes(&self, schema: &KeySchema) -> Result<()> {
        if self.terms.iter().all(|(name, _)| schema.contains(name)) {
            return Ok(());
        }
        let mut without = schema.sort.iter().filter(|a| self.term(a).is_none());
        ensure_none(without.next().or(schema.partition.first()), |attribute| {
            Error::validation(missed(attribute))
        })
    }

    /// Returns the values of the sort attributes with equality conditions, and the condition on the next one.
    fn sort_conditions(&self, schema: &KeySchema) -> Result<(Vec<Value>, Option<KeyOp>)> {
        let prefix = schema.sort.iter().map_while(|a| self.equal(a));
        let prefix: Vec<Value> = prefix.cloned().collect();
        let rest = schema.sort.get(prefix.len()..).unwrap_or_default();
        let last = rest.iter().rposition(|a| self.term(a).is_some());
        let Some((last, before)) = last.and_then(|at| rest.get(..=at)?.split_last()) else {
            return Ok((prefix, None));
        };
        let unequal = self.unequal(before);
        ensure(unequal.is_empty(), || {
            Error::validation(format!(
                "RANGE key attributes {} must have equality conditions specified in the query \
                 because a condition is present on key attribute {}",
                names(&unequal),
                last.name
            ))
        })?;
        Ok((prefix, self.term(last).cloned()))
    }

    /// Returns the attributes without an equality condition.
    fn unequal<'k>(&self, attributes: &'k [KeyAttribute]) -> Vec<&'k KeyAttribute> {
        let unequal = |attribute: &&KeyAttribute| self.equal(attribute).is_none();
        attributes.iter().filter(unequal).collect()
    }

    /// Checks that values have the types of their attributes and are not empty.
    fn check_values(&self, schema: &KeySchema) -> Result<()> {
        let values = || {
            let terms = schema.attributes().filter_map(|a| Some((a, self.term(a)?)));
            terms.flat_map(|(attribute, op)| op.values().map(move |value| (attribute, value)))
        };
        let suit = values().all(|(attribute, value)| attribute.kind.matches(value));
        ensure(suit, || {
            Error::validation(
                "One or more parameter values were invalid: \
                 Condition parameter type does not match schema type",
            )
        })?;
        for (attribute, value) in values() {
            let empty = match value {
                Value::S(text) if text.is_empty() => "string",
                Value::B(bytes) if bytes.is_empty() => "binary",
                _ => continue,
            };
            return Err(empty_value(empty, &attribute.name));
        }
        Ok(())
    }
}

fn missed(KeyAttribute { name, .. }: &KeyAttribute) -> String {
    format!("Query condition missed key schema element: {name}")
}

fn names(attributes: &[&KeyAttribute]) -> String {
    let names: Vec<&str> = attributes.iter().map(|a| a.name.as_str()).collect();
    names.join(", ")
}

/// A key condition matched with the key of a table or index: a range of keys.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRange {
    /// The values of all partition attributes, in schema order.
    pub partition: Vec<Value>,
    /// The values of the leading sort attributes with equality conditions, in schema order.
    pub sort_prefix: Vec<Value>,
    /// The condition on the sort attribute after the prefix; never [`KeyOp::Eq`].
    pub range: Option<KeyOp>,
}

impl KeyRange {
    /// Rejects values that together exceed the length limit of a key. Each bound of a range counts separately, because
    /// a key contains only one value.
    fn check_length(&self) -> Result<()> {
        let bytes = |values: &[Value]| values.iter().map(key_bytes).sum::<usize>();
        let bounds = self.range.iter().flat_map(KeyOp::values).map(key_bytes);
        let partition = bytes(&self.partition);
        ensure(partition <= PARTITION_KEY_BYTES_MAX, partition_too_long)?;
        let sort = bytes(&self.sort_prefix) + bounds.max().unwrap_or(0);
        ensure(sort <= SORT_KEY_BYTES_MAX, sort_too_long)
    }
}

#[cfg(test)]
mod tests;
