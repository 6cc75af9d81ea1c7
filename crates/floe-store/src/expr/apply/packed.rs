//! What an update of whole attributes does to an item that is packed: the others are not even looked at.
//!
//! This is the way of most updates: counters, states, lists that grow. A list that is appended to is copied as it
//! stands, however long it is.

use std::borrow::Cow;

use super::{difference, sum};
use crate::error::Result;
use crate::expr::path::Path;
use crate::expr::update::{SetOperand, SetValue, Update};
use crate::item::{Change, Item};
use crate::text::Name;
use crate::value::{Value, ValueType};

impl Update {
    /// The item after the update; `None` if it is not packed, or if the update goes into attributes.
    ///
    /// # Errors
    ///
    /// As for [`apply`](Self::apply).
    pub(super) fn apply_to_packed(&self, item: &Item) -> Result<Option<Item>> {
        if item.packed_bytes().is_none() || !self.paths().all(|path| path.rest().is_empty()) {
            return Ok(None);
        }
        let mut changes = self.changes(item)?;
        changes.sort_unstable_by_key(|(name, _)| *name);
        // Names stand in an update once. What was never checked takes the other way.
        let is_ascending = changes.is_sorted_by(|(one, _), (next, _)| one < next);
        Ok(is_ascending.then(|| item.changed(&changes)).flatten())
    }

    /// What becomes of each attribute. Faults are found in the order of the other way.
    fn changes<'u>(&'u self, item: &'u Item) -> Result<Vec<(&'u Name, Change<'u>)>> {
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
            changes.push((path.root(), Change::Set(value)));
        }
        for (path, operand) in delete {
            if let Some(old) = path.resolve(item) {
                let left = difference(old.clone(), operand)?;
                let change = left.map_or(Change::Remove, |left| Change::Set(Cow::Owned(left)));
                changes.push((path.root(), change));
            }
        }
        let removed = self.remove.iter();
        changes.extend(removed.map(|path| (path.root(), Change::Remove)));
        Ok(changes)
    }
}

impl SetValue {
    /// What becomes of the attribute that is set to it.
    fn change<'u>(&'u self, path: &Path, item: &'u Item) -> Result<Change<'u>> {
        let Self::Operand(operand) = self else {
            return Ok(Change::Set(Cow::Owned(self.compute(item)?)));
        };
        if let Some(tail) = operand.appended(path, item) {
            return Ok(Change::Append(tail));
        }
        operand.compute(item).map(Change::Set)
    }
}

impl SetOperand {
    /// What comes behind the list at a path, if nothing else becomes of that.
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
            || item.peek_at(path.root()).map(|old| old.value_type()) == Some(ValueType::L);
        (head == path && is_list()).then_some(tail.as_slice())
    }
}
