//! The fields of a model as they stand in conditions: what can be asked of each, by its type.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

use floe_store::Value;
use floe_store::expr::KeyOp;

use super::predicate::{Ask, Predicate, Term};
use crate::attribute::{Attribute, Element, FieldKind, Invalid};
use crate::error::{Error, Result};
use crate::model::field::Rules;

/// A field of a model in a condition. The derive makes one for each field and hands them to the closures of
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

/// What a column can be compared with: its own type, `&str` for text, and what is inside of an `Option`.
#[diagnostic::on_unimplemented(message = "a field of type `{T}` cannot be compared with `{Self}`")]
pub trait Operand<T> {
    /// The value of the column's type.
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

    /// The field is equal to this; a field that may be absent and `None`: it is.
    pub fn eq(&self, value: impl Operand<T>) -> Predicate<M> {
        let value = value.into_operand();
        let allowed = self.rules.validate(&value).map(drop);
        let ask = self.encode(&value).map(Ask::Eq);
        self.ask_allowed(ask, allowed)
    }

    /// The field is not equal to this, or is absent; for `None`: it is there.
    pub fn ne(&self, value: impl Operand<T>) -> Predicate<M> {
        self.ask(self.encode(&value.into_operand()).map(Ask::Ne))
    }

    /// The field is equal to one of these.
    pub fn one_of<O: Operand<T>>(&self, values: impl IntoIterator<Item = O>) -> Predicate<M> {
        let values = values.into_iter().map(|value| self.present(value));
        let ask = match values.collect::<Result<Vec<_>>>() {
            Ok(values) if values.is_empty() => {
                Err(self.invalid("there is no value to compare with"))
            }
            values => values.map(Ask::OneOf),
        };
        self.ask(ask)
    }

    /// The attribute is there.
    pub fn exists(&self) -> Predicate<M> {
        self.ask(Ok(Ask::Ne(None)))
    }

    /// The attribute is absent.
    pub fn not_exists(&self) -> Predicate<M> {
        self.ask(Ok(Ask::Eq(None)))
    }

    fn ask(&self, ask: Result<Ask>) -> Predicate<M> {
        self.ask_allowed(ask, Ok(()))
    }

    fn ask_allowed(&self, ask: Result<Ask>, allowed: Result<()>) -> Predicate<M> {
        Predicate::term(ask.map(|ask| Term {
            model: self.rules.model,
            field: self.rules.field,
            attribute: self.rules.attribute,
            ask,
            allowed,
        }))
    }

    fn encode(&self, value: &T) -> Result<Option<Value>> {
        (self.rules.encode)(value).map_err(|invalid| self.rules.invalid(&invalid))
    }

    fn invalid(&self, reason: impl Into<String>) -> Error {
        self.rules.invalid(&Invalid::new(reason))
    }

    /// A value to compare with, which cannot be absent.
    fn present(&self, value: impl Operand<T>) -> Result<Value> {
        let value = self.encode(&value.into_operand())?;
        value.ok_or_else(|| self.invalid("the value to compare with is absent"))
    }
}

impl<M, T: Attribute> Column<M, T> {
    /// The field is less than this.
    pub fn lt(&self, value: impl Operand<T>) -> Predicate<M> {
        self.range(self.present(value).map(KeyOp::Lt))
    }

    /// The field is at most this.
    pub fn le(&self, value: impl Operand<T>) -> Predicate<M> {
        self.range(self.present(value).map(KeyOp::Le))
    }

    /// The field is greater than this.
    pub fn gt(&self, value: impl Operand<T>) -> Predicate<M> {
        self.range(self.present(value).map(KeyOp::Gt))
    }

    /// The field is at least this.
    pub fn ge(&self, value: impl Operand<T>) -> Predicate<M> {
        self.range(self.present(value).map(KeyOp::Ge))
    }

    /// The field is at least the first and at most the second.
    pub fn between(&self, low: impl Operand<T>, high: impl Operand<T>) -> Predicate<M> {
        let bounds = self.present(low).and_then(|low| {
            let high = self.present(high)?;
            match low.compare(&high) {
                Some(std::cmp::Ordering::Greater) | None => {
                    Err(self.invalid(format!("the bounds are crossed: low={low:?} high={high:?}")))
                }
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
        self.ask(op.map(Ask::Range))
    }
}

macro_rules! text_columns {
    ($($type:ty)*) => {$(
        impl<M> Column<M, $type> {
            /// The text begins with this.
            pub fn starts_with(&self, prefix: &str) -> Predicate<M> {
                let op = KeyOp::BeginsWith(Value::from(prefix));
                self.ask(Ok(Ask::Range(op)))
            }

            /// The text has this in it.
            pub fn contains(&self, part: &str) -> Predicate<M> {
                self.ask(Ok(Ask::Contains(Value::from(part))))
            }
        }
    )*};
}

text_columns!(String Option<String>);

macro_rules! collection_columns {
    ($($type:ty where T: $bound:path $(, $other:path)?;)*) => {$(
        impl<M, T: $bound $(+ $other)?> Column<M, $type> {
            /// One of the elements is this.
            pub fn contains(&self, element: impl Operand<T>) -> Predicate<M> {
                let value = element.into_operand().to_value();
                let value = value.map_err(|invalid| self.rules.invalid(&invalid));
                self.ask(value.map(|value| Ask::Contains(value.unwrap_or(Value::Null))))
            }
        }
    )*};
}

collection_columns! {
    Vec<T> where T: Attribute;
    BTreeSet<T> where T: Element;
    HashSet<T> where T: Element, Hash;
}
