//! Applies updates to items.
//!
//! Everything is computed from the item before the update: operands, the types of `ADD` and `DELETE`, and list indexes.
//! To ensure this regardless of the order of the clauses, operands are computed first, then paths are checked, both on
//! the old item. The writes then go to a copy, and no write affects another.

use std::borrow::Cow;

use super::path::{Path, Segment, follow};
use super::projection::project;
use super::update::{SetOperand, SetValue, Update};
use crate::error::{Error, Result, ensure};
use crate::item::Item;
use crate::number::{Number, NumberError};
use crate::text::Name;
use crate::value::Value;

mod packed;
#[cfg(test)]
mod tests;

impl Update {
    /// Returns the item after the update.
    ///
    /// `SET` and `ADD` beyond the end of a list append to it. `REMOVE` refers to indexes of the old list. A set from
    /// which `DELETE` removes the last element is removed itself.
    ///
    /// # Errors
    ///
    /// Returns DynamoDB's error if the update does not match the item: an operand is missing or has the wrong type, a path
    /// leads through a missing value, or a number goes out of range.
    ///
    /// ```
    /// use floe_store::{Item, Value, expr::{Path, Update}};
    ///
    /// let list = |numbers: &[i32]| -> Vec<Value> { numbers.iter().map(|&n| n.into()).collect() };
    /// let sizes = || Path::attribute("sizes");
    /// let update = Update::new().remove(sizes().index(0)).set(sizes().index(2), 30);
    /// let item = Item::new().with("sizes", list(&[1, 2, 3]));
    /// assert_eq!(update.apply(&item)?, Item::new().with("sizes", list(&[2, 30])));
    /// # Ok::<(), floe_store::Error>(())
    /// ```
    pub fn apply(&self, item: &Item) -> Result<Item> {
        if let Some(after) = self.apply_to_packed(item)? {
            return Ok(after);
        }
        let mut writes = self.writes(item)?;
        self.paths().try_for_each(|path| check_parent(path, item))?;

        // In path order, every index beyond the end of a list appends: never more elements have been appended before it
        // than there are indexes between the end and itself.
        writes.sort_unstable_by_key(|(path, _)| *path);
        let mut after = self.kept(item);
        let mut removals: Vec<&Path> = Vec::new();
        for (path, write) in writes {
            if write.apply(PathTarget::find(path, &mut after)?)? == Effect::Emptied {
                removals.push(path);
            }
        }
        // An index that the old list did not have may now belong to an appended element.
        let removed = self.remove.iter();
        removals.extend(removed.filter(|path| path.resolve(item).is_some()));
        // Back to front, so that no removal shifts the index of another.
        removals.sort_unstable();
        for path in removals.into_iter().rev() {
            PathTarget::find(path, &mut after)?.remove();
        }
        Ok(after)
    }

    /// Returns the parts of an item at the paths that the update changes, for `UPDATED_OLD` and `UPDATED_NEW`. As in a
    /// projection, list indexes refer to the given item.
    pub fn touched(&self, item: &Item) -> Item {
        project(self.paths(), item)
    }

    /// Copies the item without attributes that are replaced as a whole, which may be large.
    fn kept(&self, item: &Item) -> Item {
        let is_set = |name: &Name| {
            let mut paths = self.set.iter().map(|(path, _)| path);
            paths.any(|path| path.rest().is_empty() && path.root() == name)
        };
        let mut kept = Vec::with_capacity(item.len() + self.set.len());
        let attributes = item.iter().filter(|(name, _)| !is_set(name));
        kept.extend(attributes.map(|(name, value)| (name.clone(), value.clone())));
        Item::from(kept)
    }

    /// Returns the writes, with all operands computed and checked.
    fn writes(&self, item: &Item) -> Result<Vec<(&Path, Write<'_>)>> {
        self.check_operands(item)?;
        let mut writes: Vec<_> = self.operand_writes().collect();
        for (path, value) in &self.set {
            writes.push((path, Write::Set(value.compute(item)?)));
        }
        Ok(writes)
    }

    /// Returns the writes of ADD and DELETE.
    fn operand_writes(&self) -> impl Iterator<Item = (&Path, Write<'_>)> {
        let (add, delete) = (self.add.iter(), self.delete.iter());
        let added = add.map(|(path, value)| (path, Write::Add(value)));
        added.chain(delete.map(|(path, set)| (path, Write::Delete(set))))
    }

    /// Rejects operands of ADD and DELETE that do not match the item.
    fn check_operands(&self, item: &Item) -> Result<()> {
        let mut writes = self.operand_writes();
        let fit = writes.all(|(path, write)| write.fits(path.resolve(item)));
        ensure(fit, wrong_type)
    }
}

/// A write to a path.
enum Write<'u> {
    Set(Value),
    Add(&'u Value),
    Delete(&'u Value),
}

/// The effect of a write on its target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Written,
    /// A set lost its last element. It is removed later, because the indexes after it are still in use.
    Emptied,
}

impl Write<'_> {
    /// Whether the write matches the old value.
    fn fits(&self, old: Option<&Value>) -> bool {
        let operand = match self {
            Self::Set(_) => return true,
            Self::Add(operand) | Self::Delete(operand) => operand,
        };
        let suits = matches!(operand, Value::Ss(_) | Value::Ns(_) | Value::Bs(_))
            || matches!((self, operand), (Self::Add(_), Value::N(_)));
        suits && old.is_none_or(|old| old.value_type() == operand.value_type())
    }

    fn apply(self, mut target: PathTarget<'_>) -> Result<Effect> {
        match self {
            Self::Set(value) => target.put(value),
            Self::Add(operand) => match target.get_mut() {
                None => target.put(operand.clone()),
                Some(value) => {
                    let old = std::mem::replace(value, Value::Null);
                    *value = sum(old, operand)?;
                }
            },
            Self::Delete(operand) => {
                if let Some(value) = target.get_mut() {
                    let old = std::mem::replace(value, Value::Null);
                    match difference(old, operand)? {
                        Some(left) => *value = left,
                        None => return Ok(Effect::Emptied),
                    }
                }
            }
        }
        Ok(Effect::Written)
    }
}

