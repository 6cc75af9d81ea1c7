//! The fields of a row: values that record whether they were read or written.
//!
//! [`Deref`], comparison, arithmetic and printing mark a field as read; `DerefMut`, `+=` and [`set`](Field::set) mark it as
//! written. [`tx`](crate::tx) describes how a commit uses the marks.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{
    Add, AddAssign, Deref, DerefMut, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign,
};
use std::sync::atomic::{AtomicBool, Ordering as Memory};

use floe_store::limits::NUMBER_DIGITS_MAX;
use floe_store::{Item, Number, NumberError, Value};

use crate::attribute::{Attribute, Invalid};
use crate::error::{Error, Result};

/// The compile-time description of a field: its name, codec and constraints.
#[derive(Debug)]
pub struct Rules<T> {
    /// The model, for errors.
    pub model: &'static str,
    /// The field's name.
    pub field: &'static str,
    /// The attribute under which it is stored.
    pub attribute: &'static str,
    /// Whether it cannot be changed once the item is created.
    pub read_only: bool,
    /// Maximum length of the attribute in the key of an index; `None` if it is in none.
    pub index_bytes_max: Option<usize>,
    /// Checks the constraints.
    pub check: fn(&T) -> Result<(), Invalid>,
    /// The bounds by the constraints.
    pub bounds: fn() -> Bounds,
    /// Returns the attribute's value; `None` to omit the attribute.
    pub encode: fn(&T) -> Result<Option<Value>, Invalid>,
    /// Reads the value from an attribute or its absence.
    pub decode: fn(Option<&Value>) -> Result<T, Invalid>,
}

/// What the constraints of a field say about numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// The smallest number allowed.
    pub min: Option<Number>,
    /// The largest number allowed.
    pub max: Option<Number>,
    /// Whether the field has constraints that are not bounds.
    pub has_others: bool,
}

impl<T> Rules<T> {
    /// Checks the constraints of a value, and encodes it.
    pub(crate) fn validate(&self, value: &T) -> Result<Option<Value>> {
        let checked = (self.check)(value).and_then(|()| {
            let value = (self.encode)(value)?;
            self.check_index(value.as_ref())?;
            Ok(value)
        });
        checked.map_err(|invalid| self.invalid(&invalid))
    }

    /// Checks the limits of index keys: the store rejects items that it cannot index.
    fn check_index(&self, value: Option<&Value>) -> Result<(), Invalid> {
        let Some(bytes_max) = self.index_bytes_max else {
            return Ok(());
        };
        let bytes = match value {
            Some(Value::S(text)) => text.len(),
            Some(Value::B(bytes)) => bytes.len(),
            _ => return Ok(()),
        };
        let what = "a field in the key of an index";
        match bytes {
            0 => Err(Invalid::new(format!("{what} cannot be empty"))),
            bytes if bytes > bytes_max => Err(Invalid::new(format!(
                "{what} is too long: bytes={bytes} max={bytes_max}"
            ))),
            _ => Ok(()),
        }
    }

    pub(crate) fn invalid(&self, invalid: &Invalid) -> Error {
        Error::invalid(self.model, self.field, invalid)
    }

    fn read_only_error(&self) -> Error {
        read_only_error(self.model, self.field)
    }

    /// Validates a value and adds it to an item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the value is not allowed.
    #[doc(hidden)]
    pub fn store(&self, value: &T, item: &mut Item) -> Result<()> {
        if let Some(value) = self.validate(value)? {
            item.insert(self.attribute, value);
        }
        Ok(())
    }

    /// Reads the value from a stored item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the attribute has another form.
    #[doc(hidden)]
    pub fn load(&self, item: &Item) -> Result<T> {
        (self.decode)(item.get(self.attribute)).map_err(|invalid| self.invalid(&invalid))
    }
}

/// The error of a change of a read-only field.
pub(crate) fn read_only_error(model: &str, field: &str) -> Error {
    let reason = "the field is read-only: it is set when the item is created and never changes";
    Error::invalid(model, field, &Invalid::new(reason))
}

