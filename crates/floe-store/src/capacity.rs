//! Capacity units: what an operation costs, as DynamoDB charges it.
//!
//! | operation | units |
//! |---|---|
//! | read of an item | one per 4 KB begun, at least one; half for an eventual read, twice in a transaction |
//! | query, scan | the sizes of all items read, together, as one read of the page; filter and projection save nothing |
//! | fetch of what a local index lacks | one read of the whole item, for each item of the page |
//! | write of an item | one per 1 KB begun of the larger of the item before and after; twice in a transaction |
//! | condition of a transaction | as a write of the item that it looks at |
//! | index entry added, removed | one per 1 KB begun of the entry |
//! | index entry changed | as a write; if its key changes, one removal and one addition |
//! | index entry not changed | nothing |
//!
//! Engines compute a cost only when a request asks for it: [`ReturnConsumedCapacity::None`] costs
//! nothing but the comparison.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

use crate::declare::named;
use crate::item::Item;
use crate::limits::{READ_UNIT_BYTES, WRITE_UNIT_BYTES};
use crate::size::item_size;
use crate::table::{IndexDef, IndexKind, TableDef};

/// Capacity units, counted exactly in halves (an eventually consistent read of 4 KB costs half a unit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Units {
    halves: u64,
}

impl Units {
    /// No units.
    pub const ZERO: Self = Self { halves: 0 };

    /// So many whole units.
    pub const fn whole(units: u64) -> Self {
        Self { halves: units * 2 }
    }

    /// So many half units.
    pub const fn halves(halves: u64) -> Self {
        Self { halves }
    }

    /// The number that DynamoDB reports.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a count of units is far below 2^52"
    )]
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
    /// How much an operation should tell about what it cost.
    #[derive(Default)]
    pub enum ReturnConsumedCapacity {
        /// Nothing.
        #[default]
        None = "NONE",
        /// The total per table.
        Total = "TOTAL",
        /// The total and the share of each table and index.
        Indexes = "INDEXES",
    }
}

impl ReturnConsumedCapacity {
    /// Whether anything is to be told.
    pub const fn is_wanted(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// Whether a read sees every write answered before it, or may be a little behind at half the price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Consistency {
    /// May be a little behind.
    #[default]
    Eventual,
    /// Sees every write answered before.
    Strong,
    /// One moment for several items: twice the price of a strong read.
    Transactional,
}

impl Consistency {
    /// The consistency of a read that was asked to be consistent, or not.
    pub const fn of_read(consistent: bool) -> Self {
        if consistent {
            Self::Strong
        } else {
            Self::Eventual
        }
    }
}

/// Whether a write stands alone or is part of a transaction, which costs twice as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum WriteKind {
    /// On its own.
    #[default]
    Plain,
    /// Part of a transaction.
    Transactional,
}

/// The units for reading so many bytes: one per 4 KB begun for a strong read, half of that for an
/// eventual and twice that for a transactional one. Reading nothing costs as much as the smallest read.
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

/// The units for writing an item of so many bytes: one per 1 KB begun, twice that in a transaction.
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

/// What an operation cost on one table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ConsumedCapacity {
    /// The table.
    pub table_name: String,
    /// Units of reading, all parts together.
    pub read: Units,
    /// Units of writing, all parts together.
    pub write: Units,
    /// The share of the table itself.
    pub table: Units,
    /// The share of each local index that was touched.
    pub local_indexes: BTreeMap<String, Units>,
    /// The share of each global index that was touched.
    pub global_indexes: BTreeMap<String, Units>,
    /// Whether the shares are to be told, or the total alone.
    pub by_index: bool,
}

impl ConsumedCapacity {
    /// Nothing consumed on this table yet.
    pub fn new(table_name: impl Into<String>, detail: ReturnConsumedCapacity) -> Self {
        Self {
            table_name: table_name.into(),
            by_index: detail == ReturnConsumedCapacity::Indexes,
            ..Self::default()
        }
    }

    /// All units together.
    pub fn total(&self) -> Units {
        self.read + self.write
    }

    /// Adds what another operation cost on the same table.
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

/// What a write cost that took an item from one state to the other, in a table and in its indexes. A
/// transaction doubles the share of the table, not those of the indexes.
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

/// What a condition of a transaction cost that looked at this item.
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

/// What it cost to read items of these sizes one by one: 0 for one that is not there.
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

/// What it cost to learn that a transaction with this token has been applied before: a transactional
/// read of each item, of the larger of its sizes before and after.
pub fn replay_cost(
    table_name: &str,
    item_bytes: impl IntoIterator<Item = usize>,
    detail: ReturnConsumedCapacity,
) -> ConsumedCapacity {
    read_cost(table_name, item_bytes, Consistency::Transactional, detail)
}

/// What the change of an item cost in an index.
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
