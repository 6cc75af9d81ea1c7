//! Columns: the fields of a model in conditions, with the comparisons that their types allow.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

use floe_store::Value;
use floe_store::expr::KeyOp;

use super::predicate::{Comparison, Predicate, Term};
use crate::attribute::{Attribute, Element, FieldKind, Invalid};
use crate::error::{Error, Result};
use crate::model::field::Rules;

/// A field of a model in a condition. The derive creates one for each field and passes them to the closures of
/// [`query`](crate::Tx::query) and `filter`.
///
/// ```
/// use floe::{Error, Model, Tx};
///
/// #[derive(Model)]
/// struct RaceResult {
///     #[model(key)]
///     race_id: i64,
///     #[model(sort_key)]
///     runner: String,
///     seconds: u32,
/// }
///
/// async fn fast_ones(tx: &Tx) -> Result<Vec<RaceResultRow<'_>>, Error> {
///     tx.query::<RaceResult>(|r| r.race_id.eq(7).and(r.runner.starts_with("B")))
///         .filter(|r| r.seconds.lt(3600))
///         .all()
///         .await
/// }
/// ```
pub struct Column<M, T: 'static> {
    rules: &'static Rules<T>,
    model: PhantomData<fn() -> M>,
}

impl<M, T> fmt::Debug for Column<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.rules.model, self.rules.field)
    }
}

/// A value that a column can be compared with: of its own type, `&str` for text, or the content of an `Option`.
#[diagnostic::on_unimplemented(message = "a field of type `{T}` cannot be compared with `{Self}`")]
pub trait Operand<T> {
    /// Converts it to the column's type.
    fn into_operand(self) -> T;
}

impl<T> Operand<T> for T {
    fn into_operand(self) -> T {
        self
    }
}

impl<T> Operand<Option<T>> for T {
    fn into_operand(self) -> Option<T> {
        Some(self)
    }
}

impl Operand<String> for &str {
    fn into_operand(self) -> String {
        self.to_owned()
    }
}

impl Operand<Option<String>> for &str {
    fn into_operand(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl Operand<String> for &String {
    fn into_operand(self) -> String {
        self.clone()
    }
}

impl<M, T> Column<M, T> {
    /// The column of a field.
    #[doc(hidden)]
    pub const fn new(rules: &'static Rules<T>) -> Self {
        let model = PhantomData;
        Self { rules, model }
    }

    /// The field is equal to this value; for `None`: the field is absent.
    pub fn eq(&self, value: impl Operand<T>) -> Predicate<M> {
        let value = value.into_operand();
        let allowed = self.rules.validate(&value).map(drop);
        let comparison = self.encode(&value).map(Comparison::Eq);
        self.checked_term(comparison, allowed)
    }

    /// The field is not equal to this value, or absent; for `None`: the field exists.
    pub fn ne(&self, value: impl Operand<T>) -> Predicate<M> {
        self.term(self.encode(&value.into_operand()).map(Comparison::Ne))
    }

    /// The field is equal to one of these values.
    pub fn one_of<O: Operand<T>>(&self, values: impl IntoIterator<Item = O>) -> Predicate<M> {
        let values = values.into_iter().map(|value| self.present(value));
        let comparison = match values.collect::<Result<Vec<_>>>() {
            Ok(values) if values.is_empty() => {
                Err(self.invalid("there is no value to compare with"))
            }
            values => values.map(Comparison::OneOf),
        };
        self.term(comparison)
    }

    /// The attribute exists.
    pub fn exists(&self) -> Predicate<M> {
        self.term(Ok(Comparison::Ne(None)))
    }

    /// The attribute is absent.
    pub fn not_exists(&self) -> Predicate<M> {
        self.term(Ok(Comparison::Eq(None)))
    }

    fn term(&self, comparison: Result<Comparison>) -> Predicate<M> {
        self.checked_term(comparison, Ok(()))
    }

    fn checked_term(&self, comparison: Result<Comparison>, allowed: Result<()>) -> Predicate<M> {
        Predicate::term(comparison.map(|comparison| Term {
            model: self.rules.model,
            field: self.rules.field,
            attribute: self.rules.attribute,
            comparison,
            allowed,
        }))
    }

    fn encode(&self, value: &T) -> Result<Option<Value>> {
        (self.rules.encode)(value).map_err(|invalid| self.rules.invalid(&invalid))
    }

    fn invalid(&self, reason: impl Into<String>) -> Error {
        self.rules.invalid(&Invalid::new(reason))
    }

    /// Encodes a value to compare with, which must not be absent.
    fn present(&self, value: impl Operand<T>) -> Result<Value> {
        let value = self.encode(&value.into_operand())?;
        value.ok_or_else(|| self.invalid("the value to compare with is absent"))
    }
}

impl<M, T: Attribute> Column<M, T> {
    /// The field is less than this value.
    pub fn lt(&self, value: impl Operand<T>) -> Predicate<M> {
        self.range(self.present(value).map(KeyOp::Lt))
    }

    /// The field is at most this value.
    pub fn le(&self, value: impl Operand<T>) -> Predicate<M> {
        self.range(self.present(value).map(KeyOp::Le))
    }

    /// The field is greater than this value.
    pub fn gt(&self, value: impl Operand<T>) -> Predicate<M> {
        self.range(self.present(value).map(KeyOp::Gt))
    }

    /// The field is at least this value.
    pub fn ge(&self, value: impl Operand<T>) -> Predicate<M> {
        self.range(self.present(value).map(KeyOp::Ge))
    }

    /// The field is at least `low` and at most `high`.
    pub fn between(&self, low: impl Operand<T>, high: impl Operand<T>) -> Predicate<M> {
        let bounds = self.present(low).and_then(|low| {
            let high = self.present(high)?;
            match low.compare(&high) {
                Some(std::cmp::Ordering::Greater) | None => Err(self.invalid(format!(
                    "the bounds are reversed: low={low:?} high={high:?}"
                ))),
                Some(_) => Ok(KeyOp::Between(low, high)),
            }
        });
        self.range(bounds)
    }

    fn range(&self, op: Result<KeyOp>) -> Predicate<M> {
        const {
            assert!(
                !matches!(T::KIND, FieldKind::Other),
                "only text, numbers and bytes have an order in the store"
            );
        }
        self.term(op.map(Comparison::Range))
    }
}

macro_rules! text_columns {
    ($($type:ty)*) => {$(
        impl<M> Column<M, $type> {
            /// The text begins with this prefix.
            pub fn starts_with(&self, prefix: &str) -> Predicate<M> {
                let op = KeyOp::BeginsWith(Value::from(prefix));
                self.term(Ok(Comparison::Range(op)))
            }

            /// The text contains this part.
            pub fn contains(&self, part: &str) -> Predicate<M> {
                self.term(Ok(Comparison::Contains(Value::from(part))))
            }
        }
    )*};
}

text_columns!(String Option<String>);

macro_rules! collection_columns {
    ($($type:ty where T: $bound:path $(, $other:path)?;)*) => {$(
        impl<M, T: $bound $(+ $other)?> Column<M, $type> {
            /// The collection contains this element.
            pub fn contains(&self, element: impl Operand<T>) -> Predicate<M> {
                let value = element.into_operand().to_value();
                let value = value.map_err(|invalid| self.rules.invalid(&invalid));
                self.term(value.map(|value| Comparison::Contains(value.unwrap_or(Value::Null))))
            }
        }
    )*};
}

collection_columns! {
    Vec<T> where T: Attribute;
    BTreeSet<T> where T: Element;
    HashSet<T> where T: Element, Hash;
}