/// How a field was changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Change {
    /// Not changed.
    #[default]
    None,
    /// Set to a value that may depend on what was read.
    Written,
    /// Set to a value that does not depend on what was read.
    Overwritten,
    /// Incremented by the store.
    Incremented(Addition),
}

/// An addition that the store makes to the value that it has when the commit is applied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Addition {
    /// The number to add.
    pub(crate) amount: Number,
    /// The value that an absent attribute stands for.
    pub(crate) base: Number,
    /// The smallest number that the field can hold.
    pub(crate) min: Option<Number>,
    /// The largest number that the field can hold.
    pub(crate) max: Option<Number>,
}

/// What must hold for the stored number, so that the field can hold the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    /// It is at most this.
    AtMost(Number),
    /// It is at least this.
    AtLeast(Number),
}

impl Addition {
    /// Both additions, one after the other; `None` if the store cannot add the sum of their amounts.
    pub(crate) fn then(self, amount: Number) -> Option<Self> {
        let amount = self.amount.checked_add(amount).ok()?;
        Some(Self { amount, ..self })
    }

    /// The limit of the stored number, if there is one.
    ///
    /// # Errors
    ///
    /// If no number can express it.
    pub(crate) fn limit(&self) -> Result<Option<Limit>, NumberError> {
        let rest = |bound: Number| remainder(bound, self.amount);
        if self.amount.is_negative() {
            Ok(self.min.map(rest).transpose()?.map(Limit::AtLeast))
        } else {
            Ok(self.max.map(rest).transpose()?.map(Limit::AtMost))
        }
    }
}

/// The bound without the amount. If that has more digits than a number can have, the nearest power of ten above the amount
/// is subtracted instead, or one unit of the bound's last possible digit: the result is stricter, never wider.
fn remainder(bound: Number, amount: Number) -> Result<Number, NumberError> {
    if let Ok(exact) = bound.checked_sub(amount) {
        return Ok(exact);
    }
    let digits = i32::try_from(NUMBER_DIGITS_MAX).unwrap_or(i32::MAX);
    let power = end(amount).max(end(bound) - digits + 1);
    let sign = if amount.is_negative() { "-" } else { "" };
    bound.checked_sub(format!("{sign}1E{power}").parse()?)
}

/// The smallest power of ten above the magnitude of a number.
fn end(number: Number) -> i32 {
    let (_, coefficient, exponent) = number.to_parts();
    let digits = coefficient.checked_ilog10().map_or(0, |log| log + 1);
    exponent + i32::try_from(digits).unwrap_or(i32::MAX)
}

/// A field of a row.
///
/// ```
/// use floe::{Error, Model, Tx};
///
/// #[derive(Model)]
/// struct Player {
///     #[model(key)]
///     id: String,
///     level: i64,
/// }
///
/// /// Locks the level: it is read, and its new value is derived from the old one.
/// async fn level_up(tx: &Tx, id: &str) -> Result<(), Error> {
///     if let Some(mut player) = tx.get::<Player>(id).await? {
///         if player.level > 10 {
///             player.level += 1;
///         }
///     }
///     Ok(())
/// }
/// ```
pub struct Field<T: 'static> {
    value: T,
    pub(crate) rules: &'static Rules<T>,
    read: AtomicBool,
    /// Whether it cannot be changed.
    is_fixed: bool,
    pub(crate) change: Change,
}

impl<T> Field<T> {
    /// A field with a value that was read or, in a new item, given at creation.
    #[doc(hidden)]
    pub const fn new(rules: &'static Rules<T>, value: T, is_new: bool) -> Self {
        Self {
            value,
            rules,
            read: AtomicBool::new(false),
            is_fixed: rules.read_only && !is_new,
            change: Change::None,
        }
    }

    /// Returns the value without marking the field as read, so that the commit does not depend on it.
    pub const fn peek(&self) -> &T {
        &self.value
    }

    /// Replaces the value. If the new one is not allowed, the old one is kept.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a constraint forbids the value, or the field is read-only and
    /// the item is not new.
    pub fn set(&mut self, value: T) -> Result<()> {
        self.replace(value, Change::Written)
    }

