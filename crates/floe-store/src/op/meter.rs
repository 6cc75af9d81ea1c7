//! What a page of a query or scan has read so far: when the page is full, and what it cost.

use super::ReadPlan;
use crate::capacity::{ConsumedCapacity, ReturnConsumedCapacity, Units, read_units};
use crate::limits::PAGE_BYTES_MAX;

/// Counts what a page of a query or scan reads: when it is full, and what it cost.
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
    /// A meter that has counted nothing.
    pub fn new(plan: &'p ReadPlan<'p>) -> Self {
        Self {
            plan,
            entries: 0,
            bytes: 0,
            fetched: Units::ZERO,
        }
    }

    /// Whether the page ends with what has been read: as many entries as the request allows, or 1 MB. The entry that
    /// reaches the megabyte is still on the page, whatever its size.
    pub fn is_full(&self) -> bool {
        self.bytes >= PAGE_BYTES_MAX || self.plan.limit.is_some_and(|limit| self.entries >= limit)
    }

    /// Counts an entry of this size, of the table or of the index.
    pub fn add(&mut self, entry_bytes: usize) {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(entry_bytes);
    }

    /// Counts an item of this size that was fetched from the table for an entry of a local index.
    pub fn add_fetched(&mut self, item_bytes: usize) {
        self.fetched += read_units(item_bytes, self.plan.consistency);
    }

    /// How many entries were read.
    pub const fn entries(&self) -> usize {
        self.entries
    }

    /// What the page cost.
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
