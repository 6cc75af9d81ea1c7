//! The fields of a row: values that record whether they were read or written.
//!
//! [`Deref`], comparison and arithmetic mark a field as read; `DerefMut`, `+=` and [`set`](Field::set) mark it as
//! written. [`tx`](crate::tx) describes how a commit uses the marks.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{
    Add, AddAssign, Deref, DerefMut, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign,
};
use std::sync::atomic::{AtomicBool, Ordering as Memory};

use floe_store::{Item, Number, Value};

use crate::attribute::Invalid;
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
    /// Returns the attribute's value; `None` to omit the attribute.
    pub encode: fn(&T) -> Result<Option<Value>, Invalid>,
    /// Reads the value from an attribute or its absence.
    pub decode: fn(Option<&Value>) -> Result<T, Invalid>,
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
    /// Incremented by this amount.
    Incremented(Number),
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
    pub(crate) change: Change,
}

impl<T> Field<T> {
    /// A field with a value that was read or given at creation.
    #[doc(hidden)]
    pub const fn new(rules: &'static Rules<T>, value: T) -> Self {
        Self {
            value,
            rules,
            read: AtomicBool::new(false),
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
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a constraint forbids the value or the field is read-only.
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

/// Types that the store can increment.
pub trait Increment: Copy {
    /// The number to add.
    fn amount(self) -> Number;
    /// The sum, if it is within the type.
    fn plus(self, amount: Self) -> Option<Self>;
}

macro_rules! increment {
    ($($integer:ty)*) => {$(
        impl Increment for $integer {
            fn amount(self) -> Number {
                Number::from(self)
            }
            fn plus(self, amount: Self) -> Option<Self> {
                self.checked_add(amount)
            }
        }
    )*};
}

increment!(i8 i16 i32 i64 u8 u16 u32 u64);

impl Increment for Number {
    fn amount(self) -> Number {
        self
    }
    fn plus(self, amount: Self) -> Option<Self> {
        self.checked_add(amount).ok()
    }
}

impl<T: Increment> Field<T> {
    /// Adds to the value that is stored at commit time. The field is not locked, even if it was read before, so that
    /// concurrent increments never conflict.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the sum with the value that was read is out of range, or a
    /// constraint forbids it.
    pub fn increment_by(&mut self, amount: T) -> Result<()> {
        let rules = self.rules;
        let out_of_range = || rules.invalid(&Invalid::new("the sum is out of range"));
        let sum = self.value.plus(amount).ok_or_else(out_of_range)?;
        let change = match &self.change {
            Change::None => Change::Incremented(amount.amount()),
            Change::Incremented(before) => {
                let total = before.checked_add(amount.amount());
                Change::Incremented(total.map_err(|_| out_of_range())?)
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

impl<T: fmt::Debug> fmt::Debug for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
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