    /// Replaces the value regardless of what is stored at commit time: the field is not locked.
    ///
    /// # Errors
    ///
    /// As for [`set`](Self::set).
    pub fn overwrite(&mut self, value: T) -> Result<()> {
        let change = match self.change {
            Change::Written => Change::Written,
            _ => Change::Overwritten,
        };
        self.replace(value, change)
    }

    /// Validates the current value.
    ///
    /// # Errors
    ///
    /// As for [`set`](Self::set).
    pub fn validate(&self) -> Result<()> {
        self.rules.validate(&self.value).map(drop)
    }

    fn replace(&mut self, value: T, change: Change) -> Result<()> {
        if self.is_fixed {
            return Err(self.rules.read_only_error());
        }
        self.rules.validate(&value)?;
        self.value = value;
        self.change = change;
        Ok(())
    }

    fn mark_read(&self) {
        self.read.store(true, Memory::Relaxed);
    }

    pub(crate) fn is_read(&self) -> bool {
        self.read.load(Memory::Relaxed)
    }
}

/// Types that the store can increment: numbers, and optional numbers, of which an absent one counts as zero.
pub trait Increment: Sized {
    /// The type of an amount: for an optional number, the number.
    type Amount;

    /// The number to add; `None` if it has no stored form, such as a NaN.
    fn number(amount: &Self::Amount) -> Option<Number>;

    /// The sum, as the store computes it, if it is within the type.
    fn plus(&self, amount: &Self::Amount) -> Option<Self>;

    /// The value as the store has it; `None` if it has no stored form.
    fn base(&self) -> Option<Number>;

    /// The smallest and the largest number of the type, where it has fewer numbers than the store.
    fn range() -> (Option<Number>, Option<Number>);
}

macro_rules! increment_integers {
    ($($integer:ty)*) => {$(
        impl Increment for $integer {
            type Amount = Self;

            fn number(amount: &Self) -> Option<Number> {
                Some(Number::from(*amount))
            }
            fn plus(&self, amount: &Self) -> Option<Self> {
                self.checked_add(*amount)
            }
            fn base(&self) -> Option<Number> {
                Some(Number::from(*self))
            }
            fn range() -> (Option<Number>, Option<Number>) {
                (Some(Number::from(Self::MIN)), Some(Number::from(Self::MAX)))
            }
        }
    )*};
}

increment_integers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// The stored form of a number.
fn stored<T: Attribute>(value: &T) -> Option<Number> {
    match value.to_value() {
        Ok(Some(Value::N(number))) => Some(number),
        _ => None,
    }
}

/// The sum of two stored forms. The store adds decimals, of which the sum of two floats may differ in its last digit.
fn stored_sum<T: Attribute>(value: &T, amount: &T) -> Option<T> {
    let sum = stored(value)?.checked_add(stored(amount)?).ok()?;
    T::from_value(Some(&Value::N(sum))).ok()
}

macro_rules! increment_stored {
    ($($number:ty: $range:expr;)*) => {$(
        impl Increment for $number {
            type Amount = Self;

            fn number(amount: &Self) -> Option<Number> {
                stored(amount)
            }
            fn plus(&self, amount: &Self) -> Option<Self> {
                stored_sum(self, amount)
            }
            fn base(&self) -> Option<Number> {
                stored(self)
            }
            fn range() -> (Option<Number>, Option<Number>) {
                $range
            }
        }
    )*};
}

increment_stored! {
    Number: (None, None);
    // Every stored number is within an `f64`.
    f64: (None, None);
    f32: (stored(&Self::MIN), stored(&Self::MAX));
}

impl<T: Increment<Amount = T> + Default> Increment for Option<T> {
    type Amount = T;

    fn number(amount: &T) -> Option<Number> {
        T::number(amount)
    }
    fn plus(&self, amount: &T) -> Option<Self> {
        match self {
            Some(value) => value.plus(amount).map(Some),
            None => T::default().plus(amount).map(Some),
        }
    }
    fn base(&self) -> Option<Number> {
        self.as_ref().map_or(Some(Number::from(0)), T::base)
    }
    fn range() -> (Option<Number>, Option<Number>) {
        T::range()
    }
}

