//! Rows: what a transaction hands out of an item, and what comes back when the row is dropped.
//!
//! A row borrows its transaction, so it cannot leave the body. There is no `save`: when a row is dropped,
//! it tells the transaction which of its fields were read and how each was changed.

use super::changes::Items;
use super::field::{Change, Field};
use super::report::{FieldReport, Report};
use crate::tx::Tx;

/// A generated row.
pub trait Row<'tx>: Sized {
    /// The model of which it is a row.
    type Model;

    /// What all rows have.
    #[doc(hidden)]
    fn core(&mut self) -> &mut RowCore<'tx>;
}

/// What all rows have: the transaction, the place in it, and whether the item is new.
pub struct RowCore<'tx> {
    tx: &'tx Tx,
    slot: usize,
    /// How many changes of the item the row has seen.
    seen: usize,
    is_new: bool,
    report: Report,
}

impl<'tx> RowCore<'tx> {
    pub(crate) fn new(tx: &'tx Tx, slot: usize, is_new: bool) -> Self {
        Self {
            tx,
            slot,
            seen: Items::of(tx).hand_out(slot),
            is_new,
            report: Report::default(),
        }
    }

    /// Whether the item is created by this transaction.
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    pub(crate) fn mark_deleted(&mut self) {
        self.report.is_deleted = true;
    }

    /// Takes note of a field of a row that is dropped, if it was touched.
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

    /// Hands the row in. The last thing that a dropped row does.
    #[doc(hidden)]
    pub fn hand_in(&mut self) {
        let report = std::mem::take(&mut self.report);
        Items::of(self.tx).hand_in(self.slot, self.seen, report);
    }
}
