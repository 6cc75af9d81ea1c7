//! Applies updates of whole attributes to packed items without decoding the other attributes.
//!
//! Most updates are of this kind: counters, states, growing lists. Appending to a list copies its bytes without
//! decoding them, however long it is.

use std::borrow::Cow;

use super::{difference, sum};
use crate::error::Result;
use crate::expr::path::Path;
use crate::expr::update::{SetOperand, SetValue, Update};
use crate::item::{AttributeChange, Item};
use crate::text::Name;
use crate::value::{Value, ValueType};

impl Update {
    /// Returns the item after the update. Returns `None` if the item is not packed, or if the update changes parts of
    /// attributes.
    ///
    /// # Errors
    ///
    /// The errors of [`apply`](Self::apply).
    pub(super) fn apply_to_packed(&self, item: &Item) -> Result<Option<Item>> {
        if item.packed_bytes().is_none() || !self.paths().all(|path| path.rest().is_empty()) {
            return Ok(None);
        }
        let mut changes = self.changes(item)?;
        changes.sort_unstable_by_key(|(name, _)| *name);
        // A checked update contains each name once. An unchecked one falls back to the general implementation.
        let is_ascending = changes.is_sorted_by(|(one, _), (next, _)| one < next);
        Ok(is_ascending.then(|| item.changed(&changes)).flatten())
    }

    /// Returns the change of each attribute. Faults are detected in the same order as in the general implementation.
    fn changes<'u>(&'u self, item: &'u Item) -> Result<Vec<(&'u Name, AttributeChange<'u>)>> {
        let (add, delete) = (self.add.iter(), self.delete.iter());
        self.check_operands(item)?;
        let mut changes = Vec::with_capacity(self.set.len() + self.remove.len() + add.len());
        for (path, value) in &self.set {
            changes.push((path.root(), value.change(path, item)?));
        }
        for (path, operand) in add {
            let value = match path.resolve(item) {
                Some(old) => Cow::Owned(sum(old.clone(), operand)?),
                None => Cow::Borrowed(operand),
            };
            changes.push((path.root(), AttributeChange::Set(value)));
        }
        for (path, operand) in delete {
            if let Some(old) = path.resolve(item) {
                let left = difference(old.clone(), operand)?;
                let change = left.map_or(AttributeChange::Remove, |left| {
                    AttributeChange::Set(Cow::Owned(left))
                });
                changes.push((path.root(), change));
            }
        }
        let removed = self.remove.iter();
        changes.extend(removed.map(|path| (path.root(), AttributeChange::Remove)));
        Ok(changes)
    }
}

impl SetValue {
    /// Returns the change of the attribute that is set to this value.
    fn change<'u>(&'u self, path: &Path, item: &'u Item) -> Result<AttributeChange<'u>> {
        let Self::Operand(operand) = self else {
            return Ok(AttributeChange::Set(Cow::Owned(self.compute(item)?)));
        };
        if let Some(tail) = operand.appended(path, item) {
            return Ok(AttributeChange::Append(tail));
        }
        operand.compute(item).map(AttributeChange::Set)
    }
}

impl SetOperand {
    /// Returns the elements that are appended to the list at a path, if that is the only change to it.
    fn appended(&self, path: &Path, item: &Item) -> Option<&[Value]> {
        let Self::ListAppend(first, second) = self else {
            return None;
        };
        let Self::Value(Value::L(tail)) = &**second else {
            return None;
        };
        let (Self::Path(head) | Self::IfNotExists(head, _)) = &**first else {
            return None;
        };
        let is_list =
            || item.value_ref(path.root()).map(|old| old.value_type()) == Some(ValueType::L);
        (head == path && is_list()).then_some(tail.as_slice())
    }
}
