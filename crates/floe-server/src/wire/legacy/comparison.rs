//! `ComparisonOperator` and its values.

use floe_store::expr::{Condition, Path};
use floe_store::op::invalid;
use floe_store::{Error, Result, Value, ValueType};

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Eq,
    Ne,
    Le,
    Lt,
    Ge,
    Gt,
    NotNull,
    Null,
    Contains,
    NotContains,
    BeginsWith,
    In,
    Between,
}

impl Operator {
    /// The operators with their names, in the order of DynamoDB's messages.
    const ALL: [(&'static str, Self); 13] = [
        ("IN", Self::In),
        ("NULL", Self::Null),
        ("BETWEEN", Self::Between),
        ("LT", Self::Lt),
        ("NOT_CONTAINS", Self::NotContains),
        ("EQ", Self::Eq),
        ("GT", Self::Gt),
        ("NOT_NULL", Self::NotNull),
        ("NE", Self::Ne),
        ("LE", Self::Le),
        ("BEGINS_WITH", Self::BeginsWith),
        ("GE", Self::Ge),
        ("CONTAINS", Self::Contains),
    ];

    /// Returns the names of the operators.
    pub(crate) fn names() -> [&'static str; 13] {
        Self::ALL.map(|(name, _)| name)
    }

    /// Parses the name of an operator.
    pub(crate) fn parse(name: &str) -> Result<Self> {
        let operator = Self::ALL.iter().find(|(known, _)| *known == name);
        operator
            .map(|(_, operator)| *operator)
            .ok_or_else(|| invalid("Invalid comparison operator"))
    }

    /// Returns the name of the operator.
    pub(crate) fn as_str(self) -> &'static str {
        let named = Self::ALL.iter().find(|(_, operator)| *operator == self);
        named.map_or("", |(name, _)| name)
    }

    /// Whether the operator takes this number of values.
    const fn takes(self, count: usize) -> bool {
        match self {
            Self::Null | Self::NotNull => count == 0,
            Self::In => count > 0,
            Self::Between => count == 2,
            _ => count == 1,
        }
    }

    /// Whether the operator can compare values of this type.
    const fn suits(self, value_type: ValueType) -> bool {
        match self {
            Self::Lt | Self::Le | Self::Gt | Self::Ge | Self::In | Self::Between => {
                matches!(value_type, ValueType::S | ValueType::N | ValueType::B)
            }
            Self::BeginsWith => matches!(value_type, ValueType::S | ValueType::B),
            Self::Contains | Self::NotContains => matches!(
                value_type,
                ValueType::S | ValueType::N | ValueType::B | ValueType::Bool | ValueType::Null
            ),
            Self::Eq | Self::Ne | Self::Null | Self::NotNull => true,
        }
    }
}

/// An operator with valid values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison {
    pub(crate) operator: Operator,
    pub(crate) values: Vec<Value>,
}

impl Comparison {
    /// Validates an operator and its values.
    pub(crate) fn new(operator: &str, values: Vec<Value>) -> Result<Self> {
        let operator = Operator::parse(operator)?;
        let comparison = Self { operator, values };
        comparison.check()?;
        Ok(comparison)
    }

    /// Validates the comparison of an expected attribute, where the values may be missing.
    pub(super) fn expected(operator: &str, values: Option<Vec<Value>>, name: &str) -> Result<Self> {
        if values.is_none() && !Operator::parse(operator)?.takes(0) {
            return Err(invalid(format_args!(
                "Value or AttributeValueList must be used with ComparisonOperator: {operator} for Attribute: {name}"
            )));
        }
        Self::new(operator, values.unwrap_or_default())
    }

    fn check(&self) -> Result<()> {
        let operator = self.operator.as_str();
        if !self.operator.takes(self.values.len()) {
            return Err(invalid(format_args!(
                "Invalid number of argument(s) for the {operator} ComparisonOperator"
            )));
        }
        let mut types = self.values.iter().map(Value::value_type);
        if let Some(unsupported) = types.find(|value_type| !self.operator.suits(*value_type)) {
            return Err(invalid(format_args!(
                "ComparisonOperator {operator} is not valid for {unsupported} AttributeValue type"
            )));
        }
        self.check_bounds()
    }

    /// Checks that all values have the same type and that bounds are in order.
    fn check_bounds(&self) -> Result<()> {
        let (Some(first), Some(last)) = (self.values.first(), self.values.last()) else {
            return Ok(());
        };
        let is_of_another = |value: &Value| value.value_type() != first.value_type();
        if self.values.iter().any(is_of_another) {
            return Err(invalid(
                "AttributeValues inside AttributeValueList must be of same type",
            ));
        }
        if self.operator == Operator::Between
            && first.compare(last).is_some_and(|order| order.is_gt())
        {
            return Err(Error::validation(
                "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
            ));
        }
        Ok(())
    }

    /// Converts the comparison to a condition on an attribute.
    pub(crate) fn on(self, name: &str) -> Condition {
        let path = || Path::attribute(name);
        let mut values = self.values.into_iter();
        // The number of values was validated.
        let mut value = || values.next().unwrap_or(Value::Null);
        match self.operator {
            Operator::Eq => Condition::eq(path(), value()),
            Operator::Ne => Condition::ne(path(), value()),
            Operator::Le => Condition::le(path(), value()),
            Operator::Lt => Condition::lt(path(), value()),
            Operator::Ge => Condition::ge(path(), value()),
            Operator::Gt => Condition::gt(path(), value()),
            Operator::NotNull => Condition::attribute_exists(path()),
            Operator::Null => Condition::attribute_not_exists(path()),
            Operator::Contains => Condition::contains(path(), value()),
            // Unlike `<>`, it is false for a missing attribute.
            Operator::NotContains => {
                Condition::attribute_exists(path()).and(Condition::contains(path(), value()).not())
            }
            Operator::BeginsWith => Condition::begins_with(path(), value()),
            Operator::Between => Condition::between(path(), value(), value()),
            Operator::In => Condition::is_in(path(), values),
        }
    }
}