impl<T: Increment> Field<T> {
    /// Adds to the value that is stored at commit time. The field is not locked, even if it was read before, so that
    /// concurrent increments do not conflict. The commit requires that the sum is within the type and within the
    /// constraints `min` and `max`; if it is not, because of other writers, the body runs again, and the call returns
    /// an error. An absent optional number counts as zero.
    ///
    /// A field with other constraints, such as `custom`, is locked, because only this process can check them.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the sum with the value that was read is out of range, a
    /// constraint forbids it, or the field is read-only and the item is not new.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an amount is a small number, mostly a literal"
    )]
    pub fn increment_by(&mut self, amount: T::Amount) -> Result<()> {
        let rules = self.rules;
        let out_of_range = || {
            let reason = "the sum is out of range, or has more than 38 digits";
            rules.invalid(&Invalid::new(reason))
        };
        let number = T::number(&amount).ok_or_else(out_of_range)?;
        let sum = self.value.plus(&amount).ok_or_else(out_of_range)?;
        let bounds = (rules.bounds)();
        let change = match &self.change {
            Change::None if bounds.has_others => Change::Written,
            Change::None => {
                let (min, max) = T::range();
                Change::Incremented(Addition {
                    amount: number,
                    base: self.value.base().ok_or_else(out_of_range)?,
                    min: min.max(bounds.min),
                    max: max.into_iter().chain(bounds.max).min(),
                })
            }
            Change::Incremented(before) => {
                Change::Incremented(before.then(number).ok_or_else(out_of_range)?)
            }
            written => written.clone(),
        };
        self.replace(sum, change)
    }
}

impl<T> Deref for Field<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.mark_read();
        &self.value
    }
}

impl<T> DerefMut for Field<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.mark_read();
        self.change = Change::Written;
        &mut self.value
    }
}

impl<T: PartialOrd<U>, U> PartialOrd<U> for Field<T> {
    fn partial_cmp(&self, other: &U) -> Option<Ordering> {
        (**self).partial_cmp(other)
    }
}

macro_rules! delegate_to_value {
    ($($field:ident)*) => {$(
        impl<T: PartialEq<U>, U> PartialEq<U> for $field<T> {
            fn eq(&self, other: &U) -> bool {
                **self == *other
            }
        }

        impl<T: fmt::Display> fmt::Display for $field<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    )*};
}

delegate_to_value!(Field KeyField);

/// Marks the field as read: a decision may depend on the text. Print [`peek`](Field::peek) to avoid that.
impl<T: fmt::Debug> fmt::Debug for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

macro_rules! arithmetic {
    ($($operator:ident $method:ident $(, $assign:ident $assign_method:ident)?;)*) => {$(
        impl<T: Copy + $operator<U>, U> $operator<U> for &Field<T> {
            type Output = T::Output;
            fn $method(self, other: U) -> T::Output {
                (**self).$method(other)
            }
        }

        $(impl<T: $assign<U>, U> $assign<U> for Field<T> {
            fn $assign_method(&mut self, other: U) {
                (**self).$assign_method(other);
            }
        })?
    )*};
}

arithmetic! {
    Add add, AddAssign add_assign;
    Sub sub, SubAssign sub_assign;
    Mul mul, MulAssign mul_assign;
    Div div, DivAssign div_assign;
    Rem rem;
}

impl<T: Copy + Neg> Neg for &Field<T> {
    type Output = T::Output;
    fn neg(self) -> T::Output {
        (**self).neg()
    }
}

/// A key component of a row. Keys never change, so there is nothing to track.
pub struct KeyField<T>(T);

impl<T> KeyField<T> {
    /// A component with its value.
    #[doc(hidden)]
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// A compile-time error that says what to do instead.
    #[doc(hidden)]
    pub fn set(&mut self, value: T) -> Result<()>
    where
        T: ChangesKey,
    {
        value.never()
    }
}

/// Never implemented: a change of a key is a compile-time error.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a key never changes",
    label = "is a component of the key",
    note = "to change another item, get that one, or give its key as the first argument",
    note = "to move an item, create it under the new key and delete it under the old one"
)]
pub trait ChangesKey {
    /// Cannot be called.
    fn never<T>(self) -> T;
}

impl<T> Deref for KeyField<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for KeyField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
