//! UpdateItem: changes parts of an item.

use super::constraint::{Faults, enveloped, validate_table_name};
use super::keys::Refused;
use super::values::{Survey, check_values, item_too_large_to_update};
use super::write::{Applied, ReturnValues, check_old, check_token, write_operation};
use super::{keys, references};
use crate::error::{Result, ensure};
use crate::expr::{Condition, Path, Segment, SetOperand, SetValue, Update};
use crate::item::Item;
use crate::limits::ITEM_BYTES_MAX;
use crate::size::value_size;
use crate::table::TableDef;

write_operation! {
    /// Changes parts of an item, and makes it if it is not there.
    pub struct UpdateItem {
        /// The key: exactly the key attributes of the table.
        pub key: Item,
        /// What to change. An empty update makes the item if it is not there.
        pub update: Update,
        ;
        /// Whether the request itself is held to the limit of an item. DynamoDB does so with an `UpdateExpression`, and
        /// not with the older `AttributeUpdates`.
        pub weigh_request: bool = true,
    }

    /// Changes the item with this key.
    pub fn new;
}

impl UpdateItem {
    /// Checks the request alone, before the table is looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        self.validate_table_name()?;
        check_token(self.token.as_deref())?;
        self.validate_action().map_err(enveloped)
    }

    /// Unlike the other operations on items, this one reports every fault of a name.
    fn validate_table_name(&self) -> Result<()> {
        if self.table_name.is_empty() {
            return validate_table_name(&self.table_name);
        }
        Faults::check(|faults| faults.table_name_by_pattern(&self.table_name))
    }

    /// Checks the action of a transaction alone; the transaction has checked the name of the table.
    pub(super) fn validate_action(&self) -> Result<()> {
        check_values(&self.key)?;
        self.update.check()?;
        self.condition.as_ref().map_or(Ok(()), Condition::check)
    }

    /// Checks a valid request against its table: the key, that the update leaves the key alone, that it
    /// sets no index key to a value that cannot be one, and that the request itself is not too large.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        keys::check_key(&table.key, &self.key)?;
        let fits = !self.weigh_request || request_bytes(&self.update) <= ITEM_BYTES_MAX;
        ensure(fits, item_too_large_to_update)?;
        self.check_references(table)
    }

    /// As [`check`](UpdateItem::check), for an action of a transaction. DynamoDB weighs the item that
    /// such an update leaves, but not its request: 30 of the 33 regions where this was tried in October
    /// 2026.
    pub(super) fn check_action(&self, table: &TableDef) -> Result<()> {
        keys::check_key(&table.key, &self.key)?;
        self.check_references(table)
    }

    fn check_references(&self, table: &TableDef) -> Result<()> {
        references::check_update(table, &self.update)?;
        references::check_condition(table, self.condition.as_ref())?;
        self.check_index_keys(table, Refused::All)
    }

    /// Checks the values that it sets, whatever the item is.
    pub(super) fn check_index_keys(&self, table: &TableDef, refused: Refused) -> Result<()> {
        for (path, value) in &self.update.set {
            if let ([], SetValue::Operand(SetOperand::Value(value))) = (path.rest(), value) {
                keys::check_index_key_value(table, path.root(), value, refused)?;
            }
        }
        Ok(())
    }

    /// The size of the values that the request carries, and of the names that they are for.
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

    /// What the write makes of the item as it stands. The request has passed
    /// [`check`](UpdateItem::check).
    ///
    /// An item that is not there is made of its key and the update, unless the update only removes: then
    /// there is nothing to make.
    ///
    /// # Errors
    ///
    /// [`ConditionalCheckFailed`](crate::Error::ConditionalCheckFailed) when the condition does not
    /// hold; [`Validation`](crate::Error::Validation) when the update does not fit the item or makes
    /// one that a table cannot hold.
    pub fn apply(&self, table: &TableDef, old: Option<&Item>) -> Result<Applied> {
        check_old(self.condition.as_ref(), old, self.return_old_on_failure)?;
        if old.is_none() && !self.update.creates_item() {
            return Ok(Applied::default());
        }
        let before = old.unwrap_or(&self.key);
        let new = self.update.apply(before)?;
        Survey::of(&new).check_updated()?;
        keys::check_changed_index_keys(table, before, &new)?;
        let returned = match self.return_values {
            ReturnValues::None => None,
            ReturnValues::AllOld => old.cloned(),
            ReturnValues::AllNew => Some(new.clone()),
            ReturnValues::UpdatedOld => old.map(|old| self.update.touched(old)),
            ReturnValues::UpdatedNew => Some(self.update.touched(&new)),
        };
        Ok(Applied {
            new: Some(new),
            returned: returned.filter(|attributes| !attributes.is_empty()),
        })
    }
}

/// What DynamoDB charges an update for what its request carries, which it holds to the limit of an item
/// before it reads the item.
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

/// The names and positions of a path, each behind the first with what a step adds.
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
