//! UpdateItem: changes parts of an item.

use super::constraint::{Faults, as_constraint_error, validate_table_name};
use super::keys::RejectedFaults;
use super::values::{ItemChecker, check_values, item_too_large_to_update};
use super::write::{AppliedWrite, ReturnValues, check_token, evaluate_condition, write_operation};
use super::{keys, references};
use crate::error::{Result, ensure};
use crate::expr::{Condition, Path, Segment, SetOperand, SetValue, Update};
use crate::item::Item;
use crate::limits::ITEM_BYTES_MAX;
use crate::size::value_size;
use crate::table::TableDef;

write_operation! {
    /// Changes parts of an item, creating it if it does not exist.
    pub struct UpdateItem {
        /// The key: exactly the key attributes of the table.
        pub key: Item,
        /// The changes. An empty update only creates the item.
        pub update: Update,
        ;
        /// Whether the request itself must not exceed the maximum size of an item. DynamoDB requires this of an
        /// `UpdateExpression`, but not of the older `AttributeUpdates`. Default: true.
        pub check_request_size: bool = true,
    }

    /// Changes the item with this key.
    pub fn new;
}

impl UpdateItem {
    /// Checks the request alone, without the table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        self.validate_table_name()?;
        check_token(self.token.as_deref())?;
        self.validate_action().map_err(as_constraint_error)
    }

    /// Unlike the other operations on items, UpdateItem reports all faults of the table name.
    fn validate_table_name(&self) -> Result<()> {
        if self.table_name.is_empty() {
            return validate_table_name(&self.table_name);
        }
        Faults::check(|faults| faults.table_name_by_pattern(&self.table_name))
    }

    /// Checks the action of a transaction alone, except for the table name, which the transaction has checked.
    pub(super) fn validate_action(&self) -> Result<()> {
        check_values(&self.key)?;
        self.update.check()?;
        self.condition.as_ref().map_or(Ok(()), Condition::check)
    }

    /// Checks a valid request against its table: the key, that the update does not change the key, that values for
    /// index keys are valid, and the size of the request itself.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        keys::check_key(&table.key, &self.key)?;
        let fits = !self.check_request_size || request_bytes(&self.update) <= ITEM_BYTES_MAX;
        ensure(fits, item_too_large_to_update)?;
        self.check_references(table)
    }

    /// Like [`check`](UpdateItem::check), for an action of a transaction. DynamoDB limits the size of the resulting
    /// item, but not of the request: so observed in 30 of 33 regions in October 2026.
    pub(super) fn check_action(&self, table: &TableDef) -> Result<()> {
        keys::check_key(&table.key, &self.key)?;
        self.check_references(table)
    }

    fn check_references(&self, table: &TableDef) -> Result<()> {
        references::check_update(table, &self.update)?;
        references::check_condition(table, self.condition.as_ref())?;
        self.check_index_keys(table, RejectedFaults::All)
    }

    /// Checks the index key values that the update sets, independently of the item.
    pub(super) fn check_index_keys(
        &self,
        table: &TableDef,
        rejected: RejectedFaults,
    ) -> Result<()> {
        for (path, value) in &self.update.set {
            if let ([], SetValue::Operand(SetOperand::Value(value))) = (path.rest(), value) {
                keys::check_index_key_value(table, path.root(), value, rejected)?;
            }
        }
        Ok(())
    }

    /// Returns the size of the values in the request and of the attribute names that they belong to.
    pub(super) fn payload_bytes(&self) -> usize {
        let set = self.update.set.iter().map(|(path, value)| {
            let literal = |operand: &SetOperand| match operand {
                SetOperand::Value(value) => value_size(value),
                _ => 0,
            };
            let operands = value.operands().flat_map(SetOperand::nested);
            path.root().len() + operands.map(literal).sum::<usize>()
        });
        let others = self.update.add.iter().chain(&self.update.delete);
        let others = others.map(|(path, value)| path.root().len() + value_size(value));
        set.sum::<usize>() + others.sum::<usize>()
    }

    /// Applies the write to the current item. The request must have passed [`check`](UpdateItem::check).
    ///
    /// A missing item is created from the key and the update, unless the update only removes attributes: then nothing
    /// is created.
    ///
    /// # Errors
    ///
    /// [`ConditionalCheckFailed`](crate::Error::ConditionalCheckFailed) if the condition does not hold;
    /// [`Validation`](crate::Error::Validation) if the update does not match the item or the resulting item is invalid.
    pub fn apply(&self, table: &TableDef, old: Option<&Item>) -> Result<AppliedWrite> {
        evaluate_condition(self.condition.as_ref(), old, self.return_old_on_failure)?;
        if old.is_none() && !self.update.creates_item() {
            return Ok(AppliedWrite::default());
        }
        let before = old.unwrap_or(&self.key);
        let new = self.update.apply(before)?;
        ItemChecker::of(&new).check_updated()?;
        keys::check_changed_index_keys(table, before, &new)?;
        let returned = match self.return_values {
            ReturnValues::None => None,
            ReturnValues::AllOld => old.cloned(),
            ReturnValues::AllNew => Some(new.clone()),
            ReturnValues::UpdatedOld => old.map(|old| self.update.touched(old)),
            ReturnValues::UpdatedNew => Some(self.update.touched(&new)),
        };
        Ok(AppliedWrite {
            new: Some(new),
            returned: returned.filter(|attributes| !attributes.is_empty()),
        })
    }
}

