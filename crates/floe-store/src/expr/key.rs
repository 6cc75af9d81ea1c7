//! Key conditions: which items under one partition key a query reads.

use crate::error::{Error, Result};
use crate::item::Name;
use crate::table::KeySchema;
use crate::value::Value;

/// What a key condition asks of one attribute.
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
    /// The conditions, in the order in which they were written.
    pub terms: Vec<(Name, KeyOp)>,
}

impl KeyCondition {
    /// All items under this partition key.
    pub fn partition(name: impl Into<Name>, value: impl Into<Value>) -> Self {
        Self {
            terms: vec![(name.into(), KeyOp::Eq(value.into()))],
        }
    }

    /// Those for which this holds as well.
    #[must_use]
    pub fn and(mut self, name: impl Into<Name>, op: KeyOp) -> Self {
        self.terms.push((name.into(), op));
        self
    }

    /// Matches the condition with a key.
    ///
    /// # Errors
    ///
    /// When the condition does not fit the key.
    pub fn resolve(&self, _schema: &KeySchema) -> Result<KeyRange> {
        Err(Error::validation("not yet"))
    }
}

/// A key condition matched with the key of a table or index: what to look up and what to walk.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRange {
    /// The values of all partition attributes, in schema order.
    pub partition: Vec<Value>,
    /// The values of the leading sort attributes that were asked to be equal, in schema order.
    pub sort_prefix: Vec<Value>,
    /// What is asked of the sort attribute after the prefix; never [`KeyOp::Eq`].
    pub range: Option<KeyOp>,
}
