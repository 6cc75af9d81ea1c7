//! Rows: items inside a transaction.
//!
//! A row borrows its transaction, so it cannot leave the body. There is no `save`: when a row is dropped, it reports to
//! the transaction which of its fields were read and how each was changed.

use super::changes::Items;
use super::field::{Change, Field};
use super::report::{FieldReport, RowReport};
use crate::tx::Tx;

/// A generated row.
pub trait Row<'tx>: Sized {
    /// The model of the row.
    type Model;

    /// The common part of all rows.
    #[doc(hidden)]
    fn core(&mut self) -> &mut RowCore<'tx>;
}

/// The common part of all rows: the transaction, the slot of the item, and whether it is new.
pub struct RowCore<'tx> {
    tx: &'tx Tx,
    slot: usize,
    /// How many changes of the item the row contains.
    seen: usize,
    is_new: bool,
    report: RowReport,
}

impl<'tx> RowCore<'tx> {
    pub(crate) fn new(tx: &'tx Tx, slot: usize, is_new: bool) -> Self {
        Self {
            tx,
            slot,
            seen: Items::of(tx).row_created(slot),
            is_new,
            report: RowReport::default(),
        }
    }

    /// Whether the item is created by this transaction.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    pub(crate) fn mark_deleted(&mut self) {
        self.report.is_deleted = true;
    }

    /// Records a field of a dropped row, if it was read or changed.
    #[doc(hidden)]
    pub fn report<T>(&mut self, field: &Field<T>) {
        let (rules, change) = (field.rules, &field.change);
        let value = match change {
            Change::None if !field.is_read() => return,
            Change::None => Ok(None),
            _ => rules.validate(field.peek()),
        };
        self.report.fields.push(FieldReport {
            attribute: rules.attribute,
            is_read: field.is_read(),
            read_only: rules.read_only,
            change: change.clone(),
            value,
            model: rules.model,
            field: rules.field,
        });
    }

    /// Sends the report to the transaction. Called last when a row is dropped.
    #[doc(hidden)]
    pub fn finish(&mut self) {
        let report = std::mem::take(&mut self.report);
        Items::of(self.tx).row_dropped(self.slot, self.seen, report);
    }
}
