//! Capacity units: the cost of an operation, as charged by DynamoDB.
//!
//! | operation | units |
//! |---|---|
//! | read of an item | one per started 4 KB, at least one; half for an eventual read, double in a transaction |
//! | query, scan | the sizes of all items read are charged as one read per page, before filter and projection |
//! | fetch of attributes missing from a local index | one read of the whole item, for each item of the page |
//! | write of an item | one per started 1 KB of the larger of old and new item; double in a transaction |
//! | condition check of a transaction | as a write of the checked item |
//! | index entry added, removed | one per started 1 KB of the entry |
//! | index entry changed | as a write; if its key changes, one removal and one addition |
//! | index entry unchanged | nothing |
//!
//! Engines compute costs only on request: [`ReturnConsumedCapacity::None`] costs one comparison.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

use crate::declare::named;
use crate::item::Item;
use crate::limits::{READ_UNIT_BYTES, WRITE_UNIT_BYTES};
use crate::size::item_size;
use crate::table::{IndexDef, IndexKind, TableDef};

/// Capacity units, counted exactly in half units (an eventually consistent read of 4 KB costs half a unit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Units {
    halves: u64,
}

impl Units {
    /// Zero units.
    pub const ZERO: Self = Self { halves: 0 };

    /// This many whole units.
    pub const fn whole(units: u64) -> Self {
        Self { halves: units * 2 }
    }

    /// This many half units.
    pub const fn halves(halves: u64) -> Self {
        Self { halves }
    }

    /// The number of units as DynamoDB reports it.
    #[expect(clippy::cast_precision_loss, reason = "unit counts are far below 2^52")]
    pub const fn as_f64(self) -> f64 {
        self.halves as f64 / 2.0
    }
}

impl Add for Units {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::halves(self.halves + other.halves)
    }
}

impl AddAssign for Units {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<u64> for Units {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self::halves(self.halves * times)
    }
}

impl Sum for Units {
    fn sum<I: Iterator<Item = Self>>(units: I) -> Self {
        units.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

named! {
    /// How much detail about the cost an operation returns.
    #[derive(Default)]
    pub enum ReturnConsumedCapacity {
        /// No cost.
        #[default]
        None = "NONE",
        /// The total of each table.
        Total = "TOTAL",
        /// The total, and the shares of each table and index.
        Indexes = "INDEXES",
    }
}

impl ReturnConsumedCapacity {
    /// Whether any cost is returned.
    pub const fn is_wanted(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// Whether a read sees every acknowledged write, or may be stale at half the price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Consistency {
    /// May be stale.
    #[default]
    Eventual,
    /// Sees every write acknowledged before the read.
    Strong,
    /// Reads several items from one snapshot, at twice the price of a strong read.
    Transactional,
}

impl Consistency {
    /// The consistency of a read with this `ConsistentRead` flag.
    pub const fn from_consistent_read(consistent: bool) -> Self {
        if consistent {
            Self::Strong
        } else {
            Self::Eventual
        }
    }
}

/// Whether a write is single or part of a transaction, which costs twice as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum WriteKind {
    /// A single write.
    #[default]
    Plain,
    /// Part of a transaction.
    Transactional,
}

/// Returns the cost of reading this many bytes: one unit per started 4 KB for a strong read, half for an eventual one,
/// double for a transactional one. Reading nothing costs as much as the smallest read.
///
/// ```
/// use floe_store::capacity::{read_units, Consistency};
///
/// assert_eq!(read_units(4097, Consistency::Strong).as_f64(), 2.0);
/// assert_eq!(read_units(0, Consistency::Eventual).as_f64(), 0.5);
/// ```
pub fn read_units(bytes: usize, consistency: Consistency) -> Units {
    let blocks = (bytes as u64).div_ceil(READ_UNIT_BYTES as u64).max(1);
    match consistency {
        Consistency::Eventual => Units::halves(blocks),
        Consistency::Strong => Units::whole(blocks),
        Consistency::Transactional => Units::whole(blocks * 2),
    }
}

/// Returns the cost of writing an item of this size: one unit per started 1 KB, double in a transaction.
///
/// ```
/// use floe_store::capacity::{write_units, WriteKind};
///
/// assert_eq!(write_units(1025, WriteKind::Plain).as_f64(), 2.0);
/// assert_eq!(write_units(1, WriteKind::Transactional).as_f64(), 2.0);
/// ```
pub fn write_units(bytes: usize, kind: WriteKind) -> Units {
    let blocks = (bytes as u64).div_ceil(WRITE_UNIT_BYTES as u64).max(1);
    match kind {
        WriteKind::Plain => Units::whole(blocks),
        WriteKind::Transactional => Units::whole(blocks * 2),
    }
}

/// The cost of an operation on one table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ConsumedCapacity {
    /// The table.
    pub table_name: String,
    /// Total read units.
    pub read: Units,
    /// Total write units.
    pub write: Units,
    /// The share of the table itself.
    pub table: Units,
    /// The share of each local index that was used.
    pub local_indexes: BTreeMap<String, Units>,
    /// The share of each global index that was used.
    pub global_indexes: BTreeMap<String, Units>,
    /// Whether the shares are returned, or only the total.
    pub by_index: bool,
}

impl ConsumedCapacity {
    /// A cost of zero on this table.
    pub fn new(table_name: impl Into<String>, detail: ReturnConsumedCapacity) -> Self {
        Self {
            table_name: table_name.into(),
            by_index: detail == ReturnConsumedCapacity::Indexes,
            ..Self::default()
        }
    }