/// Returns the size that DynamoDB assigns to the request of an update, which must not exceed the maximum size of an
/// item. DynamoDB checks this before it reads the item.
fn request_bytes(update: &Update) -> usize {
    const STATEMENT: usize = 3;
    const WRITES_A_VALUE: usize = 19;
    const CLEARS: usize = 1;
    let set = update.set.iter().map(|(_, value)| set_value_bytes(value));
    let add = update.add.iter().map(|(_, value)| value_size(value));
    let values: usize = set.chain(add).map(|bytes| WRITES_A_VALUE + bytes).sum();
    let clears = (update.remove.len() + update.delete.len()) * CLEARS;
    let targets: usize = update.paths().map(target_bytes).sum();
    STATEMENT + targets + values + clears
}

fn target_bytes(path: &Path) -> usize {
    const STEP: usize = 4;
    path_bytes(path, STEP)
}

fn path_operand_bytes(path: &Path) -> usize {
    const OPERAND: usize = 1;
    const STEP: usize = 14;
    OPERAND + STEP + path_bytes(path, STEP)
}

/// The size of the names and indexes of a path, with `step` extra bytes for each one after the first.
fn path_bytes(path: &Path, step: usize) -> usize {
    path.rest()
        .iter()
        .fold(path.root().len(), |bytes, segment| {
            let segment = match segment {
                Segment::Name(name) => name.len(),
                Segment::Index(at) => at.checked_ilog10().map_or(1, |log| log as usize + 1),
            };
            bytes + step + segment
        })
}

fn set_value_bytes(value: &SetValue) -> usize {
    match value {
        SetValue::Operand(operand) => operand_bytes(operand),
        SetValue::Sum(left, right) => 34 + operand_bytes(left) + operand_bytes(right),
        SetValue::Difference(left, right) => 37 + operand_bytes(left) + operand_bytes(right),
    }
}

fn operand_bytes(operand: &SetOperand) -> usize {
    match operand {
        SetOperand::Path(path) => path_operand_bytes(path),
        SetOperand::Value(value) => value_size(value),
        SetOperand::IfNotExists(path, otherwise) => {
            39 + path_operand_bytes(path) + operand_bytes(otherwise)
        }
        SetOperand::ListAppend(first, second) => 37 + operand_bytes(first) + operand_bytes(second),
    }
}
