//! Meters a page of a query or scan: whether the page is full, and what it cost.

use super::ReadPlan;
use crate::capacity::{ConsumedCapacity, ReturnConsumedCapacity, Units, read_units};
use crate::limits::PAGE_BYTES_MAX;

/// Counts the bytes and entries that a page of a query or scan reads.
///
/// ```
/// use floe_store::capacity::ReturnConsumedCapacity;
/// use floe_store::op::{Meter, Scan};
/// use floe_store::{TableDef, table::KeyKind};
///
/// let table = TableDef::builder("Orders", "id", KeyKind::S).build()?;
/// let scan = Scan::new("Orders").consistent();
/// let plan = scan.plan(&table)?;
/// let mut meter = Meter::new(&plan);
/// for item_bytes in [3000, 3000] {
///     meter.add(item_bytes);
///     assert!(!meter.is_full());
/// }
/// let cost = meter.cost(ReturnConsumedCapacity::Total);
/// assert_eq!(cost.total().as_f64(), 2.0);
/// # Ok::<(), floe_store::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Meter<'p> {
    plan: &'p ReadPlan<'p>,
    entries: usize,
    bytes: usize,
    fetched: Units,
}

impl<'p> Meter<'p> {
    /// Creates a meter at zero.
    pub fn new(plan: &'p ReadPlan<'p>) -> Self {
        Self {
            plan,
            entries: 0,
            bytes: 0,
            fetched: Units::ZERO,
        }
    }

    /// Whether the page is complete: it has as many entries as the request allows, or 1 MB. The entry that reaches 1 MB
    /// is still part of the page, whatever its size.
    pub fn is_full(&self) -> bool {
        self.bytes >= PAGE_BYTES_MAX || self.plan.limit.is_some_and(|limit| self.entries >= limit)
    }

    /// Counts an entry of the table or index.
    pub fn add(&mut self, entry_bytes: usize) {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(entry_bytes);
    }

    /// Counts an item that was fetched from the table for an entry of a local index.
    pub fn add_fetched(&mut self, item_bytes: usize) {
        self.fetched += read_units(item_bytes, self.plan.consistency);
    }

    /// Returns the number of entries read.
    pub const fn entries(&self) -> usize {
        self.entries
    }

    /// Returns the cost of the page.
    pub fn cost(&self, detail: ReturnConsumedCapacity) -> ConsumedCapacity {
        let mut cost = ConsumedCapacity::new(&self.plan.table.name, detail);
        let units = read_units(self.bytes, self.plan.consistency);
        match self.plan.index {
            Some(index) => {
                cost.read += units;
                cost.add_index_share(index, units);
            }
            None => cost.add_table_read(units),
        }
        cost.add_table_read(self.fetched);
        cost
    }
}