    /// Read and write units together.
    pub fn total(&self) -> Units {
        self.read + self.write
    }

    /// Adds the cost of another operation on the same table.
    pub fn merge(&mut self, other: &Self) {
        self.read += other.read;
        self.write += other.write;
        self.table += other.table;
        for (name, units) in &other.local_indexes {
            *self.local_indexes.entry(name.clone()).or_default() += *units;
        }
        for (name, units) in &other.global_indexes {
            *self.global_indexes.entry(name.clone()).or_default() += *units;
        }
    }
}

/// Returns the cost of a write that changed an item from `old` to `new`, in a table and its indexes. A transaction
/// doubles the share of the table, not those of the indexes.
///
/// ```
/// use floe_store::capacity::{ReturnConsumedCapacity, WriteKind, write_cost};
/// use floe_store::table::{KeyKind, Projection};
/// use floe_store::{Item, TableDef};
///
/// let table = TableDef::builder("Orders", "id", KeyKind::S)
///     .global_index("by_state", [("state", KeyKind::S)], [("id", KeyKind::S)], Projection::KeysOnly)
///     .build()?;
/// let open = Item::new().with("id", "o-1").with("state", "open");
/// let paid = Item::new().with("id", "o-1").with("state", "paid");
/// let cost = write_cost(
///     &table, Some(&open), Some(&paid), WriteKind::Plain, ReturnConsumedCapacity::Indexes,
/// );
/// assert_eq!(cost.table.as_f64(), 1.0);
/// assert_eq!(cost.global_indexes["by_state"].as_f64(), 2.0);
/// assert_eq!(cost.total().as_f64(), 3.0);
/// # Ok::<(), floe_store::Error>(())
/// ```
pub fn write_cost(
    table: &TableDef,
    old: Option<&Item>,
    new: Option<&Item>,
    kind: WriteKind,
    detail: ReturnConsumedCapacity,
) -> ConsumedCapacity {
    let mut cost = ConsumedCapacity::new(&table.name, detail);
    let larger = old.map_or(0, item_size).max(new.map_or(0, item_size));
    cost.add_table_write(write_units(larger, kind));
    for index in &table.indexes {
        let units = index_write_units(table, index, old, new);
        if units > Units::ZERO {
            cost.write += units;
            cost.add_index_share(index, units);
        }
    }
    cost
}

/// Returns the cost of a transaction's condition check on this item.
pub fn check_cost(
    table: &TableDef,
    item: Option<&Item>,
    detail: ReturnConsumedCapacity,
) -> ConsumedCapacity {
    let mut cost = ConsumedCapacity::new(&table.name, detail);
    let bytes = item.map_or(0, item_size);
    cost.add_table_write(write_units(bytes, WriteKind::Transactional));
    cost
}

/// Returns the cost of reading items of these sizes one by one. The size of a missing item is 0.
///
/// ```
/// use floe_store::capacity::{Consistency, ReturnConsumedCapacity, read_cost};
///
/// let cost = read_cost("Orders", [100, 4097, 0], Consistency::Strong, ReturnConsumedCapacity::Total);
/// assert_eq!(cost.total().as_f64(), 1.0 + 2.0 + 1.0);
/// ```
pub fn read_cost(
    table_name: &str,
    item_bytes: impl IntoIterator<Item = usize>,
    consistency: Consistency,
    detail: ReturnConsumedCapacity,
) -> ConsumedCapacity {
    let mut cost = ConsumedCapacity::new(table_name, detail);
    let units = item_bytes.into_iter().map(|b| read_units(b, consistency));
    cost.add_table_read(units.sum());
    cost
}

/// Returns the cost of finding that a transaction with this token was already applied: a transactional read of each
/// item, by the larger of its old and new size.
pub fn replay_cost(
    table_name: &str,
    item_bytes: impl IntoIterator<Item = usize>,
    detail: ReturnConsumedCapacity,
) -> ConsumedCapacity {
    read_cost(table_name, item_bytes, Consistency::Transactional, detail)
}

/// Returns the cost that the change of an item has in an index.
fn index_write_units(
    table: &TableDef,
    index: &IndexDef,
    old: Option<&Item>,
    new: Option<&Item>,
) -> Units {
    let held = |item: Option<&Item>| item.is_some_and(|item| index.holds(item));
    let (old, new) = (old.filter(|_| held(old)), new.filter(|_| held(new)));
    let units = |item| write_units(index.entry_size(&table.key, item), WriteKind::Plain);
    match (old, new) {
        (None, None) => Units::ZERO,
        (Some(item), None) | (None, Some(item)) => units(item),
        (Some(old), Some(new)) if !index.same_key(old, new) => units(old) + units(new),
        (Some(old), Some(new)) if index.same_entry(&table.key, old, new) => Units::ZERO,
        (Some(old), Some(new)) => units(old).max(units(new)),
    }
}

impl ConsumedCapacity {
    fn add_table_write(&mut self, units: Units) {
        self.write += units;
        self.table += units;
    }

    pub(crate) fn add_table_read(&mut self, units: Units) {
        self.read += units;
        self.table += units;
    }

    pub(crate) fn add_index_share(&mut self, index: &IndexDef, units: Units) {
        let shares = match index.kind {
            IndexKind::Global => &mut self.global_indexes,
            IndexKind::Local => &mut self.local_indexes,
        };
        *shares.entry(index.name.clone()).or_default() += units;
    }
}