/// Returns the result of `ADD`.
fn sum(old: Value, operand: &Value) -> Result<Value> {
    Ok(match (old, operand) {
        (Value::N(old), Value::N(n)) => Value::N(checked(old.checked_add(*n))?),
        (Value::Ss(old), Value::Ss(set)) => Value::Ss(old.union(set.clone())),
        (Value::Ns(old), Value::Ns(set)) => Value::Ns(old.union(set.clone())),
        (Value::Bs(old), Value::Bs(set)) => Value::Bs(old.union(set.clone())),
        _ => return Err(wrong_type()),
    })
}

/// Returns what `DELETE` leaves, if anything.
fn difference(old: Value, operand: &Value) -> Result<Option<Value>> {
    Ok(match (old, operand) {
        (Value::Ss(old), Value::Ss(set)) => old.difference(set).map(Value::Ss),
        (Value::Ns(old), Value::Ns(set)) => old.difference(set).map(Value::Ns),
        (Value::Bs(old), Value::Bs(set)) => old.difference(set).map(Value::Bs),
        _ => return Err(wrong_type()),
    })
}

impl SetValue {
    fn compute(&self, item: &Item) -> Result<Value> {
        match self {
            Self::Operand(operand) => Ok(operand.compute(item)?.into_owned()),
            Self::Sum(left, right) => arithmetic(left, right, item, Number::checked_add),
            Self::Difference(left, right) => arithmetic(left, right, item, Number::checked_sub),
        }
    }
}

fn arithmetic(
    left: &SetOperand,
    right: &SetOperand,
    item: &Item,
    operator: fn(Number, Number) -> Result<Number, NumberError>,
) -> Result<Value> {
    match (left.compute(item)?.as_n(), right.compute(item)?.as_n()) {
        (Some(left), Some(right)) => checked(operator(left, right)).map(Value::N),
        _ => Err(wrong_type()),
    }
}

impl SetOperand {
    fn compute<'a>(&'a self, item: &'a Item) -> Result<Cow<'a, Value>> {
        match self {
            Self::Value(value) => Ok(Cow::Borrowed(value)),
Self::Path(path) => path.resolve(item).map(Cow::Borrowed).ok_or_else(|| {
    Error::validation(
        "The provided expression refers to an attribute that does not exist in the item",
    )
}),
            Self::IfNotExists(path, otherwise) => match path.resolve(item) {
                Some(value) => Ok(Cow::Borrowed(value)),
                None => otherwise.compute(item),
            },
            Self::ListAppend(first, second) => {
                match (first.compute(item)?.as_l(), second.compute(item)?.as_l()) {
                    (Some(head), Some(tail)) => Ok(Cow::Owned(Value::L([head, tail].concat()))),
                    _ => Err(wrong_type()),
                }
            }
        }
    }
}

/// Rejects a path whose parent is missing or has the wrong type. DynamoDB does not create intermediate maps or lists.
fn check_parent(path: &Path, item: &Item) -> Result<()> {
    let Some((last, before)) = path.rest().split_last() else {
        return Ok(());
    };
    let parent = item.get(path.root()).and_then(|root| follow(root, before));
    match (parent, last) {
        (Some(Value::M(_)), Segment::Name(_)) | (Some(Value::L(_)), Segment::Index(_)) => Ok(()),
        _ => Err(wrong_path()),
    }
}

/// The target of a path: in a map or in a list.
enum PathTarget<'a> {
    Field(&'a mut Item, &'a Name),
    Element(&'a mut Vec<Value>, usize),
}

impl<'a> PathTarget<'a> {
    fn find(path: &'a Path, item: &'a mut Item) -> Result<Self> {
        let Some((last, before)) = path.rest().split_last() else {
            return Ok(Self::Field(item, path.root()));
        };
        let parent = item.get_mut(path.root()).and_then(|root| {
            before
                .iter()
                .try_fold(root, |value, segment| segment.step_mut(value))
        });
        match (parent, last) {
            (Some(Value::M(map)), Segment::Name(name)) => Ok(Self::Field(map, name)),
            (Some(Value::L(list)), Segment::Index(at)) => Ok(Self::Element(list, *at)),
            _ => Err(wrong_path()),
        }
    }

    fn get_mut(&mut self) -> Option<&mut Value> {
        match self {
            Self::Field(map, name) => map.get_mut(name),
            Self::Element(list, at) => list.get_mut(*at),
        }
    }

    fn put(self, value: Value) {
        match self {
            Self::Field(map, name) => drop(map.insert(name, value)),
            Self::Element(list, at) => match list.get_mut(at) {
                Some(element) => *element = value,
                None => list.push(value),
            },
        }
    }

    fn remove(self) {
        match self {
            Self::Field(map, name) => drop(map.remove(name)),
            Self::Element(list, at) => {
                if at < list.len() {
                    list.remove(at);
                }
            }
        }
    }
}

fn checked(number: Result<Number, NumberError>) -> Result<Number> {
    number.map_err(|error| Error::validation(error.to_string()))
}

fn wrong_type() -> Error {
    Error::validation("An operand in the update expression has an incorrect data type")
}

fn wrong_path() -> Error {
    Error::validation("The document path provided in the update expression is invalid for update")
}
